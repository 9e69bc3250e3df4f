package approval_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/message"
)

// TestExtensionApprovedDuringRevocation checks that an extension ends with its grant if it was approved after the revocation had listed the
// extensions, and its worker had found the target in force before the revocation was stored; also if the worker is killed then.
func TestExtensionApprovedDuringRevocation(t *testing.T) {
	for name, crashed := range map[string]bool{"the worker goes on": false, "another worker goes on": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n, other := w.approved("a", "r"), w.approved("b", "r")
			w.drain(w.worker("early"))
			ext := w.extension(n, "redis:get")
			further := w.extension(ext, "redis:set")
			first, done := w.worker("first"), false
			first.SetStep(func(p string) {
				if p == "checked" && !done {
					done = true
					w.revoke(n) // the transaction of Service.Revoke, which listed the extensions before there were any
					if crashed {
						panic(errCrash)
					}
				}
			})
			if err := untilCrash(first); crashed != errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			w.clock.pass(lease)
			w.drain(w.worker("second"))
			if got, want := w.sids("r"), []string{approval.SID(other, 0)}; !done || !slices.Equal(got, want) {
				t.Errorf("the policy has %v, want %v", got, want)
			}
			for _, number := range []int64{n, ext, further} {
				x, err := w.store.Get(t.Context(), number)
				if err != nil {
					t.Fatal(err)
				}
				if got := x.State(); got != approval.StateRevoking {
					t.Fatalf("ticket %d is %s", number, got)
				}
				if i := slices.IndexFunc(x.Events, func(e approval.Event) bool { return e.Kind == approval.EventRevokeRequested }); !crashed &&
					(x.Events[i].Actor != "bob" || x.Events[i].Comment != "enough") {
					t.Errorf("the revocation of ticket %d does not say who revoked the grant and why: %+v", number, x.Events[i])
				}
			}
		})
	}
}

// TestExtensionsThatOutliveTheirGrant checks that the removal of a grant does not revoke an extension if the grant expired, if a review left the
// extension, or if the grant ended after the backup that was restored.
func TestExtensionsThatOutliveTheirGrant(t *testing.T) {
	for name, end := range map[string]func(w *world, n int64){
		"expired": func(w *world, n int64) {
			w.apply(n, func(x *approval.Ticket) error {
				x.Expire(0, x.Items[0].End())
				return nil
			})
		},
		"a review": func(w *world, n int64) {
			d := approval.ReviewDecision{Person: "bob", Review: "R-1/1", SIDs: []string{approval.SID(n, 0)}, Why: approval.Event{Comment: "enough"}}
			if got, err := w.svc.RevokeReviewed(w.t.Context(), approval.Target{Ticket: n}, d); err != nil || !got.Changed {
				w.t.Fatal(got, err)
			}
		},
		"restored": func(w *world, n int64) {
			w.apply(n, func(x *approval.Ticket) error {
				x.NotRestored(0, message.TicketRestoredEnded("2026-11-02T12:00:00Z"), w.clock.Now())
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n := w.approved("a", "r")
			ext := w.extension(n, "redis:get")
			x := w.worker("one")
			w.drain(x)
			end(w, n)
			w.drain(x)
			if got, want := w.sids("r"), []string{approval.SID(ext, 0)}; !slices.Equal(got, want) {
				t.Errorf("the policy has %v, want %v", got, want)
			}
		})
	}
}

// extension returns the number of an approved ticket that extends a grant. It has an action of its own, because a ticket under way claims its
// actions.
func (w *world) extension(of int64, action string) int64 {
	w.t.Helper()
	it := approvaltest.Item("a", "r")
	it.Target, it.Actions, it.Duration = &approval.Target{Ticket: of}, []string{action}, 2*time.Hour
	it.Shown = approvaltest.Shown(it)
	x := approvaltest.TicketOf(it, "")
	x.Kind = approval.KindExtend
	x, err := w.store.Create(w.t.Context(), x)
	if err != nil {
		w.t.Fatal(err)
	}
	w.vote(x.Number)
	return x.Number
}
