package views

import (
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
)

func TestGrantedAt(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 11, 20, 10, 0, s, 0, time.UTC) }
	for name, tc := range map[string]struct {
		reason string
		events []approval.Event
		want   time.Time
	}{
		"pending": {"nothing was granted", []approval.Event{{At: at(1), Kind: approval.EventSubmitted}}, time.Time{}},
		"approved": {
			"it is granted, and not in force everywhere",
			[]approval.Event{{At: at(1), Kind: approval.EventApproved}, {At: at(2), Kind: approval.EventWritten}}, at(1),
		},
		"effective": {"it is in force", []approval.Event{{At: at(1), Kind: approval.EventApproved}, {At: at(3), Kind: approval.EventEffective}}, at(3)},
		"other": {
			"it is another item that is in force",
			[]approval.Event{{At: at(1), Kind: approval.EventApproved}, {At: at(3), Kind: approval.EventEffective, Item: 1}}, at(1),
		},
		"again": {
			"it was out of force between",
			[]approval.Event{{At: at(3), Kind: approval.EventEffective}, {At: at(4), Kind: approval.EventFailed}, {At: at(5), Kind: approval.EventEffective}},
			at(5),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := GrantedAt(&approval.Ticket{Events: tc.events}, 0); !got.Equal(tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestItemOfStatement checks that a statement is attributed to the ticket that asked for it, by its names as written and by those of a
// connection, and never because it only has a sid like that of a ticket.
func TestItemOfStatement(t *testing.T) {
	const (
		apps  = "trnv1:rsc:trip-com:iam:sa:app/"
		redis = "trnv1:rsc:trip-com:redis:clusters:"
		cidr  = "trnv1:rsc:trip-com:net:cidr:10.0.0.0/8"
	)
	scope := func(subjects ...string) *approval.StatementScope {
		return &approval.StatementScope{Effect: v1alpha1.EffectDeny, Subjects: subjects, Resources: []string{redis + "a", redis + "b*"}}
	}
	grant := func(policyName, subject, resource string) policy.Grant {
		return policy.Grant{Ref: policy.Ref{Policy: policyName, SID: approval.SID(7, 0)}, Subject: subject, Resource: resource}
	}
	for name, tc := range map[string]struct {
		scope *approval.StatementScope
		grant policy.Grant
		want  bool
	}{
		"as written":               {scope(apps+"1", apps+"2"), grant(policy.StatementsPolicy, apps+"2", redis+"b*"), true},
		"in a later shard":         {scope(apps + "1"), grant(policy.PolicyShard(policy.StatementsPolicy, 2), apps+"1", redis+"a"), true},
		"of a connection":          {scope(apps + "*"), grant(policy.StatementsPolicy, apps+"9", redis+"b1"), true},
		"from an address":          {scope(cidr), grant(policy.StatementsPolicy, "", redis+"a"), true},
		"of anyone":                {scope("*"), grant(policy.StatementsPolicy, "", redis+"a"), true},
		"another subject":          {scope(apps + "1"), grant(policy.StatementsPolicy, apps+"2", redis+"a"), false},
		"another resource":         {scope(apps + "1"), grant(policy.StatementsPolicy, apps+"1", redis+"c"), false},
		"an address, of a name":    {scope(apps + "1"), grant(policy.StatementsPolicy, "", redis+"a"), false},
		"in a policy of one name":  {scope(apps + "1"), grant(policy.PolicyNameFor(redis+"a"), apps+"1", redis+"a"), false},
		"a grant, not a statement": {nil, grant(policy.StatementsPolicy, apps+"1", redis+"a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			o := Origins{tickets: map[int64]*approval.Ticket{7: {Number: 7, Items: []approval.Item{{SID: approval.SID(7, 0), Scope: tc.scope}}}}}
			if got, _ := o.Item(tc.grant); (got != nil) != tc.want {
				t.Errorf("attributed: %v, want %v", got != nil, tc.want)
			}
		})
	}
}

// TestReasonIsForThoseWhoMaySeeTheTicket checks that nobody reads the reason of a ticket that they may not open.
func TestReasonIsForThoseWhoMaySeeTheTicket(t *testing.T) {
	const app, cache = "trnv1:rsc:trip-com:iam:sa:app/1", "trnv1:rsc:trip-com:redis:clusters:a"
	g := policy.Grant{Ref: policy.Ref{Policy: policy.PolicyNameFor(cache), SID: approval.SID(7, 0)}, Subject: app, Resource: cache}
	ticket := &approval.Ticket{Number: 7, Requester: "alice", Reason: "a secret plan",
		Items: []approval.Item{{SID: approval.SID(7, 0), ApplicationName: app, ResourceName: cache}}}
	c := catalog.Build(nil)
	for who, sees := range map[string]bool{"alice": true, "erin": false} {
		o := Origins{Who: approval.Actor{ID: who}, tickets: map[int64]*approval.Ticket{7: ticket}}
		id, visible, reason := o.Reason(c, g)
		if id == nil || *id != "T-7" || visible == nil || *visible != sees || (reason != nil) != sees {
			t.Errorf("%s: %v, visible %v, reason %v", who, id, visible, reason)
		}
	}
	g.Ref.SID = "by-hand"
	if id, visible, reason := (Origins{}).Reason(c, g); id != nil || visible != nil || reason != nil {
		t.Errorf("without a ticket: %v, %v, %v", id, visible, reason)
	}
}
