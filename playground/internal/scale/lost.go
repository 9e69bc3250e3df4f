package scale

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
	// lostLimit is how long it may take until all statuses say that a member is lost.
	lostLimit = time.Hour
	// lostInterval is the time between two lists of the statuses, which take a part of the processors.
	lostInterval = 2 * time.Second
)

// reportsLoss waits until no resource and no policy is Realized any more, because a member that does not answer may have anything, and prints how long
// after the beginning of the faults that was. The time is that of the last change of a condition, in whole seconds.
func (r *run) reportsLoss(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, lostLimit)
	defer cancel()
	var last time.Time
	for _, gvr := range []schema.GroupVersionResource{resources, policies} {
		at, err := r.unrealizedSince(ctx, gvr)
		if err != nil {
			return err
		}
		if at.After(last) {
			last = at
		}
	}
	r.figure("lost_member_reported", max(last.Sub(began).Seconds(), 0), "s")
	return nil
}

// unrealizedSince waits until no object of a kind is Realized, and returns the last time at which one of these conditions changed.
func (r *run) unrealizedSince(ctx context.Context, gvr schema.GroupVersionResource) (time.Time, error) {
	for {
		realized, last, err := r.realizedOf(ctx, gvr)
		if err != nil {
			return time.Time{}, fmt.Errorf("list %s: %w", gvr.Resource, err)
		}
		if realized == 0 {
			return last, nil
		}
		r.say("  %d %s are still reported as realized", realized, gvr.Resource)
		select {
		case <-time.After(lostInterval):
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%d %s do not report a member that does not answer: %w", realized, gvr.Resource, ctx.Err())
		}
	}
}

// realizedOf counts the objects of a kind that are Realized, and returns the last time at which the condition of another one changed.
func (r *run) realizedOf(ctx context.Context, gvr schema.GroupVersionResource) (realized int, last time.Time, err error) {
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := r.host.Resource(gvr).List(ctx, options)
		if err != nil {
			return 0, time.Time{}, err
		}
		for i := range list.Items {
			c, err := realizedCondition(&list.Items[i])
			switch {
			case err != nil:
				return 0, time.Time{}, err
			case c == nil: // it has no status yet, and claims nothing
			case c.Status == metav1.ConditionTrue:
				realized++
			case c.LastTransitionTime.After(last):
				last = c.LastTransitionTime.Time
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return realized, last, nil
		}
	}
}

// realizedCondition returns the condition Realized of an object, or nil if it has none.
func realizedCondition(u *unstructured.Unstructured) (*metav1.Condition, error) {
	var o struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return nil, fmt.Errorf("read the conditions of %s: %w", u.GetName(), err)
	}
	return meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionRealized), nil
}
