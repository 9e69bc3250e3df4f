package admission

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Verdict is the result of a review. The change is admitted if there are no denials.
type Verdict struct {
	Denials, Warnings []string
}

func (v *Verdict) deny(format string, args ...any) {
	v.Denials = append(v.Denials, fmt.Sprintf(format, args...))
}

func (v *Verdict) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

// fault adds a denial if the change caused the error, and a warning if the error existed before.
func (v *Verdict) fault(isNew bool, format string, args ...any) {
	if isNew {
		v.deny(format, args...)
	} else {
		v.warn(format, args...)
	}
}

// Object has the methods that every kind has.
type Object[T any] interface {
	*T
	GetName() string
}

// without returns a list without the object of the given name, which the change replaces.
func without[T any, O Object[T]](list []O, name string) []O {
	return slices.DeleteFunc(slices.Clone(list), func(o O) bool { return o == nil || o.GetName() == name })
}

// Policy reviews a policy that is created (old is nil) or updated. The input must contain the classes and the protected
// resources.
func Policy(old, now *v1alpha1.AccessControlPolicy, in policy.Input, at time.Time) Verdict {
	var v Verdict
	before := map[string]*v1alpha1.Statement{}
	if old != nil {
		for i := range old.Spec.Statements {
			before[old.Spec.Statements[i].SID] = &old.Spec.Statements[i]
		}
	}
	touched := map[string]bool{}
	for i := range now.Spec.Statements {
		st := &now.Spec.Statements[i]
		touched[st.SID] = before[st.SID] == nil || !equality.Semantic.DeepEqual(before[st.SID], st)
	}
	in.Policies = []*v1alpha1.AccessControlPolicy{now}
	snapshot := policy.NewSnapshot(in)
	for _, r := range snapshot.Refusals() {
		switch r.Reason {
		case v1alpha1.RefusedUnknownSubject, v1alpha1.RefusedUnknownResource, v1alpha1.RefusedUnknownAction, v1alpha1.RefusedInvalidName,
			v1alpha1.RefusedInvalidHours:
			v.fault(touched[r.Ref.SID], "statement %s: %s", r.Ref.SID, r.Message)
		default:
			v.warn("statement %s will not be enforced: %s", r.Ref.SID, r.Message)
		}
	}
	for _, n := range lintStatements(snapshot, now, at) {
		if touched[n.Ref.SID] {
			v.warn("statement %s: %s", n.Ref.SID, n.Message)
		}
	}
	return v
}

// ProtectedResource reviews a protected resource that is created (old is nil) or updated. The input must contain the
// resource classes, the other protected resources and the policies.
func ProtectedResource(old, now *v1alpha1.ProtectedResource, in policy.Input, at time.Time) Verdict {
	var v Verdict
	in.Resources = append(without(in.Resources, now.Name), now)
	snapshot := policy.NewSnapshot(in)
	for _, p := range problemsOf(snapshot, "ProtectedResource", now.Name) {
		v.fault(p.LeftOut && old == nil, "%s", p.Message)
	}
	for _, n := range lintResource(snapshot, now, at) {
		v.warn("%s", n.Message)
	}
	return v
}

// DeleteProtectedResource reviews a deletion, which it admits only from Observe, so that a resource cannot be opened by
// deleting an object.
func DeleteProtectedResource(old *v1alpha1.ProtectedResource) Verdict {
	var v Verdict
	closed := old.Spec.Mode != v1alpha1.ModeObserve
	for _, m := range old.Spec.ClusterModes {
		closed = closed || m.Mode != v1alpha1.ModeObserve
	}
	if closed {
		v.deny("%s is in %s: set spec.mode to Observe and empty spec.clusterModes first, then delete it", old.Spec.Resource, strictest(old))
	}
	return v
}

func strictest(o *v1alpha1.ProtectedResource) v1alpha1.Mode {
	mode := o.Spec.Mode
	for _, m := range o.Spec.ClusterModes {
		if m.Mode == v1alpha1.ModeEnforce || mode == v1alpha1.ModeObserve {
			mode = m.Mode
		}
	}
	return mode
}

// ExternalWorkload reviews a workload that is created (old is nil) or updated. The input must contain the subject
// classes and the other workloads.
func ExternalWorkload(old, now *v1alpha1.ExternalWorkload, in policy.Input) Verdict {
	var v Verdict
	in.Workloads = append(without(in.Workloads, now.Name), now)
	touched := old == nil || !equality.Semantic.DeepEqual(old.Spec, now.Spec)
	for _, p := range problemsOf(policy.NewSnapshot(in), "ExternalWorkload", now.Name) {
		switch p.Reason {
		case v1alpha1.RefusedUnsupported:
			v.warn("%s", p.Message)
		case v1alpha1.ReasonDuplicate:
			v.warn("%s", p.Message) // It closes more than it opens, and may be a step in moving an address.
		default:
			v.fault(touched, "%s", p.Message)
		}
	}
	for _, n := range lintWorkload(now) {
		v.warn("%s", n.Message)
	}
	return v
}

func problemsOf(s *policy.Snapshot, kind, name string) []policy.Problem {
	return slices.DeleteFunc(s.Problems(), func(p policy.Problem) bool { return p.Kind != kind || p.Name != name })
}
