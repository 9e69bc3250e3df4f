package portal

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/waves"
)

// fakeHost is a host cluster in memory.
type fakeHost struct {
	compiled      []string // the result of compiling any item
	affected      []string // by a change of a class
	mu            sync.Mutex
	input         policy.Input
	away          time.Time
	approvals     []*v1alpha1.ApprovalPolicy
	organizations []*v1alpha1.Organization
	members       []*v1alpha1.MemberCluster
	// built, if set, is the snapshot of the input, which then does not change.
	built *policy.Snapshot
}

func (h *fakeHost) AwaySince() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.away
}

func (h *fakeHost) Input() (policy.Input, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.input, true
}

func (h *fakeHost) Members() []*v1alpha1.MemberCluster {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.members
}

// Enforced returns the names of the enforced resources, as host.Host does.
func (h *fakeHost) Enforced() ([]string, bool) {
	in, ok := h.Input()
	var names []string
	for _, p := range in.Resources {
		if rollout.Enforces(p.Spec) {
			names = append(names, string(p.Spec.Resource))
		}
	}
	return names, ok
}

func (h *fakeHost) Ready() bool { return true }

// Snapshot returns a new snapshot each time, because tests change the objects in place.
func (h *fakeHost) Snapshot() (*policy.Snapshot, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.built != nil {
		return h.built, true
	}
	return policy.NewSnapshot(h.input), true
}

func (h *fakeHost) Cached(name string) (*v1alpha1.AccessControlPolicy, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.input.Policies {
		if p.Name == name {
			return p, true
		}
	}
	return nil, false
}

func (h *fakeHost) Protection(resource string) *v1alpha1.ProtectedResource {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.input.Resources {
		if string(r.Spec.Resource) == resource {
			return r
		}
	}
	return nil
}

func (h *fakeHost) ResourceActions(resource string) ([]string, bool, error) {
	s, _ := h.Snapshot()
	if _, ok := s.ResourceClassOf(resource); !ok {
		return nil, false, nil
	}
	return []string{"redis:connect"}, true, nil
}

func (h *fakeHost) SubjectCovered(application string) (bool, error) {
	s, _ := h.Snapshot()
	_, ok := s.SubjectClassOf(application)
	return ok, nil
}

func (h *fakeHost) Facts(resource string) (approval.Facts, error) {
	f := approval.Facts{Protection: h.Protection(resource)}
	s, _ := h.Snapshot()
	if c, ok := s.ResourceClassOf(resource); ok {
		f.Class, f.ClassObject = c.Name, c
	}
	return f, nil
}

func (h *fakeHost) ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error) { return h.approvals, nil }

func (h *fakeHost) Organizations() ([]*v1alpha1.Organization, error) { return h.organizations, nil }

func (h *fakeHost) Reached(application string) (approval.Reached, error) {
	s, _ := h.Snapshot()
	return host.ReachedIn(s, application, time.Now()), nil
}

// Affected implements approval.Host.
func (h *fakeHost) Affected(approval.Change) ([]string, error) { return h.affected, nil }

func (h *fakeHost) Object(string, string) (approval.Object, bool, error) {
	return approval.Object{}, false, nil
}

func (h *fakeHost) DryRun(_ context.Context, c approval.Change) (json.RawMessage, error) {
	return c.After, nil
}

func (h *fakeHost) Compiled(approval.Item) ([]string, error) { return h.compiled, nil }

// SetTemporaryAudit implements rollout.HostWriter.
func (h *fakeHost) SetTemporaryAudit(
	ctx context.Context,
	name, version string,
	audit *v1alpha1.TemporaryAudit,
	check func(context.Context, v1alpha1.ProtectedResourceSpec) error,
) (*v1alpha1.ProtectedResource, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, r := range h.input.Resources {
		if r.Name != name {
			continue
		}
		if version != "" && r.ResourceVersion != version {
			return nil, rollout.ErrChanged
		}
		if err := check(ctx, r.Spec); err != nil {
			return nil, err
		}
		changed := r.DeepCopy()
		changed.Spec.TemporaryAudit, changed.ResourceVersion = audit, r.ResourceVersion+"1"
		h.input.Resources = slices.Clone(h.input.Resources)
		h.input.Resources[i] = changed
		return changed, nil
	}
	return nil, rollout.ErrGone
}

// protectedResources implements Objects of rollout.FleetDowngrader.
func (h *fakeHost) protectedResources(context.Context) ([]*v1alpha1.ProtectedResource, error) {
	in, ok := h.Input()
	if !ok {
		return nil, approval.HostUnknown()
	}
	return in.Resources, nil
}

// Instruct implements rollout.HostWriter.
func (h *fakeHost) Instruct(_ context.Context, name string, i waves.Instruction) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, r := range h.input.Resources {
		if r.Name == name {
			changed := r.DeepCopy()
			changed.Annotations = map[string]string{v1alpha1.AnnotationRollout: i.String()}
			h.input.Resources = slices.Clone(h.input.Resources)
			h.input.Resources[n] = changed
			return nil
		}
	}
	return rollout.ErrGone
}

// InstructClass implements rollout.HostWriter.
func (h *fakeHost) InstructClass(_ context.Context, name string, i waves.Instruction) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, c := range h.input.ResourceClasses {
		if c.Name == name {
			changed := c.DeepCopy()
			changed.Annotations = map[string]string{v1alpha1.AnnotationRollout: i.String()}
			h.input.ResourceClasses = slices.Clone(h.input.ResourceClasses)
			h.input.ResourceClasses[n] = changed
			return nil
		}
	}
	return rollout.ErrGone
}

// ResourceClasses implements rollout.Host.
func (h *fakeHost) ResourceClasses() ([]*v1alpha1.ResourceClass, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.input.ResourceClasses, true
}

// registered stores workloads as a host cluster does that accepts everything.
type registered struct {
	state *workloads.State
	n     atomic.Int64
}

func (r *registered) count() int { return int(r.n.Load()) }

func (r *registered) Put(_ context.Context, in []workloads.Workload) []error {
	r.n.Add(int64(len(in)))
	for _, w := range in {
		r.state.Set(workloads.Registered{Workload: w, Object: w.Name(), Managed: true})
	}
	return make([]error, len(in))
}

func (r *registered) Delete(_ context.Context, in []workloads.Registered) []error {
	r.n.Add(-int64(len(in)))
	for _, w := range in {
		r.state.Delete(w.Object)
	}
	return make([]error, len(in))
}
