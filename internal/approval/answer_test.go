package approval_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// changingStore is a store that calls a function in the transaction of each update, before the transition.
type changingStore struct {
	approval.TicketStore
	inTransaction func()
}

func (s changingStore) Update(ctx context.Context, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	return s.TicketStore.Update(ctx, number, func(t *approval.Ticket) error {
		s.inTransaction()
		return change(t)
	})
}

// TestSensitivityRaisedDuringADecisionOutside checks that a resource that becomes sensitive after the checks that precede the transaction
// is not decided outside of the portal. The approval policy asks the same person whatever the sensitivity, so that no other check
// refuses the decision.
func TestSensitivityRaisedDuringADecisionOutside(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		approve, raise bool
		code           approval.Code
		state          approval.State
	}{
		"approve, unchanged": {"it is not sensitive", true, false, "", approval.StateApproved},
		"approve, raised":    {"it is sensitive now", true, true, approval.CodeForbidden, approval.StatePending},
		"reject, unchanged":  {"it is not sensitive", false, false, "", approval.StateRejected},
		"reject, raised":     {"what is sensitive is not rejected outside, too", false, true, approval.CodeForbidden, approval.StatePending},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.setSensitivity(lowSensitivity)
			policy := &v1alpha1.ApprovalPolicy{Spec: v1alpha1.ApprovalPolicySpec{
				Steps: []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{"resource.owner"}}},
			}}
			policy.Name = "p"
			o.policies([]*v1alpha1.ApprovalPolicy{policy})
			x := o.submitOne()
			o.Store = changingStore{o.Store, func() {
				if tc.raise {
					o.setSensitivity(highSensitivity)
				}
			}}
			bob := approval.Actor{ID: "bob", Through: approval.ThroughSlack}
			_, err := o.DecideOutside(t.Context(), bob, x.Number, x.Version, x.Items[0].Shown.Digest, tc.approve, "comment")
			if approval.CodeOf(err) != tc.code || tc.code == "" && err != nil {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.code)
			}
			got, err := o.Store.Get(t.Context(), x.Number)
			if err != nil {
				t.Fatal(err)
			}
			if got.State() != tc.state || tc.code != "" && got.Version != x.Version {
				t.Errorf("%s: it is %s in version %d, want %s", tc.reason, got.State(), got.Version, tc.state)
			}
		})
	}
}

// TestAnswerableOf checks which tickets a message outside of the portal can decide.
func TestAnswerableOf(t *testing.T) {
	m := quiet(t)
	c := m.catalogs[0]
	for name, tc := range map[string]struct {
		reason string
		change func(*approval.Ticket)
		want   bool
	}{
		"a grant":      {"a resource that is not highly sensitive", func(*approval.Ticket) {}, true},
		"a revocation": {"it only takes access away", func(t *approval.Ticket) { t.Kind = approval.KindRevoke }, true},
		"high":         {"the resource is highly sensitive", func(t *approval.Ticket) { t.Items[0].ResourceName = highRes }, false},
		"unknown":      {"its sensitivity is not known", func(t *approval.Ticket) { t.Items[0].ResourceName += "-gone" }, false},
		"several":      {"many decisions at once", func(t *approval.Ticket) { t.Items = append(t.Items, t.Items[0]) }, false},
		"break-glass":  {"sensitive", func(t *approval.Ticket) { t.BreakGlass = true }, false},
		"longer break-glass": {
			"it continues break-glass access", func(t *approval.Ticket) { t.Items[0].Earlier.GlassSince = time.Unix(1, 0) }, false,
		},
		"override": {"sensitive", func(t *approval.Ticket) { t.Items[0].Override = &approval.Override{} }, false},
		"adopt":    {"the application did not ask", func(t *approval.Ticket) { t.Items[0].Adopt = true }, false},
		"a mode":   {"a change of an object", func(t *approval.Ticket) { t.Kind = approval.KindMode }, false},
		"a class":  {"a change of an object", func(t *approval.Ticket) { t.Kind = approval.KindClass }, false},
		"a change": {"a change of an object", func(t *approval.Ticket) { t.Items[0].Change = &approval.Change{} }, false},
		"decided":  {"nothing waits", func(t *approval.Ticket) { t.Items[0].State = approval.StateApproved }, false},
		"no lines": {"nothing was shown", func(t *approval.Ticket) { t.Items[0].Shown = approval.Shown{} }, false},
		"many lines": {"a message cannot show them", func(t *approval.Ticket) {
			t.Items[0].Shown = approval.NewShown(strings.Split("abcdefghijklmnopqrstu", ""))
		}, false},
		"long lines": {
			"a message cannot show them", func(t *approval.Ticket) { t.Items[0].Shown = approval.NewShown([]string{strings.Repeat("x", 2001)}) }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tk := &approval.Ticket{Kind: approval.KindGrant, Version: 4, Items: []approval.Item{
				{State: approval.StatePending, ResourceName: lowRes, Shown: approval.NewShown([]string{"allow a"})},
			}}
			tc.change(tk)
			got, ok := approval.AnswerableOf(c, tk)
			if ok != tc.want || ok && (got.Version != 4 || got.Digest != tk.Items[0].Shown.Digest || len(got.Lines) != len(tk.Items[0].Shown.Lines)) {
				t.Errorf("%s: got %+v %v", tc.reason, got, ok)
			}
		})
	}
}
