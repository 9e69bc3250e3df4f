package approval

import (
	"context"
	"slices"
	"time"
)

// ReviewDecision is the decision of a review about an access. Review identifies the line of the review; it makes the
// execution idempotent, and is in the tickets' timelines and in the ledger.
type ReviewDecision struct {
	Person, OnBehalfOf string // empty if nobody decided
	Review             string // for example R-3/12
	// SIDs are the statements that the decision is about. Other grants of the access, for example an extension that was
	// approved after the decision, are left as they are.
	SIDs  []string
	Why   Event // only Comment or Message
	Until time.Time
}

// ReviewResult is what the execution of a decision found and did.
type ReviewResult struct {
	// Changed reports whether the decision changed a grant, now or in an earlier execution.
	Changed bool
	// Later are the statements of the access that stand and that the decision is not about, sorted.
	Later []string
}

func (d ReviewDecision) event() Event {
	e := Event{Actor: d.Person, OnBehalfOf: d.OnBehalfOf, Step: d.Review, Comment: d.Why.Comment}
	if d.Person == "" {
		e.Comment, e.Message = "", d.Why.Message
	}
	return e
}

// RevokeReviewed revokes the grants of an access that a decision is about, the last one first. It does nothing for what has
// ended, and nothing if it was executed before.
func (s *Service) RevokeReviewed(ctx context.Context, of Target, d ReviewDecision) (ReviewResult, error) {
	return s.eachReviewed(ctx, of, EventRevokeRequested, d, func(t *Ticket, i int) (bool, error) {
		t.revoke(i, d.event(), s.Now())
		return true, nil
	})
}

// ShortenReviewed gives the grants of an access that a decision is about an end at d.Until, unless they end before that. It
// does nothing for what has ended, and nothing if it was executed before.
func (s *Service) ShortenReviewed(ctx context.Context, of Target, d ReviewDecision) (ReviewResult, error) {
	return s.eachReviewed(ctx, of, EventShortened, d, func(t *Ticket, i int) (bool, error) {
		return t.Shorten(i, d.Until, d.event(), s.Now())
	})
}

// eachReviewed applies a transition, which records a kind of event with the line of the review, to every grant of an access
// that stands and that a decision is about, extensions first. After a crash it continues with those without the event.
func (s *Service) eachReviewed(ctx context.Context, of Target, kind EventKind, d ReviewDecision, f func(*Ticket, int) (bool, error)) (ReviewResult, error) {
	chain := []Target{of}
	if err := s.eachExtension(ctx, of, func(t *Ticket, i int) error {
		chain = append(chain, Target{t.Number, i})
		return nil
	}); err != nil {
		return ReviewResult{}, err
	}
	var out ReviewResult
	for _, x := range slices.Backward(chain) {
		changed, later := false, ""
		if _, err := s.Apply(ctx, x.Ticket, func(t *Ticket) (err error) {
			changed, later = false, "" // the transaction may run again
			if x.Item < 0 || x.Item >= len(t.Items) || !t.Kind.Access() {
				return nil
			}
			it := &t.Items[x.Item]
			if it.Scope.Denies() { // its end would open access
				return nil
			}
			if slices.ContainsFunc(t.Events, func(e Event) bool { return e.Item == x.Item && e.Kind == kind && e.Step == d.Review }) {
				changed = true
				return nil
			}
			if !it.State.MayBeOnHost() {
				return nil
			}
			if !slices.Contains(d.SIDs, it.SID) {
				later = it.SID
				return nil
			}
			changed, err = f(t, x.Item)
			return err
		}); err != nil {
			return out, err
		}
		out.Changed = out.Changed || changed
		if later != "" {
			out.Later = append(out.Later, later)
		}
	}
	slices.Sort(out.Later)
	return out, nil
}

// EndedBy reports which line of a review ended or shortened a grant last; empty if none did.
func (t *Ticket) EndedBy(i int) string {
	for _, e := range slices.Backward(t.Events) {
		if e.Item == i && (e.Kind == EventRevokeRequested || e.Kind == EventShortened) && e.Step != "" {
			return e.Step
		}
	}
	return ""
}
