package approval_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Evidence that was sufficient at the submission must be sufficient at the last approval.
func TestEvidenceIsCheckedAgainAtTheLastApproval(t *testing.T) {
	little := approval.Score{Value: 41, Threshold: 70, Missing: []message.Message{message.Verbatim("The flows of m3 are not watched any more.")}}
	enough := approval.Score{Value: 100, Threshold: 70, Enough: true}
	for name, tc := range map[string]struct {
		reason   string
		then     flows
		override bool
		want     approval.Code
		state    approval.State
	}{
		"still enough":      {"nothing changed", flows{score: enough}, false, "", approval.StateApproved},
		"lost meanwhile":    {"a member is not watched any more", flows{score: little}, false, approval.CodeEvidence, approval.StatePending},
		"unknown meanwhile": {"the flow store cannot be read", flows{err: errors.New("away")}, false, approval.CodeEvidence, approval.StatePending},
		"overridden":        {"the override was about just that", flows{score: little}, true, "", approval.StateApproved},
		"stopped meanwhile": {
			"denials stopped the rollout", flows{score: enough, stopped: message.Verbatim("30 refused.")},
			false, approval.CodeGuard, approval.StatePending,
		},
		"stopped, overridden": {
			"an override does not go around the guard", flows{score: little, stopped: message.Verbatim("30 refused.")},
			true, approval.CodeGuard, approval.StatePending,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t)
			m.catalog = m.catalogs[0]
			seen := &flows{score: enough}
			request, who, approver := mode(v1alpha1.ModeEnforce, nil), "bob", "carol"
			if tc.override {
				seen.score, request.Override, who, approver = little, "an incident", "erin", "bob"
			}
			m.svc.Evidence = seen
			m.host.SetObject(approval.ObjectProtectedResource, policy.PolicyNameFor(lowRes), []byte(`{"resource":"`+lowRes+`","mode":"Audit"}`))
			x := m.submit(who, request)
			*seen = tc.then
			_, err := m.svc.Decide(t.Context(), m.actorOf(approver), x.Number, approval.EveryItem, m.version(x.Number), true, "")
			if approval.CodeOf(err) != tc.want {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if tc.want == approval.CodeEvidence && !strings.Contains(err.Error(), "Not enough is known any more") {
				t.Errorf("%s: %v", tc.reason, err)
			}
			m.is(x.Number, tc.state)
			if tc.want == "" {
				return
			}
			if votes := m.get(x.Number).Items[0].Steps[0].Votes; len(votes) > 0 {
				t.Errorf("%s: a vote that cannot count was kept: %+v", tc.reason, votes)
			}
			if _, err := m.svc.Decide(t.Context(), m.actorOf(approver), x.Number, approval.EveryItem, m.version(x.Number), false, "not now"); err != nil {
				t.Errorf("it can be rejected all the same: %v", err)
			}
		})
	}
}

func TestClassChangesThatClose(t *testing.T) {
	port := func(n int32) []v1alpha1.Port { return []v1alpha1.Port{{Port: n, Protocol: v1alpha1.ProtocolTCP}} }
	in := func(names ...v1alpha1.ClusterName) v1alpha1.Placement { return v1alpha1.Placement{Clusters: &names} }
	base := func() v1alpha1.ResourceClassSpec {
		return v1alpha1.ResourceClassSpec{
			Pattern:    "trnv1:rsc:o:redis:clusters:*",
			LabelKey:   "redis",
			OtherPorts: v1alpha1.OtherPortsDeny,
			Placement:  in("m1", "m2"),
			Actions:    []v1alpha1.ClassAction{{Name: "redis:connect", Ports: port(6379)}},
			Enforcers:  []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
		}
	}
	type change func(*v1alpha1.ResourceClassSpec)
	open := change(func(c *v1alpha1.ResourceClassSpec) { c.OtherPorts = v1alpha1.OtherPortsAllow })
	adds := change(func(c *v1alpha1.ResourceClassSpec) {
		c.Actions = append(c.Actions, v1alpha1.ClassAction{Name: "redis:admin", Ports: port(6380)})
	})
	for name, tc := range map[string]struct {
		reason        string
		before, after []change
		want          bool
	}{
		"Nothing":               {"nothing is refused that was not", nil, nil, false},
		"OtherPortsDeny":        {"ports without an action close", []change{open}, nil, true},
		"OtherPortsAllow":       {"ports without an action open", nil, []change{open}, false},
		"AnActionMore":          {"a port that nobody was let in at gets an action", nil, []change{adds}, false},
		"AnActionMoreAmongOpen": {"a port that was open to everybody gets an action", []change{open}, []change{open, adds}, true},
		"AnActionLess":          {"grants of the action are gone", []change{adds}, nil, true},
		"AnotherPort": {
			"grants of the action mean another port", nil,
			[]change{func(c *v1alpha1.ResourceClassSpec) { c.Actions[0].Ports = port(6390) }}, true,
		},
		"AMemberMore": {
			"what is enforced is enforced in one more", nil,
			[]change{func(c *v1alpha1.ResourceClassSpec) { c.Placement = in("m1", "m2", "m3") }}, true,
		},
		"AMemberLess": {"nothing is enforced there any more", nil, []change{func(c *v1alpha1.ResourceClassSpec) { c.Placement = in("m1") }}, false},
		"ASelector": {"it may select others", nil, []change{func(c *v1alpha1.ResourceClassSpec) {
			c.Placement = v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}
		}}, true},
		"AnotherEnforcer": {
			"it may refuse what the other let in", nil,
			[]change{func(c *v1alpha1.ResourceClassSpec) { c.Enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio} }}, true,
		},
		"AModeForOthers": {"Observe closes nothing", nil, []change{func(c *v1alpha1.ResourceClassSpec) { c.DefaultMode = v1alpha1.ModeObserve }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := base(), base()
			for _, f := range tc.before {
				f(&before)
			}
			for _, f := range tc.after {
				f(&after)
			}
			text := func(spec v1alpha1.ResourceClassSpec) json.RawMessage {
				b, err := json.Marshal(spec)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			c := &approval.Change{Kind: approval.ObjectResourceClass, Name: "redis", Verb: approval.VerbUpdate, Before: text(before), After: text(after)}
			if got := approval.Closes(c); got != tc.want {
				t.Errorf("%s: closes %v", tc.reason, got)
			}
		})
	}
}

// A class change that closes what is enforced needs the evidence of the resources that it closes further.
func TestAClassChangeThatClosesNeedsEvidence(t *testing.T) {
	spec := func(ports v1alpha1.OtherPorts) json.RawMessage {
		return json.RawMessage(
			`{"pattern":"trnv1:rsc:o:redis:clusters:*","labelKey":"redis","otherPorts":"` + string(
				ports,
			) + `","actions":[{"name":"redis:connect","ports":[{"port":6379,"protocol":"TCP"}]}],"placement":{"clusters":["m1"]}}`,
		)
	}
	ask := func(ports v1alpha1.OtherPorts, override string) approval.Request {
		return approval.Request{
			Kind:     approval.KindClass,
			Override: override,
			Reason:   "because",
			Items: []approval.RequestItem{
				{Object: &approval.ObjectChange{Kind: approval.ObjectResourceClass, Name: "redis", Verb: approval.VerbUpdate, Spec: spec(ports)}},
			},
		}
	}
	little := approval.ClassEvidence{Resource: lowRes, Score: approval.Score{Value: 0, Threshold: 70}}
	for name, tc := range map[string]struct {
		reason        string
		before, after v1alpha1.OtherPorts
		class         approval.ClassEvidence
		override      string
		want          approval.Code
	}{
		"nobody enforces": {"nothing is closed", v1alpha1.OtherPortsAllow, v1alpha1.OtherPortsDeny, approval.ClassEvidence{}, "", ""},
		"too little":      {"an enforced resource would refuse more", v1alpha1.OtherPortsAllow, v1alpha1.OtherPortsDeny, little, "", approval.CodeEvidence},
		"overridden":      {"with a reason", v1alpha1.OtherPortsAllow, v1alpha1.OtherPortsDeny, little, "an incident", ""},
		"opens":           {"opening needs no evidence", v1alpha1.OtherPortsDeny, v1alpha1.OtherPortsAllow, little, "", ""},
		"stopped": {"its rollout was stopped", v1alpha1.OtherPortsAllow, v1alpha1.OtherPortsDeny,
			approval.ClassEvidence{Resource: lowRes, Stopped: message.Verbatim("30 refused.")}, "an incident",
			approval.CodeGuard},
	} {
		t.Run(name, func(t *testing.T) {
			m := quiet(t)
			m.catalog = m.catalogs[0]
			m.svc.Evidence = &flows{class: tc.class}
			m.host.SetObject(approval.ObjectResourceClass, "redis", spec(tc.before))
			_, err := m.svc.Submit(t.Context(), m.actorOf("erin"), ask(tc.after, tc.override))
			if approval.CodeOf(err) != tc.want {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
