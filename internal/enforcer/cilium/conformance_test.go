package cilium

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv/golden"
)

const conformancePath = "testdata/conformance.jsonl"

// conformanceWorld is a line of testdata/conformance.jsonl: the specs that a pod's cluster gets, and what the statements
// mean for connections to it. Cilium's engine must agree on every one. It is a file because the engine is too heavy a
// dependency for this module.
type conformanceWorld struct {
	// Destination are the labels of a pod in the cluster "c1".
	Destination map[string]string `json:"destination"`
	// Specs of CiliumClusterwideNetworkPolicies by name.
	Specs map[string]map[string]any `json:"specs"`
	// Groups are CiliumCIDRGroups by name.
	Groups      map[string]conformanceGroup `json:"groups,omitempty"`
	Connections []conformanceConnection     `json:"connections"`
}

type conformanceGroup struct {
	Labels map[string]string `json:"labels"`
	Spec   map[string]any    `json:"spec"`
}

type conformanceConnection struct {
	// Source are the labels of a pod in SourceCluster.
	Source        map[string]string `json:"source,omitempty"`
	SourceCluster string            `json:"sourceCluster,omitempty"`
	// Address is a source outside the fleet; Reserved is an entity. Without pod, address and entity it is the world.
	Address  string            `json:"address,omitempty"`
	Reserved string            `json:"reserved,omitempty"`
	Protocol v1alpha1.Protocol `json:"protocol"`
	Port     uint16            `json:"port"`
	// Pass reports whether the engine lets it through; Word is why.
	Pass bool           `json:"pass"`
	Word policy.Verdict `json:"verdict"`
}

func TestConformanceFile(t *testing.T) {
	var got bytes.Buffer
	words := map[policy.Verdict]int{}
	for seed := range uint64(100) {
		w := newConformanceWorld(t, rand.New(rand.NewPCG(seed, 5)))
		for _, c := range w.Connections {
			words[c.Word]++
		}
		line, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(append(line, '\n'))
	}
	for _, word := range []policy.Verdict{policy.Allowed, policy.Denied, policy.DefaultDenied, policy.Audited, policy.Unmanaged} {
		if words[word] < 20 {
			t.Errorf("only %d connections are %s", words[word], word)
		}
	}
	// The test of the engine over the file has to pass as well.
	golden.Compare(t, conformancePath, got.String())
}

func newConformanceWorld(t *testing.T, r *rand.Rand) conformanceWorld {
	t.Helper()
	const (
		redis = "trnv1:rsc:trip-com:redis:clusters:"
		bobs  = redis + "bobs-cluster"
		shop  = "trnv1:rsc:trip-com:web:sites:shop"
		app   = "trnv1:rsc:trip-com:iam:sa:app/"
		cidr  = "trnv1:rsc:trip-com:net:cidr:"
	)
	in := policy.Input{
		ResourceClasses: readInput(t, "testdata/other-ports.in.yaml").ResourceClasses,
		SubjectClasses:  readInput(t, "testdata/enforce-many-grants.in.yaml").SubjectClasses,
	}
	for _, c := range in.ResourceClasses { // the member of the file: elsewhere nothing is decided
		c.Spec.Placement = v1alpha1.Placement{Clusters: &[]v1alpha1.ClusterName{"c1"}}
	}
	for i, name := range []v1alpha1.ResourceName{bobs, shop} {
		in.Resources = append(in.Resources, &v1alpha1.ProtectedResource{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)},
			Spec: v1alpha1.ProtectedResourceSpec{
				Resource: name,
				Mode:     choose(r, v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce),
			},
		})
	}
	for i := range r.IntN(4) {
		in.Workloads = append(in.Workloads, &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)},
			Spec: v1alpha1.ExternalWorkloadSpec{Subject: choose[v1alpha1.ResourceName](r, app+"888", app+"889", "trnv1:rsc:trip-com:mesh:svc:cart"),
				Addresses: []string{choose(r, "10.5.0.0/24", "10.5.0.0/16", "10.5.0.7", "10.9.9.9")}}})
	}
	in.KnownNames = []string{app + "888", app + "889", app + "1", "trnv1:rsc:trip-com:mesh:svc:cart", bobs, shop}
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for i := range 2 + r.IntN(6) {
		// Only what is translated: a refusal makes the engine stricter than the meaning.
		st := v1alpha1.Statement{
			SID:    fmt.Sprint(i),
			Effect: choose(r, policy.Allow, policy.Allow, policy.Deny),
			Subjects: []v1alpha1.Subject{
				choose[v1alpha1.Subject](r, app+"888", app+"889", "trnv1:rsc:trip-com:mesh:svc:cart", app+"*", cidr+"10.5.0.0/24", cidr+"10.5.0.7/32",
					cidr+"0.0.0.0/0", "trnv1:rsc:trip-com:mesh:svc:*", "*"),
			},
			Resources: []v1alpha1.ResourceName{bobs},
			Actions:   []v1alpha1.Action{choose[v1alpha1.Action](r, "redis:connect", "redis:*", "redis:admin")},
		}
		if st.Effect == policy.Allow && r.IntN(6) == 0 {
			st.Subjects = []v1alpha1.Subject{app + "88*"}
		}
		switch r.IntN(6) {
		case 0, 1:
			st.Resources, st.Actions = []v1alpha1.ResourceName{shop}, []v1alpha1.Action{"web:connect"}
		case 2:
			st.Resources = []v1alpha1.ResourceName{redis + "*"}
		case 3:
			st.Resources = []v1alpha1.ResourceName{redis + "bobs-*"}
		}
		p.Spec.Statements = append(p.Spec.Statements, st)
	}
	in.Policies = append(in.Policies, p)
	s := policy.NewSnapshot(in)
	if refused := s.Refusals(); len(refused) > 0 {
		t.Fatalf("refused: %+v", refused)
	}

	w := conformanceWorld{Specs: map[string]map[string]any{}, Destination: choose(r,
		map[string]string{"com.trip/redis-cluster": "bobs-cluster"}, map[string]string{"com.trip/site": "shop"},
		map[string]string{"com.trip/redis-cluster": "bobs-cluster", "com.trip/site": "shop"})}
	for _, u := range s.Compile(goldenTime) {
		rendering, err := Enforcer{}.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rendering.Objects {
			w.Specs[o.Object.Name] = o.Object.Spec
		}
	}
	w.Groups = map[string]conformanceGroup{}
	for _, g := range s.ExternalGroups() {
		rendering, err := RenderGroup(g)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rendering.Objects {
			w.Groups[o.Object.Name] = conformanceGroup{Labels: o.Object.Labels, Spec: o.Object.Spec}
		}
	}
	for _, source := range []conformanceConnection{
		{Source: map[string]string{"com.trip/appid": "888"}}, {Source: map[string]string{"com.trip/appid": "889", "com.trip/service": "cart"}},
		{Source: map[string]string{"com.trip/appid": "1"}}, {Source: map[string]string{"com.trip/appid": ""}}, {Source: map[string]string{"app": "other"}},
		{}, {Reserved: "remote-node"}, {Reserved: "unmanaged"}, {Address: "10.5.0.7"},
		{Address: "10.5.0.8"}, {Address: "10.5.1.1"}, {Address: "10.9.9.9"}, {Address: "192.0.2.1"},
	} {
		for _, port := range []uint16{6379, 16380, 80, 9121} {
			c := source
			c.Protocol, c.Port = v1alpha1.ProtocolTCP, port
			if c.Source != nil {
				c.SourceCluster = choose(r, "c1", "c2")
			}
			if r.IntN(8) == 0 {
				c.Protocol = v1alpha1.ProtocolUDP
			}
			q := policy.Query{
				Subjects:  s.SubjectsOf(c.Source),
				Resources: s.ResourcesOf(w.Destination),
				Cluster:   "c1",
				Protocol:  c.Protocol,
				Port:      port,
				At:        goldenTime,
			}
			switch {
			case c.Address != "":
				q.Source = netip.MustParseAddr(c.Address)
			case c.Source == nil && c.Reserved == "":
				q.Source = netip.MustParseAddr("203.0.113.1") // the world: an address that no range but the widest covers
			}
			c.Word = s.Decide(q).Verdict
			c.Pass = c.Word != policy.Denied && c.Word != policy.DefaultDenied
			w.Connections = append(w.Connections, c)
		}
	}
	return w
}

func choose[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
