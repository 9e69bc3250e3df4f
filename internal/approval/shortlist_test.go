package approval_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// someMembers returns n members with a revision, of which those that are named are pending.
func someMembers(n int, pending ...int) []v1alpha1.ClusterState {
	var out []v1alpha1.ClusterState
	for i := range n {
		c := v1alpha1.ClusterState{Name: v1alpha1.ClusterName(fmt.Sprintf("m%03d", i)), State: v1alpha1.MemberRealized, DesiredRevision: "r1"}
		if slices.Contains(pending, i) {
			c.State = v1alpha1.MemberPending
		}
		out = append(out, c)
	}
	return out
}

// shortened is a unit whose status lists a few members in full, and, if they have room, the others in groups.
func shortened(all []v1alpha1.ClusterState, full int, rest bool) v1alpha1.PolicyUnit {
	u := v1alpha1.PolicyUnit{Resource: "name:r", Revision: "r1", Members: new(v1alpha1.CountMembers(all)), Clusters: all[:full]}
	if rest {
		u.Groups = v1alpha1.GroupMembers(all[full:])
	}
	return u
}

// TestNothingIsConcludedFromAShortList: a grant is effective, and a revocation done, when every member says so, whether the status has
// room for it or not.
func TestNothingIsConcludedFromAShortList(t *testing.T) {
	type status = v1alpha1.AccessControlPolicyStatus
	units := func(us ...v1alpha1.PolicyUnit) status { return status{Units: us, UnitsTotal: int32(len(us))} }
	for name, tc := range map[string]struct {
		reason          string
		status          status
		granted         approval.State
		waits           string // what the item of a grant says
		revoked         approval.State
		stays           string // what the item of a revocation says
		withoutSIDs     bool
		lines, afterEnd int // members in the timeline
	}{
		"Whole": {
			"every member is realized, most in a group", units(shortened(someMembers(500), 3, true)),
			approval.StateEffective, "", approval.StateRevoked, "", false, 500, 500,
		},
		"InTheRest": {
			"a member of a group is pending", units(shortened(someMembers(500, 400), 3, true)),
			approval.StateApplying, "Waiting for m400.", approval.StateRevoking, "in m400.", false, 499, 499,
		},
		"Many": {"more are pending than a message names",
			units(shortened(someMembers(500, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 499), 3, true)),
			approval.StateApplying,
			"m019, m020 and 2 more members.", approval.StateRevoking, "m019, m020 and 2 more members.", false, 478, 478},
		"Missing": {
			"the list lacks a member that is pending", units(shortened(someMembers(500, 400), 3, false)),
			approval.StateApplying, "Waiting for 1 members.", approval.StateRevoking, "in 1 members.", false, 3, 3,
		},
		"MissingMany": {
			"it lists only some of those that are pending", units(shortened(someMembers(500, 1, 400, 401), 3, false)),
			approval.StateApplying, "Waiting for m001 and 2 more members.", approval.StateRevoking,
			"in m001 and 2 more members.", false, 2, 2,
		},
		"MissingAndWell": {
			"the list lacks members, and all are counted as realized", units(shortened(someMembers(500), 3, false)),
			approval.StateEffective, "", approval.StateRevoked, "", false, 3, 3,
		},
		"NoUnit": {
			"the list lacks the unit", status{UnitsTotal: 7}, approval.StateApplying, "more resources than its status has room for",
			approval.StateRevoking, "more resources than its status has room for", false, 0, 0,
		},
		"NoSIDs": {"it is not known which statements the unit holds", units(func() v1alpha1.PolicyUnit {
			u := shortened(someMembers(3), 3, true)
			u.Statements = 2
			return u
		}()), approval.StateApplying, "more resources than its status has room for", approval.StateRevoking,
			"more resources than its status has room for", true, 0, 0},
		"Refused": {"the status has no room for the reason",
			status{RefusedOthers: []string{"SID"}, Units: units(shortened(someMembers(3), 3, true)).Units}, approval.StateFailed,
			"The statement is not enforced: it is refused", approval.StateRevoked, "", false, 0, 3},
		"Earlier": {
			"an earlier version of the adapter wrote no counts",
			units(v1alpha1.PolicyUnit{Resource: "name:r", Revision: "r1", Clusters: someMembers(3)}),
			approval.StateEffective, "", approval.StateRevoked, "", false, 3, 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n := w.approved("a", "r")
			w.drain(w.worker("w"))
			w.apply(n, func(x *approval.Ticket) error {
				x.Written(0, "p-r", approval.Written{Generation: 1}, w.clock.Now())
				return nil
			})
			x, err := w.store.Get(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			it := x.Items[0]
			p := &v1alpha1.AccessControlPolicy{Status: *tc.status.DeepCopy()}
			p.Name, p.UID, p.Generation = it.Policy, types.UID(it.PolicyUID), it.WrittenGeneration
			p.Spec.Statements = []v1alpha1.Statement{approval.Statement(it)}
			p.Status.ObservedGeneration = p.Generation
			for i := range p.Status.RefusedOthers {
				p.Status.RefusedOthers[i] = it.SID
			}
			hold := func(sids ...string) {
				for i := range p.Status.Units {
					if !tc.withoutSIDs {
						p.Status.Units[i].SIDs = sids
					}
				}
			}
			lines := func() int {
				seen := map[string]bool{}
				x, err := w.store.Get(t.Context(), n)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range x.Events {
					if e.Kind == approval.EventRealized {
						seen[e.Cluster] = true
					}
				}
				return len(seen)
			}
			expect := func(state approval.State, says string, want int) {
				t.Helper()
				x, err := w.store.Get(t.Context(), n)
				if err != nil {
					t.Fatal(err)
				}
				if x.Items[0].State != state || !strings.Contains(x.Items[0].Message.Text, says) || says == "" && !x.Items[0].Message.IsZero() {
					t.Errorf("%s: the item is %s and says %q, want %s, %q", tc.reason, x.Items[0].State, x.Items[0].Message.Text, state, says)
				}
				if got := lines(); got != want {
					t.Errorf("%s: %d members are in the timeline, want %d", tc.reason, got, want)
				}
			}
			hold(it.SID)
			w.apply(n, func(x *approval.Ticket) error { x.Progress(0, p, w.clock.Now()); return nil })
			expect(tc.granted, tc.waits, tc.lines)
			if tc.granted == approval.StateFailed {
				return
			}
			w.revoke(n)
			w.drain(w.worker("w"))
			hold()
			p.Generation, p.Status.ObservedGeneration, p.Spec.Statements = 9, 9, nil
			w.apply(n, func(x *approval.Ticket) error {
				x.Removed(0, "p-r", approval.Written{Generation: 5}, w.clock.Now())
				x.Progress(0, p, w.clock.Now())
				return nil
			})
			expect(tc.revoked, tc.stays, tc.afterEnd)
		})
	}
}

// seesMembers is a host cluster in which a ProtectedResource lists members.
type seesMembers struct {
	statuses
	seen approval.ObjectSeen
}

func (s seesMembers) Seen(context.Context, string, string) (approval.ObjectSeen, error) {
	return s.seen, nil
}

// TestMembersAreReadDirectly: when a policy's status has no room for the members, the timeline still has every one, from the
// ProtectedResource, if that is about the same.
func TestMembersAreReadDirectly(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		revision string
		members  []v1alpha1.ClusterState
		want     int
	}{
		"Same":    {"it is about the same", "r1", someMembers(50), 50},
		"Another": {"it is about another revision", "r0", someMembers(50), 3},
		"Lagging": {"it does not list all members yet", "r1", someMembers(50, 7), 3},
		"Nothing": {"it lists no members", "", nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n := w.approved("a", "r")
			w.drain(w.worker("w"))
			u := shortened(someMembers(50), 3, false)
			u.Details = "ProtectedResource/r"
			w.apply(n, func(x *approval.Ticket) error {
				x.Written(0, "p-r", approval.Written{Generation: 1}, w.clock.Now())
				return nil
			})
			p, err := statuses{w}.Live(t.Context(), "p-r")
			if err != nil || p == nil {
				t.Fatal(p, err)
			}
			u.SIDs = []string{p.Spec.Statements[0].SID}
			p.Generation = 1
			p.Status = v1alpha1.AccessControlPolicyStatus{ObservedGeneration: 1, Units: []v1alpha1.PolicyUnit{u}, UnitsTotal: 1}
			if err := w.client.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			f := approval.NewFollower(
				w.svc,
				seesMembers{statuses{w}, approval.ObjectSeen{Exists: true, Revision: tc.revision, Clusters: tc.members}},
				nil,
				time.Minute,
				slog.New(slog.DiscardHandler),
			)
			if err := f.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			x, err := w.store.Get(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, e := range x.Events {
				if e.Kind == approval.EventRealized {
					got++
				}
			}
			if got != tc.want || x.State() != approval.StateEffective {
				t.Errorf("%s: %d members are in the timeline, want %d; the ticket is %s", tc.reason, got, tc.want, x.State())
			}
		})
	}
}
