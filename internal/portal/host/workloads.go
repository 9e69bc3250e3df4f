package host

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/message"
)

const (
	// labelSource is the label with the source that registered a workload.
	labelSource           = "acp.io/source"
	annotationDescription = "acp.io/description"
	// Workloads are written concurrently, at a rate that leaves the API server capacity for grants, which use another client and must not
	// wait for 40,000 machines.
	workloadWriters   = 16
	workloadsASecond  = 1000
	workloadConflicts = 5
	// watchTimeout is the longest time that a write waits for the watch to return it.
	watchTimeout      = 2 * time.Second
	watchPollInterval = 5 * time.Millisecond
)

// Workloads stores the registered workloads in the host cluster. It implements workloads.Cluster.
type Workloads struct {
	State *workloads.State

	client client.Client // reads from and writes to the API server
	cached client.Reader
	pace   *rate.Limiter
	log    *slog.Logger
}

var _ workloads.Cluster = (*Workloads)(nil)

func newWorkloads(c client.Client, cached client.Reader, log *slog.Logger) *Workloads {
	return &Workloads{State: workloads.NewState(), client: c, cached: cached, pace: rate.NewLimiter(workloadsASecond, workloadWriters), log: log}
}

// Workloads returns the registered workloads of this host cluster.
func (h *Host) Workloads() *Workloads { return h.workloads }

// handler updates the state with changes of objects.
func (w *Workloads) handler() toolscache.ResourceEventHandler {
	set := func(object any) {
		if o, ok := object.(*v1alpha1.ExternalWorkload); ok {
			w.State.Set(registered(o))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, o any) { set(o) }, DeleteFunc: func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if o, ok := object.(*v1alpha1.ExternalWorkload); ok {
			w.State.Delete(o.Name)
		}
	}}
}

// registered converts an object, which may be one of an administrator.
func registered(o *v1alpha1.ExternalWorkload) workloads.Registered {
	source := o.Labels[labelSource]
	id, named := strings.CutPrefix(o.Name, source+".")
	r := workloads.Registered{
		Object:  o.Name,
		Version: o.ResourceVersion,
		Managed: named && source != "" && o.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByPortal,
		Workload: workloads.Workload{
			ID:          id,
			Source:      source,
			Subject:     string(o.Spec.Subject),
			Addresses:   o.Spec.Addresses,
			Description: o.Annotations[annotationDescription],
		},
	}
	if !r.Managed {
		r.ID, r.Source = o.Name, ""
	}
	if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionAccepted); c != nil && c.ObservedGeneration >= o.Generation {
		if r.Accepted = new(c.Status == metav1.ConditionTrue); !*r.Accepted {
			r.Message = c.Message
		}
	}
	return r
}

// Put implements workloads.Cluster. It waits until the watch has returned what was written, so that callers who read their own write find it.
func (w *Workloads) Put(ctx context.Context, in []workloads.Workload) []error {
	versions := make([]string, len(in)) // after the write; "" if nothing was written
	errs := w.each(ctx, len(in), func(i int) (err error) {
		versions[i], err = w.put(ctx, in[i])
		return err
	})
	w.awaitWatch(ctx, len(in), func(i int) bool { return versions[i] == "" || w.State.Reached(in[i].Name(), versions[i]) })
	return errs
}

// Delete implements workloads.Cluster. It waits until the watch has returned the deletions, for the same reason as Put.
func (w *Workloads) Delete(ctx context.Context, in []workloads.Registered) []error {
	errs := w.each(ctx, len(in), func(i int) error {
		o := &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: in[i].Object}}
		err := w.client.Delete(ctx, o, client.Preconditions{ResourceVersion: &in[i].Version})
		if apierrors.IsConflict(err) {
			err = w.deleteChanged(ctx, in[i])
		}
		return w.userError(in[i].Object, client.IgnoreNotFound(err))
	})
	w.awaitWatch(ctx, len(in), func(i int) bool { return errs[i] != nil || !w.State.Has(in[i].Object, in[i].Version) })
	return errs
}

// awaitWatch waits until the watch has returned n writes. It gives up after watchTimeout: the writes are done, and the watch returns them later.
func (w *Workloads) awaitWatch(ctx context.Context, n int, returned func(i int) bool) {
	next := 0 // All before it were returned.
	//nolint:errcheck // a watch that is late fails no write
	_ = wait.PollUntilContextTimeout(ctx, watchPollInterval, watchTimeout, true, func(context.Context) (bool, error) {
		for next < n && returned(next) {
			next++
		}
		return next == n, nil
	})
}

// deleteChanged deletes an object again after a conflict, if only its status has changed.
func (w *Workloads) deleteChanged(ctx context.Context, x workloads.Registered) error {
	var o v1alpha1.ExternalWorkload
	if err := w.client.Get(ctx, client.ObjectKey{Name: x.Object}, &o); err != nil {
		return err
	}
	now := registered(&o)
	if now.Managed != x.Managed || now.Subject != x.Subject || !equality.Semantic.DeepEqual(now.Addresses, x.Addresses) {
		return errChanged
	}
	return w.client.Delete(ctx, &o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
}

var errChanged = message.HostChangedMeanwhile().Err()

// each calls f for all indexes, concurrently and with a rate limit.
func (w *Workloads) each(ctx context.Context, n int, f func(i int) error) []error {
	errs := make([]error, n)
	next := make(chan int)
	var writers sync.WaitGroup
	for range min(workloadWriters, n) {
		writers.Go(func() {
			for i := range next {
				if errs[i] = w.pace.Wait(ctx); errs[i] == nil {
					errs[i] = f(i)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	writers.Wait()
	return errs
}

// put writes a workload with the resource version that was read, and returns the version after the write, or "" if nothing had to be written. It
// tries the version of the cache first, which is nearly always current.
func (w *Workloads) put(ctx context.Context, x workloads.Workload) (version string, err error) {
	reader := w.cached
	for range workloadConflicts {
		o := &v1alpha1.ExternalWorkload{}
		err = reader.Get(ctx, client.ObjectKey{Name: x.Name()}, o)
		if err != nil && !apierrors.IsNotFound(err) {
			return "", w.userError(x.Name(), err)
		}
		exists := err == nil
		if exists && (o.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByPortal || o.Labels[labelSource] != x.Source) {
			return "", message.WorkloadObjectNotRegisteredHere(o.Name).Err()
		}
		before := o.DeepCopy()
		write(o, x)
		switch {
		case !exists:
			err = w.client.Create(ctx, o)
		case equality.Semantic.DeepEqual(before, o):
			return "", nil
		default:
			err = w.client.Update(ctx, o)
		}
		if err == nil {
			return o.ResourceVersion, nil
		}
		if !isConflict(exists, err) {
			return "", w.userError(x.Name(), err)
		}
		reader = w.client
	}
	return "", errChanged
}

func write(o *v1alpha1.ExternalWorkload, x workloads.Workload) {
	o.Name = x.Name()
	label(o, x.Source, x.Description)
	o.Spec = v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(x.Subject), Addresses: x.Addresses}
}

// label sets the labels of a registered object, with its source.
func label(o *v1alpha1.ExternalWorkload, source, description string) {
	if o.Labels == nil {
		o.Labels = map[string]string{}
	}
	o.Labels[v1alpha1.LabelManagedBy], o.Labels[labelSource] = v1alpha1.ManagedByPortal, source
	delete(o.Annotations, annotationDescription)
	if description != "" {
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[annotationDescription] = description
	}
}

// userError converts a write error to a message for users, and logs the errors that users cannot fix.
func (w *Workloads) userError(name string, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errChanged), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)):
		return message.HostRefusesWorkload(message.Verbatim(status.Status().Message)).Err()
	}
	w.log.Warn("a workload cannot be written", "object", name, "error", err)
	return message.HostNotWritable().Err()
}
