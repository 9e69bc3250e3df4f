package cilium

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// A member whose agents cannot enforce rules about requests gets the unit without them, closed and with everything else, and
// the statements are refused there and nowhere else.
func TestMembersWithoutProxyGetNoRulesAboutRequests(t *testing.T) {
	tcp := []v1alpha1.Port{{Port: 8080, Protocol: v1alpha1.ProtocolTCP}}
	web, plain := policy.Ref{Policy: "p", SID: "web"}, policy.Ref{Policy: "p", SID: "plain"}
	unit := func() policy.Unit {
		return policy.Unit{ID: "x", Resource: "r", LabelKey: "k", LabelValue: "v", Mode: v1alpha1.ModeEnforce, Rules: []policy.Rule{
			{Effect: policy.Allow, Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: []string{"1"}}}, Ports: tcp, From: []policy.Ref{plain}},
			{
				Effect:   policy.Allow,
				Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: []string{"2"}}},
				Ports:    tcp,
				HTTP:     []v1alpha1.HTTPMatch{{Method: "GET"}},
				From:     []policy.Ref{web},
			},
			{Effect: policy.Deny, Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: []string{"3"}}}, Ports: tcp, From: []policy.Ref{plain}},
		}}
	}
	lacks := Member{NoHTTP: message.Verbatim("the proxy is off")}
	for _, c := range []struct {
		reason  string
		members map[string]Member
		modes   map[string]v1alpha1.Mode
		only    bool // the rule about requests
		without []string
	}{
		{reason: "nobody lacks it", members: map[string]Member{"m1": {}, "m2": {}}},
		{reason: "one of two", members: map[string]Member{"m1": {}, "m2": lacks}, without: []string{"m2"}},
		{reason: "most", members: map[string]Member{"m1": {}, "m2": lacks, "m3": lacks}, without: []string{"m2", "m3"}},
		{
			reason:  "all, for several reasons",
			members: map[string]Member{"m1": {NoHTTP: message.Verbatim("unknown")}, "m2": lacks}, without: []string{"m1", "m2"},
		},
		{reason: "nothing else is allowed", members: map[string]Member{"m1": {}, "m2": lacks}, only: true, without: []string{"m2"}},
		{
			reason: "a member in Audit gets no such rules anyway", members: map[string]Member{"m1": {}, "m2": lacks},
			modes: map[string]v1alpha1.Mode{"m2": v1alpha1.ModeAudit},
		},
		{
			reason: "the only member in Enforce", members: map[string]Member{"m1": {}, "m2": lacks},
			modes: map[string]v1alpha1.Mode{"m1": v1alpha1.ModeAudit}, without: []string{"m2"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			u := unit()
			u.ClusterModes = c.modes
			if c.only {
				u.Rules = u.Rules[1:2]
			}
			full, err := Enforcer{}.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			cut := u
			cut.Rules = withoutHTTP(u.Rules)
			less, err := Enforcer{}.Render(cut)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Enforcer{Members: c.members}.Render(u)
			if err != nil {
				t.Fatal(err)
			}
			for m := range c.members {
				want, refused := full, []policy.Ref(nil)
				for _, w := range c.without {
					if w == m {
						want, refused = less, []policy.Ref{web}
					}
				}
				if d := cmp.Diff(want.Objects[0].RevisionIn(m), got.Objects[0].RevisionIn(m)); d != "" {
					t.Errorf("%s: %s", m, d)
				}
				spec := got.Objects[0].Object.Spec
				if other, ok := got.Objects[0].Overrides[m]; ok {
					spec = other
				}
				text, err := json.Marshal(spec)
				if err != nil {
					t.Fatal(err)
				}
				if len(refused) > 0 &&
					(strings.Contains(string(text), "http") || !strings.Contains(string(text), `"enableDefaultDeny":{"egress":false,"ingress":true}`)) {
					t.Errorf("%s: %s", m, text)
				}
				var refs []policy.Ref
				for _, r := range got.RefusedBy(m) {
					refs = append(refs, r.Ref)
					if !strings.Contains(r.Message.Text, c.members[m].NoHTTP.Text) {
						t.Errorf("%s: the refusal does not say why: %s", m, r.Message)
					}
				}
				if d := cmp.Diff(refused, refs, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%s: %s", m, d)
				}
			}
		})
	}
}

// With many members, an object holds the specs of the fewer.
func TestFewSpecsWhereMostMembersLackTheProxy(t *testing.T) {
	members := map[string]Member{}
	for i := range 500 {
		members[fmt.Sprintf("m%d", i)] = Member{NoHTTP: message.Verbatim("the proxy is off")}
	}
	members["m0"] = Member{}
	u := policy.Unit{
		ID:         "x",
		Resource:   "r",
		LabelKey:   "k",
		LabelValue: "v",
		Mode:       v1alpha1.ModeEnforce,
		Rules: []policy.Rule{{Effect: policy.Allow, Anyone: true,
			Ports: []v1alpha1.Port{{Port: 80, Protocol: v1alpha1.ProtocolTCP}}, HTTP: []v1alpha1.HTTPMatch{{Method: "GET"}}}},
	}
	r, err := Enforcer{Members: members}.Render(u)
	if err != nil || len(r.Objects) != 1 || len(r.Objects[0].Overrides) != 1 {
		t.Errorf("%d objects, %d specs of members, %v", len(r.Objects), len(r.Objects[0].Overrides), err)
	}
}
