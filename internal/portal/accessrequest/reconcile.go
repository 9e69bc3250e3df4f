// Package accessrequest submits tickets for the AccessRequest objects of the host cluster, and reports in their statuses what became of
// them. The tickets are the only record that it relies on: what a status says decides nothing, and an interruption between any two steps
// is found by comparing the tickets of an object with the object. The package depends on tickets, the catalog and the host cluster, but
// neither on HTTP nor on a store.
package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

const (
	// MaxOpen is the maximum number of open tickets that AccessRequests may have for one application.
	MaxOpen = 50
	// MaxHourly is the maximum number of tickets that AccessRequests may submit for one application in an hour.
	MaxHourly = 200
	// maxTickets bounds the ended tickets of one object that are read, and those of one application of which the recent ones are counted.
	maxTickets = 500
	// waitsEvery is how often an object is compared again while its ticket changes, settledEvery when it has come to an end.
	// Changes of tickets and objects are noticed at once; this finds what was missed.
	waitsEvery, settledEvery = 30 * time.Second, 10 * time.Minute
	// refusedEvery is how often a refused request is submitted again: the catalog or a policy may have changed.
	refusedEvery = time.Minute
	// staleDelay is how long an object waits whose copy in the cache is old.
	staleDelay = 2 * time.Second
)

// namespaceKind is the kind of namespaces, of which only the metadata is read.
var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// Config configures a Reconciler. Every field is required.
type Config struct {
	// Tickets submits and ends tickets.
	Tickets *approval.Service
	Catalog func() *catalog.Catalog
	// URL returns the address of the page of a ticket.
	URL func(ticket string) string
	Now func() time.Time
	Log *slog.Logger
}

// Reconciler submits and ends the tickets of an AccessRequest so that they match the object. Several replicas may do that at the same time:
// tickets are stored once for each generation, and transitions of a ticket are serialized.
type Reconciler struct {
	Config
	// Cached reads objects from a cache; it also writes. Live reads them from the API server.
	Cached client.Client
	Live   client.Reader
	// pace bounds how many objects are handled in a second, whatever their authors do.
	pace *rate.Limiter
	// namespaces bounds the part of one namespace; nil if nothing does.
	namespaces *namespaceRates
}

// refusal is a reason for which a request has no ticket. The object says it in its conditions.
type refusal struct {
	reason string
	why    message.Message
}

// Reconcile compares an object with its tickets.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if r.namespaces != nil {
		if delay := r.namespaces.delay(req.Namespace, r.Now()); delay > 0 {
			return reconcile.Result{RequeueAfter: delay}, nil
		}
	}
	if r.pace != nil {
		if err := r.pace.Wait(ctx); err != nil {
			return reconcile.Result{}, fmt.Errorf("wait: %w", err)
		}
	}
	var o v1alpha1.AccessRequest
	if err := r.Cached.Get(ctx, req.NamespacedName, &o); err != nil {
		if apierrors.IsNotFound(err) {
			err = r.withdrawDeleted(ctx, req)
		}
		return reconcile.Result{}, err
	}
	tickets, err := r.ticketsOf(ctx, &o)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("list the tickets of the access request: %w", err)
	}
	mine, others := own(tickets, &o)
	if len(mine) > 0 {
		if g, _ := generationOf(mine[0], &o); g > o.Generation {
			return reconcile.Result{RequeueAfter: staleDelay}, nil // another replica has read a newer version
		}
	}
	if !o.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.end(ctx, &o, mine)
	}
	application, no, err := r.applicationOf(ctx, r.Cached, o.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	var want approval.Request
	var why message.Message
	if no == nil {
		want, why = requestOf(r.Catalog(), &o, application)
		if !why.IsZero() {
			no = &refusal{v1alpha1.ReasonNotSubmitted, why}
		}
	}
	if no == nil && len(mine) > 0 && asks(mine[0], want) {
		return r.follow(ctx, &o, application.ID, mine)
	}
	// From here on something is changed, which the cache cannot justify if it is behind.
	if stale, err := r.stale(ctx, &o, application.ID, no); err != nil || stale {
		return reconcile.Result{RequeueAfter: staleDelay}, err
	}
	if err := r.withdrawAll(ctx, append(mine, others...), r.supersededBy(&o, no)); err != nil {
		return reconcile.Result{}, err
	}
	if no == nil {
		var t *approval.Ticket
		if t, no, err = r.submit(ctx, &o, application, want); err != nil {
			return reconcile.Result{}, err
		}
		if t != nil {
			return r.follow(ctx, &o, application.ID, append([]*approval.Ticket{t}, mine...))
		}
	}
	return reconcile.Result{RequeueAfter: refusedEvery}, r.write(ctx, &o, application.ID, nil, refused(no.reason, no.why))
}

// endableStates are the states of items that an object can still withdraw or revoke.
var endableStates = []approval.State{approval.StatePending, approval.StateApproved, approval.StateApplying, approval.StateEffective, approval.StateFailed}

// ticketsOf returns the newest tickets of the name of an object, and all earlier ones with such an item: a grant of an early version must
// end with the object, however often that has changed since.
func (r *Reconciler) ticketsOf(ctx context.Context, o *v1alpha1.AccessRequest) ([]*approval.Ticket, error) {
	f := approval.Filter{Requester: approval.AccessRequester(o.Namespace, o.Name), Limit: maxTickets, OmitEvents: true}
	var out []*approval.Ticket
	for {
		page, err := r.Tickets.Store.List(ctx, f)
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		if len(page) < maxTickets {
			return out, nil
		}
		f.ItemStates, f.After = endableStates, approval.Cursor{Number: page[len(page)-1].Number}
	}
}

// withdrawDeleted withdraws the open tickets of an object that does not exist. A replica can submit a ticket at the moment at which another
// one lets the object go; the change of the ticket leads here, and withdrawOrphans finds what it did not lead to.
func (r *Reconciler) withdrawDeleted(ctx context.Context, req reconcile.Request) error {
	err := r.Live.Get(ctx, req.NamespacedName, &v1alpha1.AccessRequest{})
	if !apierrors.IsNotFound(err) {
		return err // it exists again, and its event follows
	}
	tickets, err := r.Tickets.Store.List(ctx, approval.Filter{Requester: approval.AccessRequester(req.Namespace, req.Name),
		ItemStates: []approval.State{approval.StatePending}, Limit: maxTickets, OmitEvents: true})
	if err != nil {
		return fmt.Errorf("list the tickets of an access request that does not exist: %w", err)
	}
	return r.withdrawAll(ctx, tickets, message.AccessRequestDeleted(req.Namespace, req.Name).Text)
}

// supersededBy returns the reason with which tickets of earlier versions are withdrawn.
func (r *Reconciler) supersededBy(o *v1alpha1.AccessRequest, no *refusal) string {
	if no != nil && (no.reason == v1alpha1.ReasonNoApplication || no.reason == v1alpha1.ReasonUnknownApplication) {
		return message.AccessRequestNoLongerApplication(o.Namespace).Text
	}
	return message.AccessRequestOutdated(int(o.Generation)).Text
}

// applicationOf returns the application for which a namespace stands. Only whoever may label the namespace chooses it.
func (r *Reconciler) applicationOf(ctx context.Context, from client.Reader, namespace string) (catalog.Entity, *refusal, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(namespaceKind)
	if err := from.Get(ctx, client.ObjectKey{Name: namespace}, ns); client.IgnoreNotFound(err) != nil {
		return catalog.Entity{}, nil, fmt.Errorf("read the namespace %s: %w", namespace, err)
	}
	id := ns.Labels[v1alpha1.LabelApplication]
	if id == "" {
		return catalog.Entity{}, &refusal{v1alpha1.ReasonNoApplication, message.AccessRequestNoApplication(namespace)}, nil
	}
	c := r.Catalog()
	if c.Empty() {
		return catalog.Entity{}, nil, errors.New("the catalog is not known yet")
	}
	app, ok := c.Application(id)
	if !ok {
		return catalog.Entity{}, &refusal{v1alpha1.ReasonUnknownApplication, message.AccessRequestUnknownApplication(id, namespace)}, nil
	}
	return app, nil, nil
}

// stale reports whether the object or the application of its namespace is another one than the cache says.
func (r *Reconciler) stale(ctx context.Context, o *v1alpha1.AccessRequest, application string, no *refusal) (bool, error) {
	var now v1alpha1.AccessRequest
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(o), &now)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the access request: %w", err)
	}
	if now.UID != o.UID || now.Generation != o.Generation || !now.DeletionTimestamp.IsZero() {
		return true, nil
	}
	app, other, err := r.applicationOf(ctx, r.Live, o.Namespace)
	if err != nil {
		return false, err
	}
	lacks := func(x *refusal) bool {
		return x != nil && (x.reason == v1alpha1.ReasonNoApplication || x.reason == v1alpha1.ReasonUnknownApplication)
	}
	return app.ID != application || lacks(no) != lacks(other), nil
}

// submit stores the ticket of an object's generation. The finalizer comes first, so that no ticket is without an object that ends it.
func (r *Reconciler) submit(
	ctx context.Context,
	o *v1alpha1.AccessRequest,
	application catalog.Entity,
	want approval.Request,
) (*approval.Ticket, *refusal, error) {
	if no, err := r.full(ctx, application); no != nil || err != nil {
		return nil, no, err
	}
	if !controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerAccessRequest) {
		before := o.DeepCopy()
		controllerutil.AddFinalizer(o, v1alpha1.FinalizerAccessRequest)
		if err := r.Cached.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return nil, nil, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	who := approval.Program(approval.AccessRequester(o.Namespace, o.Name), application.ID, authorOf(r.Catalog(), o.Spec.RequestedBy))
	t, err := r.Tickets.Submit(ctx, who, want)
	var shown *approval.Error
	switch {
	case err == nil:
		return t, nil, nil
	case !errors.As(err, &shown):
		return nil, nil, fmt.Errorf("submit the ticket: %w", err)
	}
	switch shown.Code {
	case approval.CodeUnavailable, approval.CodeStoreUnavailable, approval.CodeOutcomeUnknown, approval.CodeStale:
		return nil, nil, fmt.Errorf("submit the ticket: %w", err)
	}
	return nil, &refusal{v1alpha1.ReasonNotSubmitted, shown.Message}, nil
}

// full reports whether AccessRequests have too many open or recent tickets for an application.
func (r *Reconciler) full(ctx context.Context, application catalog.Entity) (*refusal, error) {
	recent := func(t *approval.Ticket) bool { return t.CreatedAt.After(r.Now().Add(-time.Hour)) }
	for _, c := range []struct {
		filter approval.Filter
		count  func(*approval.Ticket) bool
		limit  int
	}{
		{approval.Filter{ItemStates: []approval.State{approval.StatePending}}, open, MaxOpen},
		{approval.Filter{}, recent, MaxHourly},
	} {
		c.filter.Application, c.filter.Limit, c.filter.OmitEvents = application.ID, maxTickets, true
		list, err := r.Tickets.Store.List(ctx, c.filter)
		if err != nil {
			return nil, fmt.Errorf("count the tickets of the application: %w", err)
		}
		n := 0
		for _, t := range list {
			if approval.IsProgram(t.Requester) && c.count(t) {
				n++
			}
		}
		if n >= c.limit {
			return &refusal{v1alpha1.ReasonTooManyOpen, message.AccessRequestTooManyOpen(application.ID, c.limit)}, nil
		}
	}
	return nil, nil
}

// follow reports the state of the newest ticket, and ends what it replaces: open tickets at once, and grants when it is in force.
func (r *Reconciler) follow(ctx context.Context, o *v1alpha1.AccessRequest, application string, mine []*approval.Ticket) (reconcile.Result, error) {
	t, earlier := mine[0], mine[1:]
	if err := r.withdrawAll(ctx, earlier, r.supersededBy(o, nil)); err != nil {
		return reconcile.Result{}, err
	}
	if effective(t) {
		for _, e := range earlier {
			if !granted(e) || extends(t, e) || e.Number == t.Number {
				continue
			}
			if err := r.revoke(ctx, e, message.AccessRequestOutdated(int(o.Generation)).Text); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	after := settledEvery
	for _, it := range t.Items {
		if it.State == approval.StatePending || it.State.InProgress() && it.State != approval.StateEffective {
			after = waitsEvery
		}
	}
	return reconcile.Result{RequeueAfter: after}, r.write(ctx, o, application, t, conditionsOf(t))
}

// end ends what a deleted object requested, and then removes its finalizer. It does not wait for members: the revocation is stored with
// the ticket, so that a namespace can be deleted while a member cannot be reached.
func (r *Reconciler) end(ctx context.Context, o *v1alpha1.AccessRequest, mine []*approval.Ticket) error {
	if !controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerAccessRequest) {
		return nil
	}
	reason := message.AccessRequestDeleted(o.Namespace, o.Name).Text
	if err := r.withdrawAll(ctx, mine, reason); err != nil {
		return err
	}
	if o.Spec.OnDelete != v1alpha1.OnDeleteKeep {
		for _, t := range mine {
			if err := r.revoke(ctx, t, reason); err != nil {
				return err
			}
		}
	}
	before := o.DeepCopy()
	controllerutil.RemoveFinalizer(o, v1alpha1.FinalizerAccessRequest)
	if err := r.Cached.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}

// actorOf returns the program that submitted a ticket.
func actorOf(t *approval.Ticket) approval.Actor {
	application := ""
	if len(t.Items) > 0 {
		application = t.Items[0].Application
	}
	return approval.Program(t.Requester, application, "")
}

// withdrawAll withdraws what is open of tickets.
func (r *Reconciler) withdrawAll(ctx context.Context, tickets []*approval.Ticket, reason string) error {
	for _, t := range tickets {
		if !open(t) {
			continue
		}
		if _, err := r.Tickets.Withdraw(ctx, actorOf(t), t.Number, reason); err != nil && approval.CodeOf(err) != approval.CodeConflict {
			return fmt.Errorf("withdraw %s: %w", t.ID(), err)
		}
	}
	return nil
}

// revoke revokes the grants of a ticket. A ticket whose grants have ended meanwhile is no error.
func (r *Reconciler) revoke(ctx context.Context, t *approval.Ticket, reason string) error {
	if _, err := r.Tickets.Revoke(ctx, actorOf(t), t.Number, approval.EveryItem, reason); err != nil && approval.CodeOf(err) != approval.CodeConflict {
		return fmt.Errorf("revoke the grants of %s: %w", t.ID(), err)
	}
	return nil
}

// write writes the status if it differs.
func (r *Reconciler) write(ctx context.Context, o *v1alpha1.AccessRequest, application string, t *approval.Ticket, conditions []metav1.Condition) error {
	url := ""
	if t != nil {
		url = r.URL(t.ID())
	}
	next := statusOf(o, application, t, url, r.Now(), conditions)
	if equality.Semantic.DeepEqual(o.Status, next) {
		return nil
	}
	o.Status = next
	if err := r.Cached.Status().Update(ctx, o); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}
