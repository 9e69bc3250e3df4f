package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/bench"
	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/run"
)

// drill is the state of one run: the fleet, the model of the wanted objects, and the random generator of the run.
type drill struct {
	run.Running
	*rand.Rand
	out         io.Writer
	topology    topology
	knownLabels map[string][]string
	host        dynamic.Interface
	members     map[string]dynamic.Interface
	proxies     map[string]*memberProxy
	probes      map[string]*continuousProbe
	model       *model
	evaluator   evaluator
	observable  observableModels
	outage      *outage
	// startingOutage is true while an outage begins, or while a process is killed directly after a change.
	startingOutage bool
	// onlyOutages restricts the outages to those whose name contains this text.
	onlyOutages string
	// pull are the members into which a work agent writes.
	pull []string
	// onlyChanges restricts the manual changes to those whose name contains this text, and makes them more frequent. Empty means all.
	onlyChanges string
	// changeOrder contains the indexes of the manual changes of the present round that are still to be made. changeCounts counts, by
	// name, how often each was made.
	changeOrder  []int
	changeCounts map[string]int
	// clocks is the folder with one file per program, which contains the offset of its clock.
	clocks string
	// outageOrder contains the indexes of the outage kinds of the present round that are still to be started.
	outageOrder []int
	// settingOrder contains the indexes of the agent settings of the present round that are still to be changed.
	settingOrder []int
	// removed contains the names of the objects that were deleted in the present outage and may exist until it ends.
	removed     map[string]bool
	number      int
	currentStep string
	began       time.Time
	slowest     time.Duration
	statuses    int
	// statements counts the statements that were written; their SIDs are numbered with it.
	statements int

	sessionCache map[string]bench.Session
	ticket       *ticket

	mu         sync.Mutex
	violations []string
}

// resourceOf returns the resource, name and kind of an object that a step writes.
func resourceOf(obj runtime.Object) (gvr schema.GroupVersionResource, name, kind string) {
	at := func(plural, kind string, m metav1.Object) (schema.GroupVersionResource, string, string) {
		return v1alpha1.GroupVersion.WithResource(plural), m.GetName(), kind
	}
	switch o := obj.(type) {
	case *v1alpha1.AccessControlPolicy:
		return at("accesscontrolpolicies", "AccessControlPolicy", o)
	case *v1alpha1.ProtectedResource:
		return at("protectedresources", "ProtectedResource", o)
	case *v1alpha1.ResourceClass:
		return at("resourceclasses", "ResourceClass", o)
	case *v1alpha1.ExternalWorkload:
		return at("externalworkloads", "ExternalWorkload", o)
	}
	panic(fmt.Sprintf("no step writes a %T", obj))
}

// apply adds an object to the wanted model and then writes it to the host.
func (d *drill) apply(ctx context.Context, obj runtime.Object) error {
	next := d.model.clone()
	next.set(obj)
	d.setWanted(next)
	gvr, name, kind := resourceOf(obj)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": content["spec"]}}
	return d.retry(ctx, "write "+kind+" "+name, func(ctx context.Context) error {
		present, err := d.host.Resource(gvr).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = d.host.Resource(gvr).Create(ctx, u, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		present.Object["spec"] = u.Object["spec"]
		_, err = d.host.Resource(gvr).Update(ctx, present, metav1.UpdateOptions{})
		return err
	})
}

// remove takes an object out of the wanted model and then deletes it from the host. It does not wait until the object is gone.
func (d *drill) remove(ctx context.Context, obj runtime.Object) error {
	next := d.model.clone()
	next.unset(obj)
	d.setWanted(next)
	gvr, name, kind := resourceOf(obj)
	if d.outage != nil {
		d.removed[name] = true
	}
	return d.retry(ctx, "delete "+kind+" "+name, func(ctx context.Context) error {
		err := d.host.Resource(gvr).Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// setWanted replaces the wanted model and widens the expectations of the continuous probes. Callers call it before they write the
// change, so that no probe sees a connection change before it is expected.
func (d *drill) setWanted(next *model) {
	before := d.evaluator
	d.model, d.evaluator = next, next.evaluator(d.knownLabels)
	now := time.Now()
	for _, w := range d.observable.add(next) {
		m := w.evaluator(d.knownLabels)
		for _, probe := range d.probes {
			probe.widenExpectation(m, now)
		}
	}
	if d.outage == nil && !d.startingOutage {
		return
	}
	for _, probe := range d.probes {
		probe.allowLoss(func(a attempt) bool {
			return a.source.labels == nil && before.subjectAt(a.From) != d.evaluator.subjectAt(a.From)
		})
	}
}

// retry calls do until it succeeds, for at most one minute, with 5 s per attempt and 100 ms between attempts. The host may refuse
// requests for a while after a process was killed or on a write conflict. Invalid, forbidden and bad requests are not retried.
func (d *drill) retry(ctx context.Context, what string, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		attempt, stop := context.WithTimeout(ctx, 5*time.Second)
		err := do(attempt)
		stop()
		if err == nil {
			return nil
		}
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// recordViolation records a violation with the time and the step. At most 20 violations are kept.
func (d *drill) recordViolation(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const most = 20 // a single resource that is open by mistake affects many connections
	if len(d.violations) < most {
		d.violations = append(d.violations, fmt.Sprintf("%s, step %d (%s): %s", time.Now().Format("15:04:05.000"), d.number, d.currentStep, text))
	}
}

// violationError returns the recorded violations as one error, or nil.
func (d *drill) violationError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, v := range d.violations {
		errs = append(errs, errors.New(v))
	}
	return errors.Join(errs...)
}

// healthy returns the members that the control plane can reach now.
func (d *drill) healthy() []string {
	var out []string
	for _, m := range fleet.Members() {
		if d.outage == nil || !d.outage.unavailable(m) {
			out = append(out, m)
		}
	}
	return out
}

// pick returns a random element.
func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
