package approval

import (
	"context"
	"errors"
	"slices"

	"github.com/acp-io/acp/internal/message"
)

// Revoke revokes an item's grant, or every grant of the ticket, and the grants that extend them. Extensions are revoked
// first: after an interruption, the requested grant is still in force and can be revoked again. The job that removes the grant revokes the
// extensions that were approved meanwhile.
func (s *Service) Revoke(ctx context.Context, a Actor, number int64, item int, reason string) (*Ticket, error) {
	reason, err := text("reason", reason)
	if err != nil {
		return nil, err
	}
	t, err := s.Get(ctx, a, number)
	if err != nil {
		return nil, err
	}
	items, err := revocable(s, a, t, item, reason)
	if err != nil {
		return nil, err
	}
	for _, i := range items {
		if err := s.revokeExtensions(ctx, Target{number, i}, Event{Actor: a.ID, Comment: reason}, map[Target]bool{}); err != nil {
			return nil, err
		}
	}
	return s.change(ctx, a, number, func(a Actor, t *Ticket) error {
		items, err := revocable(s, a, t, item, reason)
		if err != nil {
			return err
		}
		for _, i := range items {
			if err := t.Revoke(i, a.ID, reason, s.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}

// revocable returns the selected items that the actor may revoke, at least one.
func revocable(s *Service, a Actor, t *Ticket, item int, reason string) ([]int, error) {
	if a.Auditor {
		return nil, AuditorsOnlyRead()
	}
	var out []int
	for i := range t.Items {
		if item != i && item != EveryItem || !t.Kind.Access() || !t.Items[i].State.MayBeOnHost() {
			continue
		}
		if !MayDoItem(s.Catalog(), a, t, i).Revoke {
			if it := &t.Items[i]; it.Scope.Denies() {
				return nil, fail(CodeForbidden, message.RevokeDeny())
			}
			return nil, fail(CodeForbidden, message.RevokeNotOwner())
		}
		out = append(out, i)
	}
	if len(out) == 0 {
		return nil, fail(CodeConflict, message.RevokeNoGrant(string(t.State())))
	}
	if reason == "" {
		return nil, invalid("reason", message.RevokeReasonNeeded())
	}
	return out, nil
}

// revokeExtensions revokes the grants that extend one, directly or indirectly, the last one first. The event says who revokes them and why.
func (s *Service) revokeExtensions(ctx context.Context, of Target, why Event, seen map[Target]bool) error {
	if seen[of] {
		return nil
	}
	seen[of] = true
	list, err := s.Store.List(ctx, Filter{Target: &of, Kinds: standingKinds, OmitEvents: true})
	if err != nil {
		return err
	}
	for _, t := range list {
		for i, it := range t.Items {
			if it.Target == nil || *it.Target != of || !it.State.MayBeOnHost() {
				continue
			}
			if err := s.revokeExtensions(ctx, Target{t.Number, i}, why, seen); err != nil {
				return err
			}
			if err := s.revokeFor(ctx, Target{t.Number, i}, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// revokeFor revokes one grant if it is still in force. The event says who revokes it and why.
func (s *Service) revokeFor(ctx context.Context, of Target, why Event) error {
	_, err := s.Apply(ctx, of.Ticket, func(t *Ticket) error {
		if of.Item >= len(t.Items) || !t.Kind.Access() || !t.Items[of.Item].State.MayBeOnHost() {
			return nil
		}
		t.revoke(of.Item, why, s.Now())
		return nil
	})
	return err
}

// revokeTarget executes an approved revocation.
func (s *Service) revokeTarget(ctx context.Context, t *Ticket, i int) error {
	target, why := *t.Items[i].Target, Event{Actor: t.Requester, Comment: t.Reason}
	if err := s.revokeExtensions(ctx, target, why, map[Target]bool{}); err != nil {
		return err
	}
	return s.revokeFor(ctx, target, why)
}

// revokeLateExtensions revokes the extensions of a grant that is being removed which were approved after the extensions were listed and before
// the revocation was stored. The worker of such an extension may have found the target in force, so that it still writes the extension. The job
// that removes the grant therefore calls this: it begins after the revocation is stored, and is repeated after a crash. Every extension that is
// approved later is refused by its own worker, which finds the target revoked.
func (s *Service) revokeLateExtensions(ctx context.Context, t *Ticket, i int) error {
	why, revoked := t.revocation(i)
	if !revoked {
		return nil
	}
	return s.revokeExtensions(ctx, Target{t.Number, i}, why, map[Target]bool{})
}

// revocation returns who revoked a grant and why, for the revocation of its extensions. It returns false if the extensions do not end with the
// grant: it expired, an access review ended it, whose decision names the extensions that it ends, or it ended in an unknown way after the backup
// that was restored.
func (t *Ticket) revocation(i int) (Event, bool) {
	// A later event of this kind requests the removal of a statement that is back.
	at := slices.IndexFunc(t.Events, func(e Event) bool { return e.Item == i && e.Kind == EventRevokeRequested })
	if at < 0 || !t.wasRevoked(i) {
		return Event{}, false
	}
	e := t.Events[at]
	if e.Step != "" || e.Message.Code == message.TicketRestoredEnded("").Code {
		return Event{}, false
	}
	return Event{Actor: e.Actor, OnBehalfOf: e.OnBehalfOf, Comment: e.Comment, Message: e.Message}, true
}

var errTargetRevoked = errors.New("the grant that it extends was revoked")

// checkTargetNotRevoked returns an error if the grant that an item extends was revoked. It may have expired.
func (s *Service) checkTargetNotRevoked(ctx context.Context, it Item) error {
	if it.Target == nil {
		return nil
	}
	t, err := s.Store.Get(ctx, it.Target.Ticket)
	if err != nil {
		return err
	}
	if it.Target.Item < len(t.Items) && t.wasRevoked(it.Target.Item) {
		return errTargetRevoked
	}
	return nil
}

// wasRevoked reports whether a grant was revoked. An expired grant was not.
func (t *Ticket) wasRevoked(i int) bool {
	switch t.Items[i].State {
	case StateRevoked, StateRevoking:
		return !t.has(i, EventExpired, "", "")
	}
	return false
}
