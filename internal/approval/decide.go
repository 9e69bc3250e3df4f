package approval

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/message"
)

// EveryItem selects all items of a ticket that an operation applies to.
const EveryItem = -1

// Decide approves or rejects the waiting step of an item, or of every item that waits for the actor, in the version of
// the ticket that the actor saw. If an item grants more now than was shown, or needs more approvals than were requested,
// Decide voids its approvals, decides nothing and returns an error that says so. A ticket that is decided only in the portal needs a recent
// login; see CheckLogin.
func (s *Service) Decide(ctx context.Context, a Actor, number int64, item int, version int64, approve bool, comment string) (*Ticket, error) {
	return s.decide(ctx, a, number, item, version, approve, comment, func(t *Ticket) error {
		if needsPortal(s.Catalog(), t) {
			return s.CheckLogin(a)
		}
		return nil
	})
}

// CheckLogin returns an error with CodeLoginTooOld if the actor acts in a session whose login is older than LoginMaxAge, or of an unknown age.
// A decision about what needsPortal reports needs a recent login, so that a session that was left open or stolen does not suffice for it.
func (s *Service) CheckLogin(a Actor) error {
	if s.LoginMaxAge <= 0 || a.Token || !a.LoggedIn.IsZero() && s.Now().Sub(a.LoggedIn) <= s.LoginMaxAge {
		return nil
	}
	return fail(CodeLoginTooOld, message.AccessLoginTooOld())
}

// decide is Decide with a further condition, which is checked in the transaction of the decision: if permit returns an error, nothing
// is decided and nothing is changed. permit may be called several times.
func (s *Service) decide(
	ctx context.Context, a Actor, number int64, item int, version int64, approve bool, comment string, permit func(*Ticket) error,
) (*Ticket, error) {
	comment, err := text("comment", comment)
	if err != nil {
		return nil, err
	}
	var evidence map[int]error
	if approve {
		if evidence, err = s.evidenceNow(ctx, number); err != nil {
			return nil, err
		}
	}
	grew, stricter := false, false
	t, err := s.change(ctx, a, number, func(a Actor, t *Ticket) error {
		if err := permit(t); err != nil {
			return err
		}
		if t.Version != version {
			return fail(CodeStale, message.DecideTicketChanged(string(t.State())))
		}
		items, err := waitingFor(a, t, item)
		if err != nil {
			return err
		}
		if approve {
			for _, i := range items {
				void, err := s.recheck(t, i)
				if err != nil {
					return err
				}
				grew = grew || void
				if void {
					continue
				}
				more, err := s.restartIfStricter(t, i)
				if err != nil {
					return err
				}
				stricter = stricter || more
			}
		}
		if grew || stricter {
			return nil
		}
		for _, i := range items {
			if err := s.vote(a, t, i, approve, comment); err != nil {
				return err
			}
		}
		return requireEvidence(t, items, evidence)
	})
	if err == nil && grew {
		err = fail(CodeStale, message.DecideBringsMore())
	} else if err == nil && stricter {
		err = fail(CodeStale, message.DecideMorePeople())
	}
	return t, err
}

// waitingFor returns the selected items; with EveryItem those that wait for the actor, which must be at least one.
func waitingFor(a Actor, t *Ticket, item int) ([]int, error) {
	if item != EveryItem {
		_, err := onWhoseBehalf(a, t, item)
		return []int{item}, err
	}
	var out []int
	var why error
	for i := range t.Items {
		if t.Items[i].State != StatePending {
			continue
		}
		_, err := onWhoseBehalf(a, t, i)
		if err == nil {
			out = append(out, i)
		} else {
			why = err
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case why != nil:
		return nil, why
	}
	return nil, fail(CodeConflict, message.DecideNotPending(string(t.State())))
}

// recheck compares what an item grants now with what was shown; true if it grew and its approvals are void.
func (s *Service) recheck(t *Ticket, i int) (bool, error) {
	// A version of a package is compared with the current one when it is published. This is called in a transaction, which reads no packages.
	if c := t.Items[i].Change; c != nil && c.Kind != ObjectAccessPackage {
		now, _, err := s.Host.Object(c.Kind, c.Name)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(now.Spec, c.Before) {
			return false, fail(CodeConflict, message.DecideObjectChanged(c.Kind, c.Name))
		}
	}
	now, err := s.shown(t.itemKind(i), t.Items[i])
	if err != nil {
		return false, err
	}
	if t.Void(i, now, s.Now()) {
		return true, nil
	}
	t.Reduced(i, now, s.Now())
	return false, nil
}

// itemKind returns the kind of an item. In a ticket about access, an item that continues a grant is an extension.
func (t *Ticket) itemKind(i int) Kind {
	if t.Kind == KindGrant && t.Items[i].Target != nil {
		return KindExtend
	}
	return t.Kind
}

func (s *Service) vote(a Actor, t *Ticket, i int, approve bool, comment string) error {
	onBehalfOf, err := onWhoseBehalf(a, t, i)
	if err != nil {
		return err
	}
	if approve {
		if err := checkAgainstCatalog(s.Catalog(), t, i, deciders(a.ID, onBehalfOf)[0]); err != nil {
			return err
		}
		if err := s.checkOrganization(t, &t.Items[i]); err != nil {
			return err
		}
	}
	return t.Vote(i, Vote{Person: a.ID, OnBehalfOf: onBehalfOf, Approve: approve, At: s.Now(), Comment: comment, Through: a.Through})
}

// Choice is one decision of DecideMany.
type Choice struct {
	Ticket  int64
	Item    int // EveryItem: those that wait for the actor
	Version int64
}

// Result is the outcome of one Choice. The choices are independent: an error of one does not affect the others.
type Result struct {
	Choice
	State *Ticket
	Err   error
}

// MaxChoices bounds the choices of one DecideMany.
const MaxChoices = 100

// DecideMany approves or rejects several tickets.
func (s *Service) DecideMany(ctx context.Context, a Actor, choices []Choice, approve bool, comment string) ([]Result, error) {
	if len(choices) == 0 || len(choices) > MaxChoices {
		return nil, invalid("choices", message.DecideBulkSize(MaxChoices))
	}
	out := make([]Result, 0, len(choices))
	for _, c := range choices {
		t, err := s.Decide(ctx, a, c.Ticket, c.Item, c.Version, approve, comment)
		out = append(out, Result{Choice: c, State: t, Err: err})
	}
	return out, nil
}

// Review confirms a break-glass item, or revokes it together with the grants that extend it. As in Revoke, the extensions
// are revoked first. To confirm needs a recent login, see CheckLogin; to revoke does not, because it only ends access.
func (s *Service) Review(ctx context.Context, a Actor, number int64, item int, confirm bool, comment string) (*Ticket, error) {
	comment, err := text("comment", comment)
	if err != nil {
		return nil, err
	}
	if !confirm {
		if err := s.endExtensions(ctx, a, number, item, comment); err != nil {
			return nil, err
		}
	}
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error {
		if confirm {
			if err := s.CheckLogin(a); err != nil {
				return err
			}
		}
		return s.review(a, t, item, confirm, comment)
	})
}

func (s *Service) review(a Actor, t *Ticket, item int, confirm bool, comment string) error {
	if item < 0 || item >= len(t.Items) || !t.Items[item].Reviewing() {
		return fail(CodeConflict, message.ReviewNothing())
	}
	onBehalfOf, err := onWhoseBehalf(a, t, item)
	if err != nil {
		return err
	}
	it := &t.Items[item]
	names := slices.ContainsFunc(it.Review.From, func(from approver) bool {
		return slices.Contains(approversOfItem(s.Catalog(), from, t, it), deciders(a.ID, onBehalfOf)[0])
	})
	if confirm && !names {
		return fail(CodeForbidden, message.DecideNotApprover(StepName(it.Review.Name)))
	}
	return t.Confirm(item, Vote{Person: a.ID, OnBehalfOf: onBehalfOf, Approve: confirm, At: s.Now(), Comment: comment})
}

// endExtensions revokes the extensions of an item that is in force, if the actor may end the item by a review.
func (s *Service) endExtensions(ctx context.Context, a Actor, number int64, item int, comment string) error {
	a, err := s.Actor(ctx, a)
	if err != nil {
		return err
	}
	t, err := s.Get(ctx, a, number)
	if err != nil {
		return err
	}
	if a.Auditor {
		return AuditorsOnlyRead()
	}
	if err := s.review(a, t.Clone(), item, false, comment); err != nil || !t.Items[item].State.MayBeOnHost() {
		return err
	}
	return s.revokeExtensions(ctx, Target{number, item}, Event{Actor: a.ID, Comment: comment}, map[Target]bool{})
}

// text trims a text and checks its length.
func text(field, s string) (string, error) {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) > MaxText {
		return "", invalid(field, message.FieldMaxCharacters(MaxText))
	}
	return s, nil
}
