package host

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/change"
	"github.com/acp-io/acp/internal/wallclock"
)

var _ approval.Host = (*Host)(nil)

// Facts implements approval.Host.
func (h *Host) Facts(resource string) (approval.Facts, error) {
	if resource == "" {
		return approval.Facts{}, nil
	}
	s, ok := h.Snapshot()
	if !ok {
		return approval.Facts{}, approval.HostUnknown()
	}
	f := approval.Facts{Protection: h.Protection(resource), Clients: clients(s.WhoCanReach(resource, wallclock.Now()))}
	if c, ok := s.ResourceClassOf(resource); ok {
		f.Class, f.ClassObject, f.Members = c.Name, c, change.Placed(c.Spec.Placement, change.MembersOf(h.Members()))
		for _, e := range c.Spec.Enforcers {
			f.Enforcers = append(f.Enforcers, string(e))
		}
	}
	return f, nil
}

// clients returns the number of subjects in allows in force.
func clients(grants []policy.Grant) int {
	seen := map[string]bool{}
	for _, g := range grants {
		if g.Effect == policy.Allow && g.Counting {
			seen[g.Subject] = true
		}
	}
	return len(seen)
}

// ApprovalPolicies implements approval.Host.
func (h *Host) ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error) {
	if !h.Ready() {
		return nil, approval.HostUnknown()
	}
	var list v1alpha1.ApprovalPolicyList
	if err := h.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the approval policies of the cache: %w", err)
	}
	return pointers(list.Items), nil
}

// Organizations implements approval.Host.
func (h *Host) Organizations() ([]*v1alpha1.Organization, error) {
	if !h.Ready() {
		return nil, approval.HostUnknown()
	}
	var list v1alpha1.OrganizationList
	if err := h.cache.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the organizations of the cache: %w", err)
	}
	return pointers(list.Items), nil
}

// indexSubject is the index of ExternalWorkloads by subject.
const indexSubject = "spec.subject"

func subjectOf(o client.Object) []string {
	w, ok := o.(*v1alpha1.ExternalWorkload)
	if !ok {
		return nil
	}
	return []string{string(w.Spec.Subject)}
}

// Compiled implements approval.Host. It is called during decisions, so it reads only what an item needs.
func (h *Host) Compiled(it approval.Item) ([]string, error) {
	if !h.Ready() {
		return nil, approval.HostUnknown()
	}
	switch {
	case it.Change != nil && it.Change.Kind == approval.ObjectExternalWorkload:
		return h.compiledWorkload(it)
	case it.Change != nil:
		return h.compiledChange(it)
	case it.Scope != nil:
		return h.compiledScope(it)
	}
	var resources v1alpha1.ResourceClassList
	var subjects v1alpha1.SubjectClassList
	var workloads v1alpha1.ExternalWorkloadList
	ctx := context.Background() // lists of a synced cache do not block
	if err := errors.Join(h.cache.List(ctx, &resources, client.UnsafeDisableDeepCopy), h.cache.List(ctx, &subjects, client.UnsafeDisableDeepCopy),
		h.cache.List(ctx, &workloads, client.UnsafeDisableDeepCopy, client.MatchingFields{indexSubject: it.ApplicationName})); err != nil {
		return nil, fmt.Errorf("list the classes and workloads of the cache: %w", err)
	}
	return CompiledLines(
		policy.NewInput(
			policy.Objects{ResourceClasses: pointers(resources.Items), SubjectClasses: pointers(subjects.Items), Workloads: pointers(workloads.Items)},
			registry.FleetOf(h.Members()),
		),
		it,
	), nil
}

// current returns the snapshot of the host cluster and its input, or an error while they are not known.
func (h *Host) current() (*policy.Snapshot, policy.Input, error) {
	base, ok := h.Snapshot()
	if !ok {
		return nil, policy.Input{}, approval.HostUnknown()
	}
	in, ok := h.Input()
	if !ok {
		return nil, policy.Input{}, approval.HostUnknown()
	}
	return base, in, nil
}

// compiledWorkload compiles what an application reaches, and its addresses with and without the change.
func (h *Host) compiledWorkload(it approval.Item) ([]string, error) {
	base, in, err := h.current()
	if err != nil {
		return nil, err
	}
	return WorkloadLines(base, in, it, wallclock.Now())
}

// compiledScope compiles the host cluster's state with and without the statement of an item.
func (h *Host) compiledScope(it approval.Item) ([]string, error) {
	base, in, err := h.current()
	if err != nil {
		return nil, err
	}
	return ScopeLines(base, in, it, wallclock.Now()), nil
}

// compiledChange compiles the host cluster's state with and without the change of an object.
func (h *Host) compiledChange(it approval.Item) ([]string, error) {
	base, in, err := h.current()
	if err != nil {
		return nil, err
	}
	return ChangedLines(base, in, it, wallclock.Now()), nil
}

// Affected implements approval.Host.
func (h *Host) Affected(c approval.Change) ([]string, error) {
	base, in, err := h.current()
	if err != nil {
		return nil, err
	}
	return change.Affected(base, in, c, wallclock.Now()), nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
