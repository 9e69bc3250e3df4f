package memberdowngrade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/backoff"
	"github.com/acp-io/acp/internal/federation/guard"
)

const (
	// page is the number of objects in one response.
	page = 500
	// workers is the number of concurrent writes.
	workers = 16
	// attempts is how often the update of one object is tried if others write it at the same time.
	attempts     = 5
	fieldManager = "kubectl-acp-downgrade"
)

// Extent describes the objects that ACP manages in a member.
type Extent struct {
	// Policies is the number of policies that ACP manages, and Closing the number of those that refuse something.
	Policies, Closing int
	// Mark is the mark of a downgrade in progress, or nil.
	Mark *guard.DowngradeMark
}

// ReadExtent reads the extent from the member. It changes nothing.
func (o *Operator) ReadExtent(ctx context.Context) (Extent, error) {
	var out Extent
	err := o.each(ctx, func(k kind, u *unstructured.Unstructured) error {
		out.Policies++
		_, closing, err := k.open(u)
		if closing {
			out.Closing++
		}
		return err
	})
	if err != nil {
		return out, err
	}
	out.Mark, err = o.mark(ctx)
	return out, err
}

func (o *Operator) mark(ctx context.Context) (*guard.DowngradeMark, error) {
	u, err := o.client.Resource(guard.DowngradeMarkResource).Namespace(guard.Namespace).Get(ctx, guard.DowngradeMarkName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no mark and no error is what there mostly is
	}
	if err != nil {
		return nil, fmt.Errorf("read the mark of a downgrade: %w", err)
	}
	d := guard.ParseDowngradeMark(u)
	return &d, nil
}

// each calls do for every object that ACP manages.
func (o *Operator) each(ctx context.Context, do func(kind, *unstructured.Unstructured) error) error {
	for _, k := range kinds() {
		for next := ""; ; {
			list, err := o.client.Resource(k.TargetResource).List(ctx, metav1.ListOptions{Limit: page, Continue: next})
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				break // The kind is not installed, so nothing was pushed.
			}
			if err != nil {
				return fmt.Errorf("list the member's %s: %w", k.TargetResource.Resource, err)
			}
			for i := range list.Items {
				if u := &list.Items[i]; managed(u) {
					if err := do(k, u); err != nil {
						return err
					}
				}
			}
			if next = list.GetContinue(); next == "" {
				break
			}
		}
	}
	return nil
}

// Settling is how long Downgrade checks whether the policies are written again, if it cannot confirm that the guard
// refuses that. KubeFed reverts manual changes after ten seconds.
const Settling = 15 * time.Second

// interval is the time between two checks.
const interval = time.Second

// Options are the options of Operator.Downgrade.
type Options struct {
	// Reason is stored in the mark, for everybody who reads it.
	Reason string
	Now    func() time.Time
	// Settling replaces the constant of the same name unless it is 0.
	Settling time.Duration
	// Opened is called once, when all policies let everything through for the first time.
	Opened func(written int, took time.Duration)
}

// Result is the result of Operator.Downgrade.
type Result struct {
	// Written is the number of updates, including those of policies that were written again.
	Written int
	// Guarded reports whether the member was observed to refuse the pusher, so that KubeFed does not write the policies again.
	Guarded bool
}

// Downgrade leaves the mark in the member and changes every policy of ACP there to allow all traffic. It can be repeated: an existing mark
// keeps its time and reason.
func (o *Operator) Downgrade(ctx context.Context, options Options) (Result, error) {
	began := options.Now()
	if err := o.leaveMark(ctx, options); err != nil {
		return Result{}, err
	}
	var out Result
	written, err := o.open(ctx)
	if out.Written = written; err != nil {
		return out, err
	}
	if options.Opened != nil {
		options.Opened(written, options.Now().Sub(began))
	}
	rounds := int(options.Settling / interval)
	if options.Settling == 0 {
		rounds = int(Settling / interval)
	}
	// The guard takes a moment to observe the mark; until then, policies that were opened may have been written again.
	for quiet := 0; ; quiet++ {
		guarded := o.refusesPusher(ctx)
		written, err := o.open(ctx)
		if out.Written += written; err != nil {
			return out, err
		}
		if written > 0 {
			quiet = 0
		}
		if out.Guarded = guarded; guarded || quiet >= rounds {
			return out, nil
		}
		if !backoff.Pause(ctx, clock.RealClock{}, interval) {
			return out, ctx.Err()
		}
	}
}

// leaveMark creates the mark. It must come first, because programs that find the mark enforce nothing there.
func (o *Operator) leaveMark(ctx context.Context, options Options) error {
	mark := guard.DowngradeMark{Since: options.Now(), By: o.Name, Reason: options.Reason}.Object()
	_, err := o.client.Resource(guard.DowngradeMarkResource).Namespace(guard.Namespace).Create(ctx, mark, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("leave the mark in the member (kubectl create namespace %s makes its place): %w", guard.Namespace, err)
	default:
		return fmt.Errorf("leave the mark in the member: %w", err)
	}
}

// ErrNotDowngraded is returned by Resume if the member has no mark.
var ErrNotDowngraded = errors.New("this cluster is not downgraded")

// Resume deletes the mark, so that ACP writes to the member again, and returns its content. It closes nothing itself: the control plane restores the policies.
func (o *Operator) Resume(ctx context.Context) (guard.DowngradeMark, error) {
	mark, err := o.mark(ctx)
	if err != nil {
		return guard.DowngradeMark{}, err
	}
	if mark == nil {
		return guard.DowngradeMark{}, ErrNotDowngraded
	}
	err = o.client.Resource(guard.DowngradeMarkResource).Namespace(guard.Namespace).Delete(ctx, guard.DowngradeMarkName, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return *mark, fmt.Errorf("take the mark away: %w", err)
	}
	return *mark, nil
}

// open updates every object that refuses something, and returns the number of updates. An object that cannot be written
// does not affect the others.
func (o *Operator) open(ctx context.Context) (int, error) {
	type work struct {
		kind   kind
		object *unstructured.Unstructured
	}
	var mu sync.Mutex
	var errs []error
	written := 0
	todo := make(chan work)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for w := range todo {
				changed, err := o.openOne(ctx, w.kind, w.object)
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
				} else if changed {
					written++
				}
				mu.Unlock()
			}
		})
	}
	err := o.each(ctx, func(k kind, u *unstructured.Unstructured) error {
		select {
		case todo <- work{k, u}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	close(todo)
	running.Wait()
	if len(errs) > maxErrors {
		errs = append(errs[:maxErrors], fmt.Errorf("and %d more", len(errs)-maxErrors))
	}
	return written, errors.Join(append(errs, err)...)
}

// maxErrors is the number of errors that are returned.
const maxErrors = 5

func (o *Operator) openOne(ctx context.Context, k kind, u *unstructured.Unstructured) (bool, error) {
	client := dynamic.ResourceInterface(o.client.Resource(k.TargetResource))
	if u.GetNamespace() != "" {
		client = o.client.Resource(k.TargetResource).Namespace(u.GetNamespace())
	}
	name := u.GetName()
	for try := 1; ; try++ {
		next, closing, err := k.open(u)
		if err != nil || !closing {
			return false, err
		}
		_, err = client.Update(ctx, next, metav1.UpdateOptions{FieldManager: fieldManager})
		switch {
		case err == nil:
			return true, nil
		case apierrors.IsNotFound(err):
			return false, nil
		case !apierrors.IsConflict(err) || try == attempts:
			return false, fmt.Errorf("open %s %s: %w", k.TargetResource.Resource, name, err)
		}
		if u, err = client.Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("read %s %s: %w", k.TargetResource.Resource, name, err)
		}
	}
}

// refusesPusher reports whether the guard refuses the user of the member's engine, whichever it is. It returns false if the
// operator may not impersonate that user.
func (o *Operator) refusesPusher(ctx context.Context) bool {
	return o.refuses(ctx, guard.Pusher) || o.refuses(ctx, guard.DirectWriter)
}

// refuses reports whether the guard refuses a dry-run request of a user because of the downgrade.
func (o *Operator) refuses(ctx context.Context, user string) bool {
	client, err := dynamic.NewForConfig(impersonating(o.base, user, "system:serviceaccounts", "system:serviceaccounts:"+guard.Namespace))
	if err != nil {
		return false
	}
	k := kinds()[0]
	probe := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.TargetResource.GroupVersion().String(), "kind": k.Target.Kind,
		"metadata": map[string]any{"name": v1alpha1.ObjectPrefix + "downgrade-probe"}, "spec": k.opened(map[string]any{"endpointSelector": map[string]any{}})}}
	_, err = client.Resource(k.TargetResource).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "'"+guard.PolicyDowngrade+"'")
}
