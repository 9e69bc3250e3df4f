package accessrequest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

const (
	// perSecond is how many objects are handled in a second, and burst how many at once.
	perSecond, burst = 20, 50
	// namespacePerSecond is how many objects of one namespace are handled in a second, and namespaceBurst how many at once, so that whoever
	// creates very many in a namespace does not delay the others.
	namespacePerSecond, namespaceBurst = 5, 50
	// maxNamespaces is the number of namespaces whose rates are remembered.
	maxNamespaces = 10_000
	// leastDelay is the shortest time for which an object of a namespace above its rate waits, and delaySpread the number of seconds by which
	// the delays differ, so that the objects do not return at once.
	leastDelay, delaySpread = 5 * time.Second, 25
	// firstBackoff and lastBackoff bound the time after which an object is tried again after an error.
	firstBackoff, lastBackoff = time.Second, 5 * time.Minute
	// restartDelay is how long Run waits before it starts again, for example while the kind is not installed.
	restartDelay = 30 * time.Second
	// buffered is the number of changed tickets that are remembered. Further ones are found by the periodic comparison of their objects, or
	// by the search for orphans.
	buffered = 1024
)

// Controller runs a Reconciler.
type Controller struct {
	config  Config
	host    *rest.Config
	changes chan event.GenericEvent
}

// NewController returns a Controller of the host cluster. Nothing is read before Run.
func NewController(host *rest.Config, c Config) (*Controller, error) {
	if host == nil || c.Catalog == nil || c.URL == nil || c.Now == nil || c.Log == nil {
		return nil, errors.New("access requests: the host cluster, catalog, URL, clock and log are required")
	}
	return &Controller{config: c, host: rest.CopyConfig(host), changes: make(chan event.GenericEvent, buffered)}, nil
}

// Notice enqueues the object of a ticket that has changed. It does not block.
func (c *Controller) Notice(t *approval.Ticket) {
	namespace, name, ok := approval.AccessRequestOf(t.Requester)
	if !ok {
		return
	}
	o := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	select {
	case c.changes <- event.GenericEvent{Object: o}:
	default: // the periodic comparison, or the search for orphans, finds it
	}
}

// Run handles objects until the context ends. While the API server does not serve the kind, it tries again from time to time.
func (c *Controller) Run(ctx context.Context, tickets *approval.Service) {
	c.config.Tickets = tickets
	for {
		if err := c.serve(ctx); err != nil && ctx.Err() == nil {
			c.config.Log.Error("AccessRequests cannot be handled; trying again", "after", restartDelay, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartDelay):
		}
	}
}

func (c *Controller) serve(ctx context.Context) error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register ACP's kinds: %w", err)
	}
	recoverPanic, skipName := true, true
	mgr, err := manager.New(c.host, manager.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{RecoverPanic: &recoverPanic, SkipNameValidation: &skipName},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	r := &Reconciler{Config: c.config, Cached: mgr.GetClient(), Live: mgr.GetAPIReader(), pace: rate.NewLimiter(perSecond, burst),
		namespaces: newNamespaceRates()}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(namespaceKind)
	err = builder.ControllerManagedBy(mgr).Named("AccessRequest").
		For(&v1alpha1.AccessRequest{}).
		WatchesMetadata(namespace, handler.EnqueueRequestsFromMapFunc(inNamespace(mgr.GetClient())), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(source.Channel(c.changes, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, lastBackoff)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(r.searchOrphans)); err != nil {
		return fmt.Errorf("set up the search for orphans: %w", err)
	}
	return mgr.Start(ctx)
}

// inNamespace maps a namespace to its AccessRequests.
func inNamespace(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var list v1alpha1.AccessRequestList
		if c.List(ctx, &list, client.InNamespace(o.GetName())) != nil {
			return nil // the periodic comparison finds them
		}
		out := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name}})
		}
		return out
	}
}

// TicketURL returns the function that makes the address of a ticket's page from the portal's own address.
func TicketURL(portal string) func(string) string {
	base := strings.TrimSuffix(portal, "/")
	return func(ticket string) string { return base + "/tickets/" + ticket }
}
