// Package holderupdate gives new versions of access packages to the applications that hold them, if the approvers of the version decided so.
// Its Worker revokes the access that a version does not have any more, and requests the access that it adds with tickets (package approval).
// It must not depend on HTTP or SQL.
package holderupdate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

const (
	// lease is how long another replica waits after the last renewal before it continues the work.
	lease = time.Minute
	// maxUpdates is the maximum number of updates that one round works on.
	maxUpdates = 20
	// maxApplications is the maximum number of applications of one update with which a round begins.
	maxApplications = 20
	// duplicateRetry is how long an application waits before its ticket is submitted again, while another one requests the same.
	duplicateRetry = time.Minute
)

// Store stores versions of packages, their updates, and the lease of the replica that works on updates.
type Store interface {
	accesspackage.UpdateStore
	Version(ctx context.Context, name string, number int) (accesspackage.Version, error)
	// Lead reports whether the holder has the lease until now+ttl. It acquires the lease if it is free or has expired.
	Lead(ctx context.Context, holder string, now time.Time, ttl time.Duration) (bool, error)
}

// Tickets plans and changes the access of applications. approval.Service implements it.
type Tickets interface {
	HolderUpdateRefusal(ctx context.Context, name string, version int, application string) (message.Message, error)
	PlanHolderUpdate(ctx context.Context, name string, v accesspackage.Version, application string) (plan accesspackage.Plan, held bool, err error)
	RevokePackageAccess(ctx context.Context, of accesspackage.Access, name string, v accesspackage.Version) error
	FindHolderRequest(ctx context.Context, name string, v accesspackage.Version, application string) (*approval.Ticket, error)
	PlanHolderRequest(
		ctx context.Context,
		name string,
		v accesspackage.Version,
		application string,
		additions []accesspackage.Addition,
	) (*approval.HolderRequest, error)
	SubmitHolderRequest(ctx context.Context, g *approval.HolderRequest) (*approval.Ticket, error)
	StopHolderRequest(ctx context.Context, number int64, reason message.Message) error
}

// TicketReader reads tickets. approval.TicketStore implements it.
type TicketReader interface {
	List(ctx context.Context, f approval.Filter) ([]*approval.Ticket, error)
}

// Worker carries out updates. One replica works at a time. Each step is stored before the next one, and can be repeated, so that another
// replica can continue after a crash between any two of them.
type Worker struct {
	Name    string // unique among replicas
	Store   Store
	Tickets Tickets
	Reader  TicketReader
	Now     func() time.Time
	Every   time.Duration
	Log     *slog.Logger
	// step is called between the steps, so that tests can simulate crashes.
	step func(point string)
}

// Run works until the context ends.
func (w *Worker) Run(ctx context.Context) {
	t := time.NewTicker(w.Every)
	defer t.Stop()
	for {
		if err := w.Once(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errNotLeading) {
			w.Log.Warn("the holders of access packages could not be updated; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

var (
	errNotLeading = errors.New("another replica updates the holders of access packages")
	// errStateChanged means that the stored state of an application is not the one that was read.
	errStateChanged = errors.New("the update of a holder was changed meanwhile")
)

// Once does one round. An error about one application does not affect the others.
func (w *Worker) Once(ctx context.Context) error {
	updates, err := w.Store.OpenUpdates(ctx, maxUpdates)
	if err != nil {
		return err
	}
	var failed []error
	for _, u := range updates {
		if err := w.update(ctx, u); err != nil {
			if errors.Is(err, errNotLeading) || ctx.Err() != nil {
				return err
			}
			failed = append(failed, fmt.Errorf("version %d of %s: %w", u.Version, u.Package, err))
		}
	}
	return errors.Join(failed...)
}

// lead renews the lease. It is called before each application as well, so that no step begins after the lease was lost.
func (w *Worker) lead(ctx context.Context) error {
	leads, err := w.Store.Lead(ctx, w.Name, w.Now(), lease)
	if err == nil && !leads {
		err = errNotLeading
	}
	return err
}

// update works on one update.
func (w *Worker) update(ctx context.Context, u accesspackage.Update) error {
	if err := w.lead(ctx); err != nil {
		return err
	}
	if err := w.Store.BeginUpdate(ctx, u, w.Now()); err != nil {
		return err
	}
	w.checkpoint("begun")
	v, err := w.Store.Version(ctx, u.Package, u.Version)
	if err != nil {
		return err
	}
	stopped, err := w.followTickets(ctx, u, v)
	if err != nil || stopped {
		return err
	}
	list, err := w.due(ctx, u)
	if err != nil {
		return err
	}
	var failed []error
	for _, h := range list {
		if err := w.lead(ctx); err != nil {
			return err
		}
		reason, err := w.Tickets.HolderUpdateRefusal(ctx, u.Package, u.Version, h.Application)
		if err != nil {
			return err
		}
		if !reason.IsZero() {
			return w.stop(ctx, u, v, reason)
		}
		if err := w.advance(ctx, h, v); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failed = append(failed, fmt.Errorf("%s: %w", h.Application, err))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return w.Store.EndUpdate(ctx, u, message.Message{}, w.Now()) // does nothing unless every application is done
}

// due returns the applications that a round works on, except those that wait for their ticket. Applications whose ticket is still to be
// submitted do not count against maxApplications, because they may wait for other tickets.
func (w *Worker) due(ctx context.Context, u accesspackage.Update) ([]accesspackage.HolderUpdate, error) {
	list, err := w.holders(ctx, u, 0, accesspackage.HolderRevoked)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(h accesspackage.HolderUpdate) bool {
		return !h.Message.IsZero() && w.Now().Sub(h.UpdatedAt) < duplicateRetry
	})
	next, err := w.holders(ctx, u, maxApplications, accesspackage.HolderPending, accesspackage.HolderPlanned)
	return append(list, next...), err
}

func (w *Worker) holders(ctx context.Context, u accesspackage.Update, limit int, states ...accesspackage.HolderState) ([]accesspackage.HolderUpdate, error) {
	return w.Store.HolderUpdates(ctx, accesspackage.HolderFilter{Package: u.Package, Version: u.Version, States: states, Limit: limit})
}

// followTickets reads the states of the tickets for which applications wait, and ends the applications whose tickets are decided and written.
// If the version must not be given to applications any more, it stops the update instead; stopped reports this.
func (w *Worker) followTickets(ctx context.Context, u accesspackage.Update, v accesspackage.Version) (stopped bool, err error) {
	waiting, err := w.holders(ctx, u, 0, accesspackage.HolderWaiting)
	if err != nil || len(waiting) == 0 {
		return false, err
	}
	reason, err := w.Tickets.HolderUpdateRefusal(ctx, u.Package, u.Version, waiting[0].Application)
	if err != nil {
		return false, err
	}
	if !reason.IsZero() {
		return true, w.stop(ctx, u, v, reason)
	}
	f := approval.Filter{OmitEvents: true}
	for _, h := range waiting {
		f.Numbers = append(f.Numbers, h.Ticket)
	}
	tickets, err := w.Reader.List(ctx, f)
	if err != nil {
		return false, err
	}
	for _, h := range waiting {
		i := slices.IndexFunc(tickets, func(t *approval.Ticket) bool { return t.Number == h.Ticket })
		if i < 0 {
			return false, fmt.Errorf("%s: %s does not exist", h.Application, approval.FormatID(h.Ticket))
		}
		state, why := approval.HolderState(tickets[i])
		if state == accesspackage.HolderWaiting {
			continue
		}
		end(&h, state, why)
		if err := w.save(ctx, &h, accesspackage.HolderWaiting); err != nil {
			return false, err
		}
	}
	return false, nil
}

// advance does the steps of one application, until it waits for a ticket or is done.
func (w *Worker) advance(ctx context.Context, h accesspackage.HolderUpdate, v accesspackage.Version) error {
	for {
		before := h.State
		var err error
		switch h.State {
		case accesspackage.HolderPending:
			err = w.plan(ctx, &h, v)
		case accesspackage.HolderPlanned:
			err = w.revoke(ctx, &h, v)
		case accesspackage.HolderRevoked:
			err = w.submit(ctx, &h, v)
		default:
			return nil
		}
		if err != nil || h.State == before {
			return err
		}
	}
}

// save stores the new state of an application if its stored state is still the former one, and returns errStateChanged otherwise.
func (w *Worker) save(ctx context.Context, h *accesspackage.HolderUpdate, from accesspackage.HolderState) error {
	h.UpdatedAt = w.Now()
	saved, err := w.Store.SaveHolder(ctx, *h, from)
	if err == nil && !saved {
		err = errStateChanged
	}
	if err == nil {
		w.checkpoint("saved " + string(h.State))
	}
	return err
}

// plan computes and stores what has to be done about an application, before any of it is done.
func (w *Worker) plan(ctx context.Context, h *accesspackage.HolderUpdate, v accesspackage.Version) error {
	plan, held, err := w.Tickets.PlanHolderUpdate(ctx, h.Package, v, h.Application)
	if err != nil {
		return err
	}
	h.Plan, h.State = plan, accesspackage.HolderPlanned
	if !held {
		h.State, h.Message = accesspackage.HolderSkipped, message.AccessPackageHolderLeft(h.Application)
	}
	return w.save(ctx, h, accesspackage.HolderPending)
}

// revoke begins the revocations of an application's plan. It does not wait until the members have them.
func (w *Worker) revoke(ctx context.Context, h *accesspackage.HolderUpdate, v accesspackage.Version) error {
	for _, of := range h.Plan.Revoke {
		if err := w.Tickets.RevokePackageAccess(ctx, of, h.Package, v); err != nil {
			return err
		}
		w.checkpoint("access revoked")
	}
	h.State = accesspackage.HolderRevoked
	return w.save(ctx, h, accesspackage.HolderPlanned)
}

// submit submits the ticket of an application's plan. The reason why a part cannot be requested is stored before that, because it is not
// computed again for a ticket that was submitted. While another ticket requests the same, the application waits for it.
func (w *Worker) submit(ctx context.Context, h *accesspackage.HolderUpdate, v accesspackage.Version) error {
	if len(h.Plan.Give) == 0 {
		h.State = accesspackage.HolderDone
		return w.save(ctx, h, accesspackage.HolderRevoked)
	}
	g, err := w.Tickets.PlanHolderRequest(ctx, h.Package, v, h.Application, h.Plan.Give)
	if err != nil {
		return err
	}
	if g.Ticket == nil && g.Problem != h.Plan.Problem {
		h.Plan.Problem = g.Problem
		if err := w.save(ctx, h, accesspackage.HolderRevoked); err != nil {
			return err
		}
	}
	if g.Empty() {
		end(h, accesspackage.HolderDone, message.Message{})
		return w.save(ctx, h, accesspackage.HolderRevoked)
	}
	t, err := w.Tickets.SubmitHolderRequest(ctx, g)
	var duplicate *approval.Error
	if errors.As(err, &duplicate) && duplicate.Code == approval.CodeDuplicate {
		h.Message = message.AccessPackageHolderDuplicate(approval.FormatID(duplicate.Ticket))
		return w.save(ctx, h, accesspackage.HolderRevoked)
	}
	if err != nil {
		return err
	}
	w.checkpoint("ticket submitted")
	h.State, h.Ticket, h.Message = accesspackage.HolderWaiting, t.Number, message.Message{}
	return w.save(ctx, h, accesspackage.HolderRevoked)
}

// end sets the final state of an application, which failed if a part of its plan could not be requested.
func end(h *accesspackage.HolderUpdate, state accesspackage.HolderState, why message.Message) {
	if why.IsZero() {
		why = h.Plan.Problem
	}
	if h.State, h.Message = state, why; !why.IsZero() {
		h.State = accesspackage.HolderFailed
	}
}

// stop ends an update whose package was archived, or has a later version: tickets that wait for a decision are withdrawn, and applications
// without a ticket are skipped. Approved changes that are not written yet are stopped by the worker that writes tickets.
func (w *Worker) stop(ctx context.Context, u accesspackage.Update, v accesspackage.Version, reason message.Message) error {
	open, err := w.holders(ctx, u, 0, accesspackage.OpenHolderStates()...)
	if err != nil {
		return err
	}
	for _, h := range open {
		if err := w.lead(ctx); err != nil {
			return err
		}
		from := h.State
		if from == accesspackage.HolderPending {
			h.State, h.Message = accesspackage.HolderSkipped, reason
		} else if err := w.stopHolder(ctx, &h, v, reason); err != nil {
			return err
		}
		if err := w.save(ctx, &h, from); err != nil {
			return err
		}
	}
	return w.Store.EndUpdate(ctx, u, reason, w.Now())
}

// stopHolder withdraws what waits for a decision about an application. Its ticket may not be recorded, if a crash prevented that.
func (w *Worker) stopHolder(ctx context.Context, h *accesspackage.HolderUpdate, v accesspackage.Version, reason message.Message) error {
	t, err := w.Tickets.FindHolderRequest(ctx, h.Package, v, h.Application)
	if err != nil {
		return err
	}
	h.State, h.Message = accesspackage.HolderFailed, reason
	if t == nil {
		return nil
	}
	h.Ticket = t.Number
	if state, why := approval.HolderState(t); state != accesspackage.HolderWaiting {
		end(h, state, why)
		return nil
	}
	if err := w.Tickets.StopHolderRequest(ctx, t.Number, reason); err != nil {
		return err
	}
	w.checkpoint("ticket withdrawn")
	return nil
}

// checkpoint calls step.
func (w *Worker) checkpoint(point string) {
	if w.step != nil {
		w.step(point)
	}
}
