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

// drill is one run: the fleet, what is wanted of it, and the dice.
type drill struct {
	run.Running
	*rand.Rand
	out     io.Writer
	scene   scene
	known   map[string][]string
	host    dynamic.Interface
	members map[string]dynamic.Interface
	wires   map[string]*wire
	dogs    map[string]*watchdog
	world   *world
	meaning meaning
	seen    seen
	outage  *outage
	// breaking: an outage begins, or a process is killed just after a change.
	breaking bool
	// only outages with this in their name come.
	only string
	// onlyHands: only hands with this in their name come, and they come more often; empty: all.
	onlyHands string
	// handTurn is the order in which the hands come, and handsCame counts what each did.
	handTurn  []int
	handsCame map[string]int
	// clocks is the folder of the files that say how wrong each program's clock is.
	clocks string
	// turn is the order in which the kinds of outages come.
	turn []int
	// dropped are the names of what was deleted in the present outage, and may still be there until its end.
	dropped  map[string]bool
	number   int
	doing    string
	began    time.Time
	slowest  time.Duration
	statuses int
	// statements counts those that were written, for their sids.
	statements int

	sessions map[string]bench.Session
	ticket   *ticket

	mu         sync.Mutex
	violations []string
}

// plural resources of the kinds that steps write.
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

// put wants an object, and then writes it.
func (d *drill) put(ctx context.Context, obj runtime.Object) error {
	next := d.world.clone()
	next.set(obj)
	d.want(next)
	gvr, name, kind := resourceOf(obj)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": content["spec"]}}
	return d.patiently(ctx, "write "+kind+" "+name, func(ctx context.Context) error {
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

// drop wants an object no more, and then deletes it; gone waits until it is.
func (d *drill) drop(ctx context.Context, obj runtime.Object) error {
	next := d.world.clone()
	next.unset(obj)
	d.want(next)
	gvr, name, kind := resourceOf(obj)
	if d.outage != nil {
		d.dropped[name] = true
	}
	return d.patiently(ctx, "delete "+kind+" "+name, func(ctx context.Context) error {
		err := d.host.Resource(gvr).Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// want makes a world the wanted one, before anything of it is written.
func (d *drill) want(next *world) {
	before := d.meaning
	d.world, d.meaning = next, next.meaning(d.known)
	now := time.Now()
	for _, w := range d.seen.add(next) {
		m := w.meaning(d.known)
		for _, dog := range d.dogs {
			dog.expectAlso(m, now)
		}
	}
	if d.outage == nil && !d.breaking {
		return
	}
	for _, dog := range d.dogs {
		dog.release(func(a attempt) bool {
			return a.source.labels == nil && before.subjectAt(a.From) != d.meaning.subjectAt(a.From)
		})
	}
}

// patiently does what the host may refuse for a while, because it was just killed, or because somebody else wrote.
func (d *drill) patiently(ctx context.Context, what string, do func(context.Context) error) error {
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

// violated notes what must never happen, with its time and step.
func (d *drill) violated(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	const most = 20 // one open door is many connections
	if len(d.violations) < most {
		d.violations = append(d.violations, fmt.Sprintf("%s, step %d (%s): %s", time.Now().Format("15:04:05.000"), d.number, d.doing, text))
	}
}

// verdict is an error when something happened that must not.
func (d *drill) verdict() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, v := range d.violations {
		errs = append(errs, errors.New(v))
	}
	return errors.Join(errs...)
}

// healthy are the members from which nothing keeps the control plane away now.
func (d *drill) healthy() []string {
	var out []string
	for _, m := range fleet.Members() {
		if d.outage == nil || !d.outage.away(m) {
			out = append(out, m)
		}
	}
	return out
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
