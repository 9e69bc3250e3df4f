package cilium

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/norace"
	"github.com/acp-io/acp/internal/policy"
)

// KubeFed and the agents apply the objects of a unit in any order, and may skip revisions. Whatever part of which revision
// a member has, it must not let in what all of these revisions refuse, and while the mode and the number of parts are the same it must
// not refuse what all of them let in.
func TestMixedPartsNeverOpen(t *testing.T) {
	norace.SkipUnderRace(t)
	var refused, admitted, parted, closed, grown int
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := newInterleaving(r)
		revisions := []revision{w.render(t)}
		for range 1 + r.IntN(3) {
			w.change(r)
			revisions = append(revisions, w.render(t))
		}
		objects, same := 0, true
		for _, rev := range revisions {
			objects, same = max(objects, len(rev.specs)), same && len(rev.specs) == len(revisions[0].specs) && rev.mode == revisions[0].mode
			if rev.closed {
				closed++
			}
		}
		if objects > 1 {
			parted++
		}
		if !same {
			grown++
		}
		type outcome struct{ all, none bool }
		outcomes := make([]outcome, len(interleavedConnections))
		for i, c := range interleavedConnections {
			outcomes[i] = outcome{true, true}
			for _, rev := range revisions {
				pass := admits(append(slices.Clone(rev.specs), w.beside), c)
				outcomes[i] = outcome{outcomes[i].all && pass, outcomes[i].none && !pass}
			}
		}
		for _, mix := range mixtures(r, revisions, objects) {
			var specs []map[string]any
			for object, at := range mix {
				if at >= 0 && object < len(revisions[at].specs) {
					specs = append(specs, revisions[at].specs[object])
				}
			}
			specs = append(specs, w.beside)
			for i, c := range interleavedConnections {
				pass, all, none := admits(specs, c), outcomes[i].all, outcomes[i].none
				switch {
				case none && pass:
					t.Fatalf(
						"seed %d: %+v is refused by all %d revisions, and let in by the mixture %v of their parts:\n%s",
						seed,
						c,
						len(revisions),
						mix,
						text(specs),
					)
				case all && same && !w.anyone && !pass && !slices.Contains(mix, -1):
					t.Fatalf(
						"seed %d: %+v is let in by all %d revisions, and refused by the mixture %v of their parts:\n%s",
						seed,
						c,
						len(revisions),
						mix,
						text(specs),
					)
				case none:
					refused++
				case all:
					admitted++
				}
			}
		}
	}
	t.Logf(
		"%d connections refused by all revisions, %d let in by all; %d sequences with parts, %d with another number of them, %d revisions closed",
		refused,
		admitted,
		parted,
		grown,
		closed,
	)
	if refused < 50_000 || admitted < 10_000 || parted < 100 || grown < 100 || closed < 50 {
		t.Error("the sequences miss a case")
	}
}

// A unit that grows gets the new parts first, so that a peer which moves there is missing nowhere.
func TestNewPartsFirstRefuseNoPeer(t *testing.T) {
	norace.SkipUnderRace(t)
	moved := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 11))
		w := newInterleaving(r)
		before := w.render(t)
		w.unit.ClusterModes = map[string]v1alpha1.Mode{"m2": v1alpha1.ModeAudit, "m3": v1alpha1.ModeAudit, "m4": v1alpha1.ModeAudit}
		after := w.render(t)
		if len(after.specs) <= len(before.specs) || len(before.specs) > 4 || after.closed != before.closed {
			continue
		}
		moved++
		for mask := range 1 << len(before.specs) {
			specs := slices.Clone(after.specs)
			for i := range before.specs {
				if mask&(1<<i) != 0 {
					specs[i] = before.specs[i]
				}
			}
			for _, c := range interleavedConnections {
				if admits(before.specs, c) && admits(after.specs, c) && !admits(specs, c) {
					t.Fatalf("seed %d: %+v is let in before and after, and refused between:\n%s", seed, c, text(specs))
				}
			}
		}
	}
	if moved < 30 {
		t.Errorf("only %d units grew", moved)
	}
}

// A list of denies that no part can hold closes its ports instead of being spread, and the allows there are reported.
func TestDeniesThatDoNotFitClose(t *testing.T) {
	var names []string
	for i := range 30_000 {
		names = append(names, fmt.Sprintf("application-with-a-long-name-%06d", i))
	}
	tcp := func(port int32) []v1alpha1.Port {
		return []v1alpha1.Port{{Port: port, Protocol: v1alpha1.ProtocolTCP}}
	}
	u := policy.Unit{
		ID:           "x",
		Resource:     "r",
		LabelKey:     "k",
		LabelValue:   "v",
		Mode:         v1alpha1.ModeEnforce,
		ClusterModes: map[string]v1alpha1.Mode{"m2": v1alpha1.ModeAudit},
		Inherited:    []policy.Rule{{Effect: policy.Allow, Anyone: true, Ports: tcp(80), From: []policy.Ref{{Policy: "w", SID: "s"}}}},
		Rules: []policy.Rule{
			{
				Effect:   policy.Allow,
				Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: names[:3]}},
				Ports:    tcp(80),
				From:     []policy.Ref{{Policy: "p", SID: "open"}},
			},
			{
				Effect:   policy.Allow,
				Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: names[:3]}},
				Ports:    tcp(443),
				From:     []policy.Ref{{Policy: "p", SID: "other"}},
			},
			{
				Effect:   policy.Deny,
				Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: names}},
				Ports:    tcp(80),
				From:     []policy.Ref{{Policy: "p", SID: "deny"}},
			},
		},
	}
	rendering, err := Enforcer{}.Render(u)
	if err != nil {
		t.Fatal(err)
	}
	var specs []map[string]any
	for _, o := range rendering.Objects {
		specs = append(specs, o.Object.Spec)
	}
	for port, want := range map[int]bool{80: false, 443: true} {
		if got := admits(specs, interleavedConnection{key: "a", value: names[0], port: port}); got != want {
			t.Errorf("port %d: let in %t, want %t", port, got, want)
		}
	}
	for cluster, want := range map[string][]policy.Ref{"m1": {{Policy: "p", SID: "open"}, {Policy: "w", SID: "s"}}, "m2": nil} {
		var got []policy.Ref
		for _, refusal := range rendering.RefusedBy(cluster) {
			got = append(got, refusal.Ref)
		}
		if !slices.Equal(got, want) {
			t.Errorf("refused in %s: %v, want %v", cluster, got, want)
		}
	}
}

// revision is a unit as it was rendered at some time, for a member in the base mode.
type revision struct {
	specs  []map[string]any
	closed bool
	mode   v1alpha1.Mode
}

// interleaving is a unit that changes, in objects so small that it has several parts.
type interleaving struct {
	unit  policy.Unit
	limit int
	// anyone: some rules are about everyone. A peer that is allowed by name before and with everyone afterwards may be in
	// neither part for a moment.
	anyone bool
	// beside is a policy that never changes, such as one of a wildcard.
	beside map[string]any
}

// interleavedConnection is from a pod with one label, or from an address.
type interleavedConnection struct {
	key, value, address string
	port                int
}

var (
	interleavedPorts       = []int32{80, 443}
	interleavedConnections = func() []interleavedConnection {
		var out []interleavedConnection
		for _, port := range interleavedPorts {
			for i := range 12 {
				out = append(out, interleavedConnection{key: "app", value: fmt.Sprint("a", i), port: int(port)},
					interleavedConnection{address: fmt.Sprintf("10.0.%d.7", i), port: int(port)})
			}
			out = append(out, interleavedConnection{key: "team", value: "t", port: int(port)})
		}
		return out
	}()
)

func newInterleaving(r *rand.Rand) *interleaving {
	w := &interleaving{limit: 3_000 + r.IntN(20_000), unit: policy.Unit{ID: "x", Resource: "r", LabelKey: "k", LabelValue: "v", Mode: v1alpha1.ModeEnforce}}
	w.anyone = r.IntN(2) == 0
	w.beside = unitSpec(&policy.Unit{ID: "w", LabelKey: "k", Wildcard: true, Mode: v1alpha1.ModeAudit}, w.rules(r, policy.Allow, r.IntN(2)), v1alpha1.ModeAudit)
	w.change(r)
	return w
}

func (w *interleaving) change(r *rand.Rand) {
	switch {
	case len(w.unit.Rules) > 0 && r.IntN(3) > 0:
		rules := slices.Clone(w.unit.Rules)
		i := r.IntN(len(rules))
		rules[i] = w.rules(r, rules[i].Effect, 1)[0]
		w.unit.Rules = rules
	default:
		w.unit.Rules = slices.Concat(w.rules(r, policy.Allow, r.IntN(4)), w.rules(r, policy.Deny, r.IntN(4)))
	}
	if r.IntN(8) == 0 {
		w.unit.Mode = []v1alpha1.Mode{v1alpha1.ModeAudit, v1alpha1.ModeEnforce}[r.IntN(2)]
	}
	w.unit.ClusterModes = nil
	for i := range r.IntN(3) {
		if w.unit.ClusterModes == nil {
			w.unit.ClusterModes = map[string]v1alpha1.Mode{}
		}
		w.unit.ClusterModes[fmt.Sprint("m", i+2)] = v1alpha1.ModeAudit
	}
}

func (w *interleaving) rules(r *rand.Rand, effect policy.Effect, n int) []policy.Rule {
	var out []policy.Rule
	for range n {
		rule := policy.Rule{Effect: effect, Ports: []v1alpha1.Port{{Port: interleavedPorts[r.IntN(2)], Protocol: v1alpha1.ProtocolTCP}}}
		if r.IntN(3) == 0 {
			rule.Ports = []v1alpha1.Port{{Port: 80, Protocol: v1alpha1.ProtocolTCP}, {Port: 443, Protocol: v1alpha1.ProtocolTCP}}
		}
		var values []string
		for i := range 12 {
			if r.IntN(2) == 0 {
				values = append(values, fmt.Sprint("a", i))
			}
			if r.IntN(4) == 0 {
				rule.Prefixes = append(rule.Prefixes, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24))
			}
		}
		switch {
		case len(values) > 0 && r.IntN(10) > 0:
			rule.Subjects = []policy.SubjectSelector{{LabelKey: "app", Values: values}}
		case !w.anyone || r.IntN(2) == 0:
			rule.Subjects = []policy.SubjectSelector{{LabelKey: "team", Any: true}}
		default:
			rule.Anyone, rule.Prefixes = true, nil
		}
		out = append(out, rule)
	}
	return out
}

func (w *interleaving) render(t *testing.T) revision {
	t.Helper()
	out, err := Enforcer{}.renderWithin(&w.unit, w.limit)
	if err != nil {
		t.Fatal(err)
	}
	v := Enforcer{}.variants(&w.unit)
	rev := revision{mode: w.unit.Mode, closed: len(divide(&w.unit, &v, w.limit).closed) > 0}
	for _, o := range out.Objects {
		// As a member has it.
		var spec map[string]any
		if err := json.Unmarshal([]byte(text(o.Object.Spec)), &spec); err != nil {
			t.Fatal(err)
		}
		if enforcer.Revision(spec) != o.Revision {
			t.Fatalf("%s has another revision when it is read back", o.Object.Name)
		}
		rev.specs = append(rev.specs, spec)
	}
	return rev
}

// mixtures give for each object the revision that a member has of it; -1: it has not got the object yet, or not any more.
// The first object is always there. They are all that exist, or some of very many.
func mixtures(r *rand.Rand, revisions []revision, objects int) [][]int {
	choices := make([][]int, objects)
	total := 1
	for o := range objects {
		for i, rev := range revisions {
			if o < len(rev.specs) {
				choices[o] = append(choices[o], i)
			}
		}
		if o > 0 {
			choices[o] = append(choices[o], -1)
		}
		total = min(total*len(choices[o]), 1<<20)
	}
	var out [][]int
	const most = 32
	for i := range min(total, most) {
		mix := make([]int, objects)
		rest := i
		for o, c := range choices {
			if total > most {
				rest = r.IntN(len(c))
			}
			mix[o] = c[rest%len(c)]
			rest /= len(c)
		}
		out = append(out, mix)
	}
	return out
}

// admits decides a connection by the specs of one pod, by Cilium's rules: a deny wins, then an allow, then the default.
func admits(specs []map[string]any, c interleavedConnection) bool {
	closed, allowed := false, false
	for _, spec := range specs {
		closed = closed || closes(spec)
		for _, rule := range list(spec["ingressDeny"]) {
			if c.matches(rule) {
				return false
			}
		}
		allowed = allowed || slices.ContainsFunc(list(spec["ingress"]), c.matches)
	}
	return allowed || !closed
}

func (c interleavedConnection) matches(rule any) bool {
	m, _ := rule.(map[string]any)
	peer := slices.ContainsFunc(list(m[fromEntities]), func(e any) bool { return e == "all" }) ||
		slices.ContainsFunc(list(m[fromEndpoints]), c.selected) ||
		slices.ContainsFunc(list(m[fromCIDRSet]), func(e any) bool {
			cidr, _ := e.(map[string]any)["cidr"].(string)
			p, err := netip.ParsePrefix(cidr)
			return err == nil && c.address != "" && p.Contains(netip.MustParseAddr(c.address))
		})
	return peer && slices.ContainsFunc(list(m["toPorts"]), func(l any) bool {
		return slices.ContainsFunc(list(l.(map[string]any)["ports"]), func(p any) bool { return p.(map[string]any)["port"] == strconv.Itoa(c.port) })
	})
}

// selected decides a selector of pods about the one label that the pod has beside its namespace and cluster.
func (c interleavedConnection) selected(selector any) bool {
	if c.address != "" {
		return false
	}
	labels := map[string]string{labelKey(c.key): c.value, clusterLabel: "m1", namespaceLabel: "default"}
	for _, e := range list(selector.(map[string]any)["matchExpressions"]) {
		expression := e.(map[string]any)
		value, has := labels[expression["key"].(string)]
		in := slices.Contains(list(expression["values"]), any(value))
		switch expression["operator"] {
		case "Exists":
			in = has
		case "DoesNotExist":
			in = !has
		case "NotIn":
			in = !in
		}
		if !in {
			return false
		}
	}
	return true
}

func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}
