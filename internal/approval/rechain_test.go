package approval_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

func stepNames(it approval.Item) (out []string) {
	for _, s := range it.Steps {
		out = append(out, s.Name+":"+string(s.State))
	}
	return out
}

// A chain is computed at submission. If the requirements become stricter before it is complete, it must not be approved by fewer people.
func TestStricterChainVoidsApprovals(t *testing.T) {
	const low, high = "acp.io/sensitivity: low", "acp.io/sensitivity: high"
	two := int32(2)
	policy := func(steps ...v1alpha1.ApprovalStep) []*v1alpha1.ApprovalPolicy {
		p := &v1alpha1.ApprovalPolicy{Spec: v1alpha1.ApprovalPolicySpec{Steps: steps}}
		p.Name = "p"
		return []*v1alpha1.ApprovalPolicy{p}
	}
	step := func(name string, from ...v1alpha1.Approver) v1alpha1.ApprovalStep {
		return v1alpha1.ApprovalStep{Name: name, Approvers: from}
	}
	quorum := step("team", "group:payments")
	quorum.Quorum, quorum.Count = "Count", &two
	allOf := step("team", "group:security")
	allOf.Quorum = "All"
	secure := step("team", "group:security")
	secured := step("team", "group:security")
	secured.Quorum, secured.Count = "Count", &two
	const dave, more = "members: [dave]", "members: [dave, erin, frank]"
	auto := step("owner", "resource.owner")
	auto.AutoApprove = "true"
	apart := policy(step("team", "group:payments"), step("owner", "resource.owner"))
	alone := policy(step("team", "group:payments"), step("owner", "resource.owner"))
	alone[0].Spec.SamePersonManySteps = true
	for name, tc := range map[string]struct {
		reason        string
		before, after []*v1alpha1.ApprovalPolicy
		old, new      string // in the catalog
		want          []string
		added         string // in the event; empty if nothing is void
	}{
		"raised": {
			"the security team was not asked", nil, nil, low, high,
			[]string{"leader:current", "owner:waiting", "security:waiting"}, "+ security: 1 of group:security",
		},
		"lowered": {"more people agree than needed", nil, nil, high, low, []string{"leader:approved", "owner:approved", "security:current"}, ""},
		"nothing": {"the same people", nil, nil, low, low, []string{"leader:approved", "owner:approved"}, ""},
		"another name": {
			"the same people by another name", policy(step("boss", "requester.leader"), step("owner", "resource.owner")),
			policy(step("leader", "requester.leader"), step("owner", "resource.owner")), "", "",
			[]string{"boss:approved", "owner:approved"}, "",
		},
		"higher quorum": {
			"one of the team was enough", policy(step("team", "group:payments"), step("owner", "resource.owner")),
			policy(quorum, step("owner", "resource.owner")), "", "", []string{"team:current", "owner:waiting"},
			"+ team: 2 of group:payments",
		},
		"everybody then, two now": {
			"the one who was the whole team is not enough for two of three", policy(secure),
			policy(secured), dave, more, []string{"team:current"}, "+ team: 2 of group:security",
		},
		"everybody then, more now": {
			"all of the team means those who joined, too", policy(allOf), policy(allOf),
			dave, more, []string{"team:current"}, "+ team: 2 of group:security",
		},
		"everybody then, fewer now": {
			"who left is not waited for by a new request; this one has had them all",
			policy(secure), policy(allOf), dave, dave, []string{"team:approved"}, "",
		},
		"one in all": {
			"one person may no longer fill all steps", alone, apart, "", "",
			[]string{"team:current", "owner:waiting"}, "+ each step by a different person",
		},
		"several in all": {"they may be one now", apart, alone, "", "", []string{"team:approved", "owner:approved"}, ""},
		"no longer alone": {
			"a condition had approved it", policy(auto, step("leader", "requester.leader")),
			policy(step("owner", "resource.owner"), step("leader", "requester.leader")), "",
			"", []string{"owner:current", "leader:waiting"}, "+ owner: 1 of resource.owner",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.policies(tc.before)
			if tc.old != "" && tc.old != dave {
				o.text = strings.Replace(o.text, high, tc.old, 1)
			}
			x, err := o.Submit(
				t.Context(),
				approval.Actor{ID: "alice"},
				approval.Request{Reason: "why", Items: []approval.RequestItem{{Application: "a", Resource: "r", Actions: []string{"x:y"}}}},
			)
			if err != nil {
				t.Fatal(err)
			}
			if x.Items[0].Steps[0].State == approval.StepCurrent && len(x.Items[0].Steps) > 1 {
				if x, err = o.decide(x, "carol", true); err != nil {
					t.Fatal(err)
				}
			}
			o.policies(tc.after)
			if tc.old != "" {
				o.text = strings.Replace(o.text, tc.old, tc.new, 1)
			}
			last := map[bool]string{true: "carol", false: "bob"}[name == "no longer alone"]
			if tc.old == dave {
				last = "dave"
			}
			_, err = o.decide(x, last, true)
			if want := map[bool]approval.Code{true: approval.CodeStale, false: ""}[tc.added != ""]; approval.CodeOf(err) != want {
				t.Errorf("%s: %v, want %q", tc.reason, err, want)
			}
			now, err := o.Store.Get(t.Context(), x.Number)
			if err != nil {
				t.Fatal(err)
			}
			if got := stepNames(now.Items[0]); !slices.Equal(got, tc.want) {
				t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
			}
			void := slices.IndexFunc(now.Events, func(e approval.Event) bool { return e.Kind == approval.EventVoided })
			if tc.added == "" {
				if void >= 0 {
					t.Errorf("%s: %+v", tc.reason, now.Events[void])
				}
				return
			}
			if void < 0 || now.Events[void].Comment != tc.added {
				t.Errorf("%s: the timeline says what is missing: %+v", tc.reason, now.Events)
			}
			for _, s := range now.Items[0].Steps {
				if len(s.Votes) > 0 {
					t.Errorf("the votes were for another chain: %+v", s)
				}
			}
		})
	}
}

// Asked again, it is approved by all that it needs now.
func TestRaisedSensitivityNeedsSecurity(t *testing.T) {
	o := newOffice(t)
	o.text = strings.Replace(o.text, "acp.io/sensitivity: high", "acp.io/sensitivity: low", 1)
	x, err := o.Submit(
		t.Context(),
		approval.Actor{ID: "alice"},
		approval.Request{Reason: "why", Items: []approval.RequestItem{{Application: "a", Resource: "r", Actions: []string{"x:y"}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.decide(x, "carol", true); err != nil {
		t.Fatal(err)
	}
	o.text = strings.Replace(o.text, "acp.io/sensitivity: low", "acp.io/sensitivity: high", 1)
	if _, err := o.decide(x, "bob", true); approval.CodeOf(err) != approval.CodeStale {
		t.Fatalf("bob would have been the last: %v", err)
	}
	for i, who := range []string{"carol", "bob", "dave"} {
		got, err := o.decide(x, who, true)
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
		if approved := got.State() != approval.StatePending; approved != (i == 2) {
			t.Errorf("after %s it is %s", who, got.State())
		}
	}
}
