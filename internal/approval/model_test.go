package approval_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/message"
)

// next is every transition that a ticket may make; what is not here must never happen.
var next = map[approval.State][]approval.State{
	approval.StatePending:   {approval.StateApproved, approval.StateRejected, approval.StateWithdrawn},
	approval.StateApproved:  {approval.StateApplying, approval.StateFailed, approval.StateRevoking},
	approval.StateApplying:  {approval.StateEffective, approval.StateFailed, approval.StateRevoking},
	approval.StateEffective: {approval.StateFailed, approval.StateRevoking},
	approval.StateFailed:    {approval.StateApplying, approval.StateEffective, approval.StateRevoking},
	approval.StateRevoking:  {approval.StateRevoked, approval.StateExpired},
	approval.StateRevoked:   {approval.StateRevoking}, // its statement was put back by hand
	approval.StateExpired:   {approval.StateRevoking}, // the same
}

var people = []string{"alice", "bob", "carol", "dan", "eve"}

// TestModel walks random sequences of everything that can happen to a ticket and checks what must always hold.
func TestModel(t *testing.T) {
	reached := map[approval.State]bool{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: "alice", Reason: "why", Items: []approval.Item{
			{
				Application:     "a",
				ApplicationName: "na",
				Resource:        "r",
				ResourceName:    "nr",
				Actions:         []string{"x:y"},
				Duration:        time.Duration(r.IntN(2)) * time.Hour,
				Steps: []approval.Step{
					{Name: "leader", Approvers: subset(r)},
					{Name: "owner", Approvers: subset(r), Quorum: 1 + r.IntN(2)},
					{Name: "security", Approvers: subset(r)},
				},
			},
		}},
			approvaltest.Start)
		x.Numbered(7)
		x.Stored()
		now, log := approvaltest.Start, ""
		for range 40 {
			now = now.Add(time.Duration(r.IntN(600)) * time.Second)
			before := x.Clone()
			name, err := step(r, x, now)
			log += fmt.Sprintf("%s(%v) -> %s\n", name, err, x.State())
			if fault := broken(before, x, err); fault != "" {
				t.Fatalf("seed %d: %s after\n%s", seed, fault, log)
			}
			reached[x.State()] = true
			x.Stored()
		}
	}
	for s := range next {
		if !reached[s] {
			t.Errorf("the walk never came to %s, so it proves nothing about it", s)
		}
	}
}

func subset(r *rand.Rand) []string {
	var out []string
	for _, p := range people {
		if r.IntN(2) == 0 {
			out = append(out, p)
		}
	}
	return append(out, "frank")
}

func step(r *rand.Rand, x *approval.Ticket, now time.Time) (string, error) {
	who := append(slices.Clone(people), "frank", "gina")[r.IntN(7)]
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		return "approve " + who, x.Vote(0, approval.Vote{Person: who, OnBehalfOf: []string{"", "", "bob"}[r.IntN(3)], Approve: true, At: now})
	case 4:
		if r.IntN(8) > 0 {
			return "none", nil
		}
		return "reject " + who, x.Vote(0, approval.Vote{Person: who, Comment: []string{"", "no"}[r.IntN(2)], At: now})
	case 5:
		if r.IntN(8) > 0 {
			return "none", nil
		}
		return "withdraw " + who, x.Withdraw(who, []string{"", "no"}[r.IntN(2)], now)
	case 6:
		if r.IntN(4) > 0 {
			return "none", nil
		}
		return "revoke " + who, x.Revoke(0, who, []string{"", "no"}[r.IntN(2)], now)
	case 7:
		x.Expire(0, now)
		return "expire", nil
	case 8:
		x.Written(0, "p", approval.Written{Generation: int64(1 + r.IntN(3)), UID: "u"}, now)
		return "written", nil
	case 9:
		x.Removed(0, "p", approval.Written{Generation: int64(1 + r.IntN(3)), UID: "u"}, now)
		return "removed", nil
	case 10:
		if r.IntN(4) == 0 {
			x.Fail(0, message.Verbatim("refused"), now)
			return "fail", nil
		}
		x.SetWaiting(0, message.Verbatim("waits"), now)
		return "hold", nil
	default:
		p := status(r, x)
		switch {
		case approval.Vanished(x.Items[0], p):
			x.Fail(0, message.TicketStatementVanished(), now)
			return "vanished", nil
		case approval.Altered(x.Items[0], p):
			x.Fail(0, message.TicketStatementAltered(), now)
			return "altered", nil
		case approval.Returned(x.Items[0], p):
			x.Remove(0, now)
			return "returned", nil
		}
		x.Progress(0, p, now)
		return "progress", nil
	}
}

func status(r *rand.Rand, x *approval.Ticket) *v1alpha1.AccessControlPolicy {
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: types.UID([]string{"u", "v"}[r.IntN(2)]), Generation: int64(r.IntN(4))}}
	p.Status.ObservedGeneration = int64(r.IntN(4))
	if r.IntN(4) > 0 {
		s := approval.Statement(x.Items[0])
		if r.IntN(8) == 0 {
			s.Subjects = append(s.Subjects, "another")
		}
		p.Spec.Statements = []v1alpha1.Statement{s}
	}
	if r.IntN(8) == 0 {
		p.Status.Refused = []v1alpha1.RefusedStatement{{SID: x.Items[0].SID, Message: "no"}}
	}
	u := v1alpha1.PolicyUnit{Resource: "nr", Revision: "r1"}
	if r.IntN(2) == 0 {
		u.SIDs = []string{x.Items[0].SID}
	}
	for _, m := range []string{"m1", "m2"} {
		c := v1alpha1.ClusterState{Name: v1alpha1.ClusterName(m), State: []v1alpha1.MemberState{v1alpha1.MemberRealized, v1alpha1.MemberPending}[r.IntN(2)]}
		c.DesiredRevision = []string{"", "r1"}[r.IntN(2)]
		u.Clusters = append(u.Clusters, c)
	}
	if r.IntN(4) > 0 {
		p.Status.Units = []v1alpha1.PolicyUnit{u}
	}
	return p
}

// broken names the invariant that does not hold.
func broken(before, after *approval.Ticket, err error) string {
	if before.State() != after.State() && !slices.Contains(next[before.State()], after.State()) {
		return fmt.Sprintf("%s became %s", before.State(), after.State())
	}
	if err != nil && (after.Dirty() || after.State() != before.State()) {
		return "a refused operation changed the ticket"
	}
	if after.Dirty() != (after.Version == before.Version+1) || !after.Dirty() && after.Version != before.Version {
		return "the version rises by one with each change, and only then"
	}
	if len(after.Events) < len(before.Events) ||
		(before.State() != after.State() && len(after.Events) == len(before.Events) && after.State() != approval.StateApplying) {
		return "the timeline does not contain the change"
	}
	seen := map[string]bool{}
	for _, s := range after.Items[0].Steps {
		for _, v := range s.Votes {
			who := v.Person
			if v.OnBehalfOf != "" {
				who = v.OnBehalfOf
			}
			if v.Person == after.Requester || who == after.Requester || seen[v.Person] || seen[who] || !slices.Contains(s.Approvers, who) {
				return v.Person + " must not have decided " + s.Name
			}
			seen[v.Person], seen[who] = true, true
		}
		if s.State == approval.StepApproved && len(s.Votes) < max(s.Quorum, 1) {
			return s.Name + " has not the approvals that it needs"
		}
	}
	if after.State().MayBeOnHost() && slices.ContainsFunc(after.Items[0].Steps, func(s approval.Step) bool { return s.State != approval.StepApproved }) {
		return "a grant without every approval"
	}
	returned := len(after.Events) > 0 && after.Events[len(after.Events)-1].Message == message.TicketStatementReturned() &&
		len(after.Events) > len(before.Events)
	if (len(after.Jobs()) > 0) != (returned ||
		before.State() != after.State() && slices.Contains([]approval.State{approval.StateApproved, approval.StateRevoking}, after.State())) {
		return fmt.Sprintf("jobs %v with %s", after.Jobs(), after.State())
	}
	if (len(after.Claims()) > 0) != slices.Contains([]approval.State{approval.StatePending, approval.StateApproved, approval.StateApplying}, after.State()) {
		return "claims are held exactly while the ticket is under way"
	}
	if (after.Items[0].Current() >= 0) != (after.State() == approval.StatePending) {
		return "a step waits exactly while the ticket is pending"
	}
	return ""
}
