package faults

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// model contains the wanted objects: those that were written to the host. The objects are immutable; a change replaces them.
type model struct {
	policies  map[string]*v1alpha1.AccessControlPolicy
	resources map[string]*v1alpha1.ProtectedResource
	classes   map[string]*v1alpha1.ResourceClass
	subjects  map[string]*v1alpha1.SubjectClass
	workloads map[string]*v1alpha1.ExternalWorkload
}

// newModel returns a model of the objects that the fleet starts with. It ignores kinds that do not affect verdicts.
func newModel(objects []*unstructured.Unstructured) (*model, error) {
	w := &model{
		policies: map[string]*v1alpha1.AccessControlPolicy{}, resources: map[string]*v1alpha1.ProtectedResource{},
		classes: map[string]*v1alpha1.ResourceClass{}, subjects: map[string]*v1alpha1.SubjectClass{}, workloads: map[string]*v1alpha1.ExternalWorkload{},
	}
	for _, u := range objects {
		var err error
		switch u.GetKind() {
		case "AccessControlPolicy":
			err = decodeInto(w.policies, u)
		case "ProtectedResource":
			err = decodeInto(w.resources, u)
		case "ResourceClass":
			err = decodeInto(w.classes, u)
		case "SubjectClass":
			err = decodeInto(w.subjects, u)
		case "ExternalWorkload":
			err = decodeInto(w.workloads, u)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return w, nil
}

// decodeInto decodes an object and stores it under its name.
func decodeInto[T any](into map[string]*T, u *unstructured.Unstructured) error {
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &out); err != nil {
		return err
	}
	into[u.GetName()] = &out
	return nil
}

// clone returns a copy that shares the objects, which are immutable.
func (m *model) clone() *model {
	return &model{maps.Clone(m.policies), maps.Clone(m.resources), maps.Clone(m.classes), maps.Clone(m.subjects), maps.Clone(m.workloads)}
}

// evaluator computes the verdicts of connections for a model.
type evaluator struct {
	*policy.Snapshot
	model *model
}

// evaluator returns the evaluator of the model for pods with the known labels.
func (m *model) evaluator(known map[string][]string) evaluator {
	in := policy.Input{
		Policies: sorted(m.policies), Resources: sorted(m.resources), ResourceClasses: sorted(m.classes),
		SubjectClasses: sorted(m.subjects), Workloads: sorted(m.workloads), Members: 2,
	}
	name := func(key v1alpha1.LabelKey, pattern v1alpha1.NamePattern) {
		for _, value := range known[string(key)] {
			in.KnownNames = append(in.KnownNames, strings.TrimSuffix(string(pattern), "*")+value)
		}
	}
	for _, c := range in.ResourceClasses {
		name(c.Spec.LabelKey, c.Spec.Pattern)
	}
	for _, c := range in.SubjectClasses {
		name(c.Spec.LabelKey, c.Spec.Pattern)
	}
	return evaluator{policy.NewSnapshot(in), m}
}

// sorted returns the values of a map in the order of their keys.
func sorted[T any](m map[string]T) []T {
	out := make([]T, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// passes reports whether a connection must pass in a member at an instant.
func (e evaluator) passes(member string, a attempt, at time.Time) bool {
	q := policy.Query{Cluster: member, Protocol: v1alpha1.ProtocolTCP, Port: a.Port, At: at}
	if a.source.labels == nil {
		q.Source = netip.MustParseAddr(a.source.id)
	} else {
		q.Subjects = e.SubjectsOf(a.source.labels)
	}
	for _, r := range e.ResourcesOf(a.server.labels) {
		if class, ok := e.ResourceClassOf(r); ok && placed(class, member) {
			q.Resources = append(q.Resources, r)
		}
	}
	return len(q.Resources) == 0 || e.Decide(q).Verdict.LetsThrough()
}

// subjectAt returns the subject of an address outside the fleet, or "" when no external workload has it.
func (e evaluator) subjectAt(address string) string {
	subject, _ := e.SubjectOfAddress(netip.MustParseAddr(address))
	return subject
}

// placed reports whether the placement of a class includes a member.
func placed(c *v1alpha1.ResourceClass, member string) bool {
	p := c.Spec.Placement
	return p.ClusterSelector != nil || p.Clusters != nil && slices.Contains(*p.Clusters, v1alpha1.ClusterName(member))
}

// changeTimes returns now and the times within the horizon at which a verdict changes.
func (e evaluator) changeTimes(now time.Time, horizon time.Duration) []time.Time {
	out := []time.Time{now}
	for at := now; ; {
		next, ok := e.NextChange(at)
		if !ok || next.After(now.Add(horizon)) {
			return out
		}
		out, at = append(out, next), next
	}
}

// set adds or replaces an object. The caller owns the model exclusively, as after clone.
func (m *model) set(obj runtime.Object) {
	switch o := obj.(type) {
	case *v1alpha1.AccessControlPolicy:
		m.policies[o.Name] = o
	case *v1alpha1.ProtectedResource:
		m.resources[o.Name] = o
	case *v1alpha1.ResourceClass:
		m.classes[o.Name] = o
	case *v1alpha1.ExternalWorkload:
		m.workloads[o.Name] = o
	}
}

// unset removes an object.
func (m *model) unset(obj runtime.Object) {
	switch o := obj.(type) {
	case *v1alpha1.AccessControlPolicy:
		delete(m.policies, o.Name)
	case *v1alpha1.ProtectedResource:
		delete(m.resources, o.Name)
	case *v1alpha1.ResourceClass:
		delete(m.classes, o.Name)
	case *v1alpha1.ExternalWorkload:
		delete(m.workloads, o.Name)
	}
}
