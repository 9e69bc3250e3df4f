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

// world is what is wanted: the objects that were written to the host. They are never changed, only replaced.
type world struct {
	policies  map[string]*v1alpha1.AccessControlPolicy
	resources map[string]*v1alpha1.ProtectedResource
	classes   map[string]*v1alpha1.ResourceClass
	subjects  map[string]*v1alpha1.SubjectClass
	workloads map[string]*v1alpha1.ExternalWorkload
}

// newWorld takes the objects that the fleet began with; those of other kinds decide nothing.
func newWorld(objects []*unstructured.Unstructured) (*world, error) {
	w := &world{
		policies: map[string]*v1alpha1.AccessControlPolicy{}, resources: map[string]*v1alpha1.ProtectedResource{},
		classes: map[string]*v1alpha1.ResourceClass{}, subjects: map[string]*v1alpha1.SubjectClass{}, workloads: map[string]*v1alpha1.ExternalWorkload{},
	}
	for _, u := range objects {
		var err error
		switch u.GetKind() {
		case "AccessControlPolicy":
			err = take(w.policies, u)
		case "ProtectedResource":
			err = take(w.resources, u)
		case "ResourceClass":
			err = take(w.classes, u)
		case "SubjectClass":
			err = take(w.subjects, u)
		case "ExternalWorkload":
			err = take(w.workloads, u)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return w, nil
}

func take[T any](into map[string]*T, u *unstructured.Unstructured) error {
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &out); err != nil {
		return err
	}
	into[u.GetName()] = &out
	return nil
}

// clone shares the objects, which never change.
func (w *world) clone() *world {
	return &world{maps.Clone(w.policies), maps.Clone(w.resources), maps.Clone(w.classes), maps.Clone(w.subjects), maps.Clone(w.workloads)}
}

// meaning is what a world says of connections.
type meaning struct {
	*policy.Snapshot
	world *world
}

func (w *world) meaning(known map[string][]string) meaning {
	in := policy.Input{
		Policies: sorted(w.policies), Resources: sorted(w.resources), ResourceClasses: sorted(w.classes),
		SubjectClasses: sorted(w.subjects), Workloads: sorted(w.workloads), Members: 2,
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
	return meaning{policy.NewSnapshot(in), w}
}

func sorted[T any](m map[string]T) []T {
	out := make([]T, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// passes reports whether a connection has to pass in a member at an instant.
func (m meaning) passes(member string, a attempt, at time.Time) bool {
	q := policy.Query{Cluster: member, Protocol: v1alpha1.ProtocolTCP, Port: a.Port, At: at}
	if a.source.labels == nil {
		q.Source = netip.MustParseAddr(a.source.id)
	} else {
		q.Subjects = m.SubjectsOf(a.source.labels)
	}
	for _, r := range m.ResourcesOf(a.server.labels) {
		if class, ok := m.ResourceClassOf(r); ok && placed(class, member) {
			q.Resources = append(q.Resources, r)
		}
	}
	return len(q.Resources) == 0 || m.Decide(q).Verdict.LetsThrough()
}

// subjectAt is the subject of an address outside; "": nobody's.
func (m meaning) subjectAt(address string) string {
	subject, _ := m.SubjectOfAddress(netip.MustParseAddr(address))
	return subject
}

// placed: a class has its units in a member.
func placed(c *v1alpha1.ResourceClass, member string) bool {
	p := c.Spec.Placement
	return p.ClusterSelector != nil || p.Clusters != nil && slices.Contains(*p.Clusters, v1alpha1.ClusterName(member))
}

// instants are now and those at which what it says changes within a horizon.
func (m meaning) instants(now time.Time, horizon time.Duration) []time.Time {
	out := []time.Time{now}
	for at := now; ; {
		next, ok := m.NextChange(at)
		if !ok || next.After(now.Add(horizon)) {
			return out
		}
		out, at = append(out, next), next
	}
}

// set takes an object in, and unset forgets it.
func (w *world) set(obj runtime.Object) {
	switch o := obj.(type) {
	case *v1alpha1.AccessControlPolicy:
		w.policies[o.Name] = o
	case *v1alpha1.ProtectedResource:
		w.resources[o.Name] = o
	case *v1alpha1.ResourceClass:
		w.classes[o.Name] = o
	case *v1alpha1.ExternalWorkload:
		w.workloads[o.Name] = o
	}
}

func (w *world) unset(obj runtime.Object) {
	switch o := obj.(type) {
	case *v1alpha1.AccessControlPolicy:
		delete(w.policies, o.Name)
	case *v1alpha1.ProtectedResource:
		delete(w.resources, o.Name)
	case *v1alpha1.ResourceClass:
		delete(w.classes, o.Name)
	case *v1alpha1.ExternalWorkload:
		delete(w.workloads, o.Name)
	}
}
