package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// orphansEvery is the interval of the search for orphans.
const orphansEvery = 10 * time.Minute

// searchOrphans calls withdrawOrphans now and then at intervals, until the context ends.
func (r *Reconciler) searchOrphans(ctx context.Context) error {
	tick := time.NewTicker(orphansEvery)
	defer tick.Stop()
	for {
		if err := r.withdrawOrphans(ctx); err != nil && ctx.Err() == nil {
			r.Log.Error("tickets of deleted AccessRequests could not be withdrawn; trying again", "after", orphansEvery, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// withdrawOrphans withdraws the open tickets whose objects do not exist any more. Usually the change of a ticket, or the object's own
// events, lead to the comparison that withdraws it. After a portal ended between the submission and that comparison, while another replica
// let the object go, nothing else leads to the ticket.
func (r *Reconciler) withdrawOrphans(ctx context.Context) error {
	var failed []error
	for f := (approval.Filter{ItemStates: []approval.State{approval.StatePending}, Oldest: true, OmitEvents: true, Limit: maxTickets}); ; {
		page, err := r.Tickets.Store.List(ctx, f)
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("list the open tickets: %w", err))...)
		}
		for _, t := range page {
			if err := r.withdrawOrphan(ctx, t); err != nil {
				failed = append(failed, err)
			}
		}
		if len(page) < maxTickets {
			return errors.Join(failed...)
		}
		f.After = approval.Cursor{Number: page[len(page)-1].Number}
	}
}

// withdrawOrphan withdraws a ticket if its object does not exist, or was deleted and created again.
func (r *Reconciler) withdrawOrphan(ctx context.Context, t *approval.Ticket) error {
	namespace, name, ok := approval.AccessRequestOf(t.Requester)
	if !ok {
		return nil
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	var o v1alpha1.AccessRequest
	if err := r.Cached.Get(ctx, key, &o); err == nil {
		if _, own := generationOf(t, &o); own {
			return nil
		}
	}
	if r.pace != nil {
		if err := r.pace.Wait(ctx); err != nil {
			return fmt.Errorf("wait: %w", err)
		}
	}
	var now v1alpha1.AccessRequest
	err := r.Live.Get(ctx, key, &now)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the access request of %s: %w", t.ID(), err)
	}
	if err == nil {
		if _, own := generationOf(t, &now); own {
			return nil
		}
	}
	r.Log.Info("a ticket is withdrawn, because its AccessRequest does not exist any more", "ticket", t.ID(), "namespace", namespace, "name", name)
	return r.withdrawAll(ctx, []*approval.Ticket{t}, message.AccessRequestDeleted(namespace, name).Text)
}
