package cilium

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv/golden"
)

// goldenTime is the instant at which every case is compiled.
var goldenTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A case is two files: the ACP objects, and what the members get. A document of the output is a complete object; the
// comment before it names its members when they differ, and the comments at the end what was refused.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	for _, path := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".in.yaml"), func(t *testing.T) {
			golden.Compare(t, strings.TrimSuffix(path, ".in.yaml")+".out.yaml", string(render(t, readInput(t, path))))
		})
	}
}

func readInput(t *testing.T, path string) policy.Input {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var in policy.Input
	for i, doc := range bytes.Split(text, []byte("\n---\n")) {
		var meta struct{ Kind string }
		if err := yaml.Unmarshal(doc, &meta); err != nil {
			t.Fatalf("%s, document %d: %v", path, i, err)
		}
		switch meta.Kind {
		case "AccessControlPolicy":
			in.Policies = append(in.Policies, parse[v1alpha1.AccessControlPolicy](t, doc))
		case "ResourceClass":
			in.ResourceClasses = append(in.ResourceClasses, parse[v1alpha1.ResourceClass](t, doc))
		case "SubjectClass":
			in.SubjectClasses = append(in.SubjectClasses, parse[v1alpha1.SubjectClass](t, doc))
		case "ProtectedResource":
			in.Resources = append(in.Resources, parse[v1alpha1.ProtectedResource](t, doc))
		case "ExternalWorkload":
			in.Workloads = append(in.Workloads, parse[v1alpha1.ExternalWorkload](t, doc))
		default:
			t.Fatalf("%s, document %d: kind %q is not read here", path, i, meta.Kind)
		}
	}
	return in
}

func parse[T any](t *testing.T, doc []byte) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict(doc, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func render(t *testing.T, in policy.Input) []byte {
	t.Helper()
	s := policy.NewSnapshot(in)
	var out bytes.Buffer
	refused := map[string]bool{}
	for _, r := range s.Refusals() {
		refused[refusal(r)] = true
	}
	for _, g := range s.ExternalGroups() {
		rendering, err := RenderGroup(g)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rendering.Objects {
			write(t, &out, "", o.Object)
		}
	}
	for _, u := range s.Compile(goldenTime) {
		rendering, err := Enforcer{}.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rendering.Objects {
			write(t, &out, "", o.Object)
			for _, cluster := range slices.Sorted(maps.Keys(o.Overrides)) {
				o.Object.Spec = o.Overrides[cluster]
				write(t, &out, fmt.Sprintf("# in %s, with revision %s\n", cluster, o.Revisions[cluster]), o.Object)
			}
		}
		for _, r := range slices.Concat(u.Refused, rendering.Refused) {
			if r.Reason == v1alpha1.RefusedShadowingDeny {
				refused[refusal(r)] = true
			}
		}
	}
	for _, line := range slices.Sorted(maps.Keys(refused)) {
		out.WriteString(line)
	}
	return out.Bytes()
}

func refusal(r policy.Refusal) string {
	where := ""
	if r.Resource != "" {
		where = " in " + r.Resource
	}
	return fmt.Sprintf("# refused %s%s: %s: %s\n", r.Ref, where, r.Reason, r.Message)
}

func write(t *testing.T, out *bytes.Buffer, comment string, o enforcer.Object) {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": o.GroupVersion, "kind": o.Kind,
		"metadata": map[string]any{"name": o.Name, "labels": o.Labels},
		"spec":     o.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		out.WriteString("---\n")
	}
	out.WriteString(comment)
	out.Write(text)
}

// TestGoldenInvariants checks the rules that every rendered object must obey.
func TestGoldenInvariants(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range inputs {
		for _, u := range policy.NewSnapshot(readInput(t, path)).Compile(goldenTime) {
			rendering, err := Enforcer{}.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range rendering.Objects {
				checkSpec(t, path, o.Object.Spec)
				for cluster, spec := range o.Overrides {
					checkSpec(t, path+" in "+cluster, spec)
				}
			}
		}
	}
}

func checkSpec(t *testing.T, where string, spec map[string]any) {
	t.Helper()
	deny := spec["enableDefaultDeny"].(map[string]any)
	if _, ok := deny["ingress"].(bool); !ok || deny["egress"] != false {
		t.Errorf("%s: enableDefaultDeny %v is not written in full, or touches egress", where, deny)
	}
	if value := spec["log"].(map[string]any)["value"].(string); len(value) > 32 {
		t.Errorf("%s: log value %q is longer than 32 characters", where, value)
	}
	for _, section := range []string{"ingress", "ingressDeny"} {
		rules, ok := spec[section].([]any)
		if section == "ingress" && len(rules) == 0 || ok && len(rules) == 0 {
			t.Errorf("%s: %s is empty: agents refuse it", where, section)
		}
		for _, r := range rules {
			rule := r.(map[string]any)
			_, ports := rule["toPorts"]
			kinds := 0
			for _, kind := range []string{fromEndpoints, fromEntities, fromCIDRSet} {
				if peers, ok := rule[kind]; ok {
					kinds++
					if len(anyList(peers)) == 0 {
						t.Errorf("%s: %s is empty: it may match anyone", where, kind)
					}
				}
			}
			if _, icmps := rule["icmps"]; (ports || icmps) && kinds != 1 {
				t.Errorf("%s: a rule of %s has %d kinds of peers: agents take one, and none matches anyone", where, section, kinds)
			}
			for _, e := range anyList(rule[fromEntities]) {
				if section == "ingressDeny" && (e == "all" || e == "host" || e == "cluster") {
					t.Errorf("%s: a deny of the entity %s cuts kubelet's probes", where, e)
				}
			}
			if section == "ingressDeny" && kinds == 0 {
				t.Errorf("%s: a deny without peers cuts kubelet's probes", where)
			}
			for _, list := range anyList(rule["toPorts"]) {
				if n := len(anyList(list.(map[string]any)["ports"])); n == 0 || n > 40 {
					t.Errorf("%s: %d ports in one list: agents take 1 to 40", where, n)
				}
			}
		}
	}
}

func anyList(v any) []any { l, _ := v.([]any); return l }

func TestRevisionSurvivesTheRoundTrip(t *testing.T) {
	in := readInput(t, "testdata/other-ports.in.yaml")
	for _, u := range policy.NewSnapshot(in).Compile(goldenTime) {
		rendering, err := Enforcer{}.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rendering.Objects {
			text, err := json.Marshal(o.Object.Spec)
			if err != nil {
				t.Fatal(err)
			}
			var back map[string]any // every number is a float64 now
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if got := enforcer.Revision(back); got != o.Revision || len(got) != 16 {
				t.Errorf("%s: revision %q after a round trip, want %q", o.Object.Name, got, o.Revision)
			}
			back["ingress"] = []any{map[string]any{}}
			if enforcer.Revision(back) == o.Revision {
				t.Errorf("%s: another spec has the same revision", o.Object.Name)
			}
		}
	}
}

func TestRenderRefusesUnusableUnits(t *testing.T) {
	good := policy.Unit{ID: "x", LabelKey: "k", LabelValue: "v", Mode: v1alpha1.ModeEnforce}
	peers := []policy.SubjectSelector{{LabelKey: "k", Values: []string{"v"}}}
	wild := func(u *policy.Unit) { u.Wildcard, u.LabelValue, u.Mode = true, "", v1alpha1.ModeAudit }
	tcp := []v1alpha1.Port{{Port: 80, Protocol: v1alpha1.ProtocolTCP}}
	cases := map[string]struct {
		reason string
		change func(*policy.Unit)
		ok     bool
	}{
		"Good":    {reason: "a unit without rules is closed, not unusable", change: func(*policy.Unit) {}, ok: true},
		"NoID":    {reason: "it would have no name", change: func(u *policy.Unit) { u.ID = "" }},
		"NoKey":   {reason: "it would select every pod", change: func(u *policy.Unit) { u.LabelKey = "" }},
		"NoValue": {reason: "it would select what carries an empty label", change: func(u *policy.Unit) { u.LabelValue = "" }},
		"NoPeers": {
			reason: "the rule would match anyone",
			change: func(u *policy.Unit) { u.Rules = []policy.Rule{{Effect: policy.Allow, Ports: tcp}} },
		},
		"NoPorts": {
			reason: "the rule would match every port",
			change: func(u *policy.Unit) { u.Rules = []policy.Rule{{Effect: policy.Allow, Subjects: peers}} },
		},
		"Wildcard":        {reason: "a wildcard needs no value", change: wild, ok: true},
		"WildcardEnforce": {reason: "it would close every workload of the class", change: func(u *policy.Unit) { wild(u); u.Mode = v1alpha1.ModeEnforce }},
		"WildcardCluster": {reason: "it would close them in a member", change: func(u *policy.Unit) {
			wild(u)
			u.ClusterModes = map[string]v1alpha1.Mode{"m1": v1alpha1.ModeEnforce}
		}},
		"WildcardDeny": {reason: "a deny counts only where its resource is enforced", change: func(u *policy.Unit) {
			wild(u)
			u.Rules = []policy.Rule{{Effect: policy.Deny, Subjects: peers, Ports: tcp}}
		}},
		"NoValues": {reason: "the peers came out empty", change: func(u *policy.Unit) {
			u.Rules = []policy.Rule{{Effect: policy.Allow, Subjects: []policy.SubjectSelector{{LabelKey: "k"}}, Ports: tcp}}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := good
			tc.change(&u)
			if _, err := (Enforcer{}).Render(u); (err == nil) != tc.ok {
				t.Errorf("%s: Render error = %v, want none: %v", tc.reason, err, tc.ok)
			}
		})
	}
}
