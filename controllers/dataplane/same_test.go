package dataplane

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	sameHead = "trnv1:rsc:o:redis:clusters:"
	sameApps = "trnv1:rsc:o:iam:sa:app/"
)

func sameNamed(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// sameObjects are a class, an enforced resource in members with the label zone=a, statements of each kind, and machines.
func sameObjects() []client.Object {
	say := func(sid string, effect v1alpha1.Effect, action string, subjects ...v1alpha1.Subject) v1alpha1.Statement {
		return v1alpha1.Statement{
			SID:       sid,
			Effect:    effect,
			Subjects:  subjects,
			Actions:   []v1alpha1.Action{v1alpha1.Action(action)},
			Resources: []v1alpha1.ResourceName{sameHead + "bobs"},
		}
	}
	grants := []v1alpha1.Statement{
		say("two", v1alpha1.EffectAllow, "redis:connect", sameApps+"1", sameApps+"2"),
		say("class", v1alpha1.EffectAllow, "redis:admin", sameApps+"*"),
		say("requests", v1alpha1.EffectAllow, "redis:read", sameApps+"3"),
		say("far", v1alpha1.EffectAllow, "redis:connect", sameApps+"far"),
		say(
			"never",
			v1alpha1.EffectDeny,
			"redis:connect",
			sameApps+"foe",
		),
		say("world", v1alpha1.EffectAllow, "redis:connect", "trnv1:rsc:o:net:cidr:198.51.100.0/24"),
		say("machines", v1alpha1.EffectDeny, "redis:admin", sameApps+"1"),
	}
	for i := range 30 {
		grants = append(grants, say(fmt.Sprint("one-", i), v1alpha1.EffectAllow, "redis:connect", v1alpha1.Subject(fmt.Sprint(sameApps, 100+i))))
	}
	return []client.Object{
		&v1alpha1.SubjectClass{ObjectMeta: sameNamed("app"), Spec: v1alpha1.SubjectClassSpec{Pattern: sameApps + "*", LabelKey: "example.com/app"}},
		&v1alpha1.ResourceClass{ObjectMeta: sameNamed("redis"), Spec: v1alpha1.ResourceClassSpec{
			Pattern:  sameHead + "*",
			LabelKey: "example.com/redis",
			Placement: v1alpha1.Placement{
				ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}},
			},
			OtherPorts: v1alpha1.OtherPortsAllow,
			Actions: []v1alpha1.ClassAction{
				{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}},
				{Name: "redis:admin", Ports: []v1alpha1.Port{{Port: 6380, Protocol: "TCP"}}},
				{Name: "redis:read", Ports: []v1alpha1.Port{{Port: 8080, Protocol: "TCP"}}, HTTP: []v1alpha1.HTTPMatch{{Method: "GET"}}},
			},
		}},
		&v1alpha1.ProtectedResource{
			ObjectMeta: sameNamed("bobs"),
			Spec:       v1alpha1.ProtectedResourceSpec{Resource: sameHead + "bobs", Mode: v1alpha1.ModeEnforce},
		},
		&v1alpha1.AccessControlPolicy{ObjectMeta: sameNamed("p"), Spec: v1alpha1.AccessControlPolicySpec{Statements: grants}},
		&v1alpha1.ExternalWorkload{
			ObjectMeta: sameNamed("vm"),
			Spec:       v1alpha1.ExternalWorkloadSpec{Subject: sameApps + "1", Addresses: []string{"10.5.0.0/24"}},
		},
	}
}

// sameFleet is what a case is about: what the adapter finds in each member, and so reports of it.
type sameFleet struct {
	reported []*v1alpha1.MemberDataplane
	noGroups bool
	// istio are the members' declarations about their Istio, and roots its root namespaces; empty for the usual one.
	istio, roots []string
	// more are further objects.
	more []client.Object
}

// annotations are those of a member's registration.
func (f sameFleet) annotations(i int) map[string]string {
	out := map[string]string{federation.AnnotationMesh: mesh(f.reported[i])}
	if f.istio != nil {
		out[federation.AnnotationIstio] = f.istio[i]
	}
	if f.roots != nil && f.roots[i] != "" {
		out[federation.AnnotationIstioRoot] = f.roots[i]
	}
	return out
}

// cluster is a member as the adapter reads it.
func (f sameFleet) cluster(i int) federation.Cluster {
	a := f.annotations(i)
	return federation.Cluster{
		Name:      f.name(i),
		Labels:    f.labels(i),
		Mesh:      mesh(f.reported[i]),
		Istio:     a[federation.AnnotationIstio],
		Locations: federation.ParseLocations(a),
	}
}

func (f sameFleet) name(i int) string { return fmt.Sprint("m", i+1) }

func (f sameFleet) labels(i int) map[string]string {
	if i == len(f.reported)-1 {
		return map[string]string{"zone": "b"}
	}
	return map[string]string{"zone": "a"}
}

// cached is the adapter's cache of the fleet, and its members.
func (f sameFleet) cached(t *testing.T) (*policycache.Cache, []federation.Cluster) {
	x := policycache.New(policycache.NewQueues(clock.RealClock{}))
	var informed testenv.Objects
	if _, err := x.Listen(t.Context(), &informed); err != nil {
		t.Fatal(err)
	}
	for _, o := range append(sameObjects(), f.more...) {
		if err := informed.Change(nil, o); err != nil {
			t.Fatal(err)
		}
	}
	var clusters []federation.Cluster
	var joined []policy.Cluster
	for i := range f.reported {
		if err := informed.Change(nil, f.report(i)); err != nil {
			t.Fatal(err)
		}
		c := f.cluster(i)
		clusters = append(clusters, c)
		joined = append(joined, policy.Cluster{Name: c.Name, Labels: c.Labels, Istio: c.Istio, IstioRoot: c.Locations.NonDefaultIstioRoot()})
	}
	x.SetGroupsSupported(!f.noGroups)
	names := map[string][]string{"example.com/app": {"1", "2", "far", "foe"}}
	if slices.ContainsFunc(f.reported, func(d *v1alpha1.MemberDataplane) bool { return d == nil || d.Identities == 0 }) {
		names = nil // the names come from the identities that are counted, and others read the count alone
	}
	x.SetLabels(names, true)
	x.SetClusters(joined)
	return x, clusters
}

// adapter compiles from its cache, and renders with what it finds in the members itself.
func (f sameFleet) adapter(t *testing.T, at time.Time) string {
	x, clusters := f.cached(t)
	of := func(member string) *v1alpha1.MemberDataplane {
		return f.reported[slices.IndexFunc(clusters, func(c federation.Cluster) bool { return c.Name == member })]
	}
	drivers := &Enforcers{NoHTTP: func(member string) message.Message {
		if d := of(member); d != nil {
			return message.Restore(d.NoHTTP, d.NoHTTPCode, d.NoHTTPParams)
		}
		return message.Message{}
	}}
	has := func(member, key, value string) (has, read bool) {
		d := of(member)
		if d == nil || !d.ValuesKnown {
			return false, false
		}
		for _, l := range d.Labels {
			has = has || string(l.Key) == key && (value == "" || slices.Contains(l.Values, value))
		}
		return has, true
	}
	view := x.View()
	return sameText(t, view.Snapshot, at, func(u *policy.Unit, targets []string) enforcer.Rendering {
		e, why := drivers.Of(v1alpha1.EnforcerCilium, view, clusters, at)
		if why != nil {
			t.Fatalf("%+v", why)
		}
		c, apart := e.(cilium.Enforcer).ForUnit(view.Snapshot, u, Meshes(clusters, has), targets, func(string) bool { return true }, at)
		out, err := c.Render(*u)
		if err != nil {
			t.Fatal(err)
		}
		in := map[string][]policy.Refusal{}
		for _, m := range targets {
			in[m] = slices.Concat(out.RefusedBy(m), apart.RefusedIn[m])
		}
		out.RefusedIn, out.Unenforced = in, append(out.Unenforced, apart.Notes...)
		return out
	})
}

func mesh(d *v1alpha1.MemberDataplane) string {
	if d == nil {
		return ""
	}
	return d.Mesh
}

// report is what the adapter writes about a member.
func (f sameFleet) report(i int) *v1alpha1.MemberCluster {
	d := f.reported[i].DeepCopy()
	if d != nil {
		d.NoGroups = f.noGroups
	}
	c := f.cluster(i)
	return &v1alpha1.MemberCluster{
		ObjectMeta: sameNamed(f.name(i)),
		Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Labels: f.labels(i), Dataplane: d,
			Istio: c.Istio, IstioRootNamespace: c.Locations.NonDefaultIstioRoot()},
	}
}

// portal compiles from the host cluster's cache, as the flow collector does.
func (f sameFleet) portal(t *testing.T, at time.Time) string {
	return prepared(t, f.hosted(t), at)
}

// hosted is the portal's snapshot of the fleet.
func (f sameFleet) hosted(t *testing.T) *policy.Snapshot {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	host := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(sameObjects(), f.more...)...)
	for i := range f.reported {
		host = host.WithObjects(f.report(i))
	}
	in, err := hostcluster.Input(t.Context(), host.Build())
	if err != nil {
		t.Fatal(err)
	}
	return policy.NewSnapshot(in)
}

// line compiles from files, as the command line does, with the registrations or without.
func (f sameFleet) line(t *testing.T, at time.Time, registered bool) string {
	return prepared(t, f.filed(t, registered), at)
}

// filed is the command line's snapshot of the fleet.
func (f sameFleet) filed(t *testing.T, registered bool) *policy.Snapshot {
	var docs []string
	add := func(kind string, o any) {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, fmt.Sprintf("apiVersion: acp.io/v1alpha1\nkind: %s\n%s", kind, text))
	}
	for _, o := range append(sameObjects(), f.more...) {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1.")
		add(kind, o)
	}
	for i := range f.reported {
		add("MemberCluster", f.report(i))
		if registered {
			annotations, err := json.Marshal(f.annotations(i))
			if err != nil {
				t.Fatal(err)
			}
			docs = append(
				docs,
				fmt.Sprintf("apiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata: {name: %s, labels: {zone: %s}, annotations: %s}\n",
					f.name(i), f.labels(i)["zone"], annotations),
			)
		}
	}
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(docs, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := (&manifest.Reader{}).Read(t.Context(), file)
	if err != nil || set.Failed() {
		t.Fatal(err, set.Issues)
	}
	return policy.NewSnapshot(policy.NewInput(set.Input.Objects(), set.Fleet()))
}

func prepared(t *testing.T, s *policy.Snapshot, at time.Time) string {
	return sameText(t, s, at, func(u *policy.Unit, _ []string) enforcer.Rendering {
		plan, err := registry.Prepare(v1alpha1.EnforcerCilium, registry.Job{Snapshot: s, Units: []policy.Unit{*u}, At: at})
		if err != nil {
			t.Fatal(err)
		}
		out, err := plan.Enforcer.Render(*u)
		if err != nil {
			t.Fatal(err)
		}
		return out
	})
}

// sameText is everything that a program makes of the fleet: units, groups, the objects of each member, and what members refuse.
func sameText(t *testing.T, s *policy.Snapshot, at time.Time, render func(u *policy.Unit, targets []string) enforcer.Rendering) string {
	t.Helper()
	units := s.Compile(at)
	all := []any{units, s.ExternalGroups(), s.Refusals()}
	for i := range units {
		targets := s.Targets(&units[i])
		r := render(&units[i], targets)
		all = append(all, targets, r.Objects, r.RefusedAmong(targets), r.Unenforced)
	}
	return jsonText(t, all)
}

// jsonText returns values as indented JSON, so that a difference shows where it is.
func jsonText(t *testing.T, values []any) string {
	t.Helper()
	text, err := json.MarshalIndent(values, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryProgramCompilesTheSame: the adapter from its cache, the portal and the flow collector from the host's cache, and the command
// line from files compile and render one fleet to the same bytes.
func TestEveryProgramCompilesTheSame(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	pods := func(d *v1alpha1.MemberDataplane, identities, most int32, values ...string) *v1alpha1.MemberDataplane {
		d.Identities, d.Labels = 2*identities, []v1alpha1.MemberLabel{{Key: "example.com/app", Identities: identities, Most: most, Values: values}}
		d.ValuesKnown = len(values) > 0
		return d
	}
	holds := func(entries int32) *v1alpha1.MemberDataplane {
		return &v1alpha1.MemberDataplane{PolicyMapEntries: entries}
	}
	in := func(mesh string, d *v1alpha1.MemberDataplane) *v1alpha1.MemberDataplane {
		d.Mesh = mesh
		return d
	}
	noHTTP := func(d *v1alpha1.MemberDataplane) *v1alpha1.MemberDataplane {
		d.NoHTTP = "Cilium's enable-l7-proxy is \"false\" in the ConfigMap"
		return d
	}
	for name, c := range map[string]struct {
		fleet sameFleet
		// holds has to be in the text, or the case would show nothing.
		holds, lacks string
	}{
		"NothingReported": {fleet: sameFleet{reported: []*v1alpha1.MemberDataplane{nil, nil, nil}}, holds: "requests", lacks: "Refused\": ["},
		"Identities": {
			fleet: sameFleet{reported: []*v1alpha1.MemberDataplane{pods(holds(16384), 9000, 4), pods(holds(16384), 9000, 4), holds(16384)}},
			holds: "(14733 of 16384 in m1)",
		},
		"BiggerMaps": {
			fleet: sameFleet{reported: []*v1alpha1.MemberDataplane{pods(holds(65536), 9000, 4), pods(holds(65536), 9000, 4), holds(256)}},
			lacks: "PolicyMapFull",
		},
		"SmallMap": {fleet: sameFleet{reported: []*v1alpha1.MemberDataplane{holds(16384), holds(512), holds(256)}}, holds: "(450 of 512 in m2)"},
		"NoProxy": {
			fleet: sameFleet{reported: []*v1alpha1.MemberDataplane{holds(16384), noHTTP(holds(16384)), holds(16384)}},
			holds: "in m2: rules about requests (method, path) cannot be enforced there",
		},
		"NoProxyAnywhere": {
			fleet: sameFleet{reported: []*v1alpha1.MemberDataplane{noHTTP(holds(16384)), noHTTP(holds(16384)), noHTTP(holds(16384))}},
			holds: "rules about requests (method, path) cannot be enforced there", lacks: "\"http\":",
		},
		"NoGroups": {
			fleet: sameFleet{reported: []*v1alpha1.MemberDataplane{holds(16384), holds(16384), holds(16384)}, noGroups: true},
			holds: "a deny of an external workload is not pushed to the members",
		},
		"TwoMeshes": {fleet: sameFleet{
			reported: []*v1alpha1.MemberDataplane{
				in("a", pods(holds(16384), 9, 2, "1", "2")), in("a", pods(holds(16384), 9, 2, "3")),
				in("b", pods(holds(16384), 9, 2, "far", "foe")),
			},
		},
			holds: "has pods in m3 only, which is in another cluster mesh"},
		"TwoMeshesUnread": {
			fleet: sameFleet{reported: []*v1alpha1.MemberDataplane{in("a", pods(holds(16384), 9, 2, "1")), in("a", holds(16384)), in("b", holds(16384))}},
			holds: "has or may have pods in m3",
		},
		"NoMeshes": {fleet: sameFleet{
			reported: []*v1alpha1.MemberDataplane{
				in("none", pods(holds(256), 90, 4, "1", "2")), in("none", noHTTP(pods(holds(512), 60, 2, "3"))),
				in("none", pods(holds(16384), 900, 64, "far", "foe")),
			},
		},
			holds: "0.0.0.0/0"},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.fleet.adapter(t, at)
			if c.holds != "" && !strings.Contains(want, strings.ReplaceAll(c.holds, "\"", "\\\"")) && !strings.Contains(want, c.holds) ||
				c.lacks != "" && strings.Contains(want, c.lacks) {
				t.Errorf("the adapter's text has to have %q and not %q:\n%s", c.holds, c.lacks, want)
			}
			for who, got := range map[string]string{
				"the portal": c.fleet.portal(t, at), "the command line": c.fleet.line(t, at, true),
				"the command line without registrations": c.fleet.line(t, at, false),
			} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s compiles something else; -adapter +it:\n%s", who, diff)
				}
			}
		})
	}
}
