package approval_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// edit changes the policy of a resource as an administrator would, and reports on it as the adapter would. The fake
// server counts no generations, so the test does.
func (w *world) edit(resource string, generation int64, change func(*v1alpha1.AccessControlPolicy)) {
	w.t.Helper()
	p, err := statuses{w}.Live(context.Background(), "p-"+resource)
	if err != nil || p == nil {
		w.t.Fatal(p, err)
	}
	change(p)
	p.Generation = generation
	p.Status.ObservedGeneration = generation
	u := v1alpha1.PolicyUnit{Resource: v1alpha1.ResourceName("name:" + resource), Revision: "r",
		Clusters: []v1alpha1.ClusterState{{Name: "m1", DesiredRevision: "r", State: v1alpha1.MemberRealized}}}
	for _, s := range p.Spec.Statements {
		u.SIDs = append(u.SIDs, s.SID)
	}
	p.Status.Units = []v1alpha1.PolicyUnit{u}
	if err := w.client.Update(context.Background(), p); err != nil {
		w.t.Fatal(err)
	}
}

// follow is what the portal does when it reads a change.
func (w *world) follow(resource string) {
	w.t.Helper()
	f := approval.NewFollower(w.svc, statuses{w}, nil, time.Minute, slog.New(slog.DiscardHandler))
	if err := f.Follow(context.Background(), "p-"+resource); err != nil {
		w.t.Fatal(err)
	}
}

func nothing(*v1alpha1.AccessControlPolicy) {}

// inForce brings a ticket to effective.
func (w *world) inForce(x *approval.Worker) int64 {
	w.t.Helper()
	n := w.approved("a", "r")
	w.drain(x)
	w.apply(n, func(x *approval.Ticket) error {
		x.Written(0, "p-r", approval.Written{Generation: 1}, w.clock.Now())
		return nil
	})
	w.edit("r", 1, nothing)
	w.follow("r")
	if got := w.state(n); got != approval.StateEffective {
		w.t.Fatal(got)
	}
	return n
}

func TestStatementChangedByHand(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.Statement)
		want   approval.State
	}{
		"subjects":  {"somebody else was let in", func(s *v1alpha1.Statement) { s.Subjects = append(s.Subjects, "name:b") }, approval.StateFailed},
		"actions":   {"more was opened", func(s *v1alpha1.Statement) { s.Actions = append(s.Actions, "redis:admin") }, approval.StateFailed},
		"resources": {"another server was opened", func(s *v1alpha1.Statement) { s.Resources = append(s.Resources, "name:q") }, approval.StateFailed},
		"effect":    {"an emergency", func(s *v1alpha1.Statement) { s.Effect = v1alpha1.EffectDeny }, approval.StateFailed},
		"notAfter":  {"it would never end", func(s *v1alpha1.Statement) { s.NotAfter = nil }, approval.StateFailed},
		"notBefore": {"it would begin later", func(s *v1alpha1.Statement) { s.NotBefore = &metav1.Time{Time: time.Unix(1, 0)} }, approval.StateFailed},
		"nothing":   {"as approved", func(*v1alpha1.Statement) {}, approval.StateEffective},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := w.worker("w")
			n := w.inForce(x)
			w.edit("r", 2, func(p *v1alpha1.AccessControlPolicy) { tc.change(&p.Spec.Statements[0]) })
			w.follow("r")
			if got := w.state(n); got != tc.want {
				t.Fatalf("%s: %s, want %s", tc.reason, got, tc.want)
			}
			w.drain(x)
			if got := w.sids("r"); len(got) != 1 {
				t.Errorf("what was changed by hand is neither written over nor removed: %v", got)
			}
			w.revoke(n)
			w.drain(x)
			if got := w.sids("r"); len(got) != 0 {
				t.Errorf("a revocation removes it, whatever it became: %v", got)
			}
		})
	}
}

func TestStatementThatIsAsApprovedAgain(t *testing.T) {
	w := newWorld(t)
	x := w.worker("w")
	n := w.inForce(x)
	var kept v1alpha1.Statement
	w.edit("r", 2, func(p *v1alpha1.AccessControlPolicy) { kept, p.Spec.Statements = p.Spec.Statements[0], nil })
	w.follow("r")
	if got := w.state(n); got != approval.StateFailed {
		t.Fatal(got)
	}
	w.edit("r", 3, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = []v1alpha1.Statement{kept} })
	w.follow("r")
	if got := w.state(n); got != approval.StateEffective {
		t.Errorf("a grant that is in force must not say that it is not: %s", got)
	}
}

func TestRefusalThatEnded(t *testing.T) {
	w := newWorld(t)
	x := w.worker("w")
	n := w.inForce(x)
	w.edit("r", 2, func(p *v1alpha1.AccessControlPolicy) {
		p.Status.Refused = []v1alpha1.RefusedStatement{{SID: approval.SID(n, 0), Message: "no class"}}
	})
	w.follow("r")
	if got := w.state(n); got != approval.StateFailed {
		t.Fatal(got)
	}
	w.edit("r", 2, func(p *v1alpha1.AccessControlPolicy) { p.Status.Refused = nil })
	w.follow("r")
	if got := w.state(n); got != approval.StateEffective {
		t.Errorf("the statement is enforced again, so the ticket says so: %s", got)
	}
}

// TestEndedStatementComesBack checks that neither a restored backup nor a synced Git repository restores an ended grant.
func TestEndedStatementComesBack(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		end    func(w *world, n int64)
		effect v1alpha1.Effect
		left   int
		want   approval.State
	}{
		"revoked": {"it is revoked again", func(w *world, n int64) { w.revoke(n) }, v1alpha1.EffectAllow, 0, approval.StateRevoking},
		"expired": {"it is removed again", func(w *world, _ int64) {
			w.clock.pass(2 * time.Hour)
			if err := w.svc.Tick(context.Background()); err != nil {
				w.t.Fatal(err)
			}
		}, v1alpha1.EffectAllow, 0, approval.StateRevoking},
		"deny": {"a deny opens nothing, and its removal might", func(w *world, n int64) { w.revoke(n) }, v1alpha1.EffectDeny, 1, approval.StateRevoked},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := w.worker("w")
			n := w.inForce(x)
			var kept v1alpha1.Statement
			w.edit("r", 1, func(p *v1alpha1.AccessControlPolicy) { kept = p.Spec.Statements[0] })
			tc.end(w, n)
			w.drain(x)
			w.apply(n, func(x *approval.Ticket) error {
				x.Removed(0, "p-r", approval.Written{Generation: 2}, w.clock.Now())
				return nil
			})
			w.edit("r", 2, nothing)
			w.follow("r")
			kept.Effect, kept.NotAfter = tc.effect, nil
			w.edit("r", 3, func(p *v1alpha1.AccessControlPolicy) { p.Spec.Statements = []v1alpha1.Statement{kept} })
			w.follow("r")
			w.drain(x)
			if got := w.sids("r"); len(got) != tc.left || w.state(n) != tc.want {
				t.Errorf("%s: %v, %s", tc.reason, got, w.state(n))
			}
		})
	}
}

// TestHostRestoredToAnEarlierState checks that a restored etcd of the host cluster, in which policies have earlier generations, neither gives
// back what was revoked since nor leaves a grant in force that it does not have.
func TestHostRestoredToAnEarlierState(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		revoke bool
		seen   bool // that no member had it any more
		before func(p *v1alpha1.AccessControlPolicy, granted v1alpha1.Statement)
		want   approval.State
	}{
		"revoked": {"it is back", true, true, func(p *v1alpha1.AccessControlPolicy, granted v1alpha1.Statement) {
			p.Spec.Statements = []v1alpha1.Statement{granted}
		}, approval.StateRevoking},
		"revoking": {"it is back before its end was seen", true, false, func(p *v1alpha1.AccessControlPolicy, granted v1alpha1.Statement) {
			p.Spec.Statements = []v1alpha1.Statement{granted}
		}, approval.StateRevoking},
		"revoked, not granted yet": {"it is still gone", true, true, func(p *v1alpha1.AccessControlPolicy, _ v1alpha1.Statement) {
			p.Spec.Statements = nil
		}, approval.StateRevoked},
		"in force": {"it is as approved", false, false, func(p *v1alpha1.AccessControlPolicy, granted v1alpha1.Statement) {
			p.Spec.Statements = []v1alpha1.Statement{granted}
		}, approval.StateEffective},
		"not granted yet": {"it is lost", false, false, func(p *v1alpha1.AccessControlPolicy, _ v1alpha1.Statement) {
			p.Spec.Statements = nil
		}, approval.StateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := w.worker("w")
			n := w.approved("a", "r")
			w.drain(x)
			w.apply(n, func(x *approval.Ticket) error {
				x.Written(0, "p-r", approval.Written{Generation: 6}, w.clock.Now())
				return nil
			})
			var granted v1alpha1.Statement
			w.edit("r", 6, func(p *v1alpha1.AccessControlPolicy) { granted = p.Spec.Statements[0] })
			w.follow("r")
			if got := w.state(n); got != approval.StateEffective {
				t.Fatal(got)
			}
			if tc.revoke {
				w.revoke(n)
				w.drain(x)
				w.apply(n, func(x *approval.Ticket) error {
					x.Removed(0, "p-r", approval.Written{Generation: 7}, w.clock.Now())
					return nil
				})
			}
			if tc.seen {
				w.edit("r", 7, nothing)
				w.follow("r")
				if got := w.state(n); got != approval.StateRevoked {
					t.Fatal(got)
				}
			}
			w.edit("r", 4, func(p *v1alpha1.AccessControlPolicy) { tc.before(p, granted) })
			w.follow("r")
			f := approval.NewFollower(w.svc, statuses{w}, nil, time.Minute, slog.New(slog.DiscardHandler))
			if err := f.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := w.state(n); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
			w.drain(x)
			if got := w.sids("r"); tc.revoke && len(got) != 0 {
				t.Errorf("%s: the policy has %v", tc.reason, got)
			}
		})
	}
}

func TestForeignStatementWithATicketsName(t *testing.T) {
	w := newWorld(t)
	x := w.worker("w")
	n := w.inForce(x)
	other := w.approved("b", "q")
	w.drain(x)
	w.edit("q", 1, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = append(
			p.Spec.Statements,
			v1alpha1.Statement{SID: approval.SID(n, 0), Effect: v1alpha1.EffectAllow},
			v1alpha1.Statement{SID: "t-99-1"},
		)
	})
	w.follow("q")
	if got := w.state(n); got != approval.StateEffective {
		t.Errorf("a statement of another policy is not the ticket's: %s", got)
	}
	if got := w.sids("q"); !slices.Contains(got, approval.SID(other, 0)) {
		t.Errorf("%v", got)
	}
}

// TestRefusedTicketBesideItsSuccessor: a ticket that the host refused holds no claim, so a second one may be pending
// when the first is written after all.
func TestRefusedTicketBesideItsSuccessor(t *testing.T) {
	w := newWorld(t)
	n := w.approved("a", "r")
	w.refuse = func() error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "accesscontrolpolicies"}, "p-r", context.DeadlineExceeded)
	}
	x := w.worker("w")
	w.drain(x)
	if got := w.state(n); got != approval.StateFailed {
		t.Fatal(got)
	}
	second := w.approved("a", "r") // the same access
	w.refuse = func() error { return nil }
	w.clock.pass(time.Minute)
	w.drain(x)
	if got := w.sids("r"); len(got) != 2 {
		t.Errorf("both statements are written: %v", got)
	}
	for _, n := range []int64{n, second} {
		got, err := w.store.Get(t.Context(), n)
		if err != nil || got.State() != approval.StateApplying || strings.Contains(got.Items[0].Message.Text, "refused") {
			t.Errorf("%s is %s (%s), %v", got.ID(), got.State(), got.Items[0].Message, err)
		}
	}
}
