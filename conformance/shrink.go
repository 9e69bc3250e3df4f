package conformance

import (
	"maps"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Shrink removes parts of the case while it still fails, until nothing more can be removed.
func Shrink(c *Case, fails func(*Case) bool) *Case {
	for {
		smaller := shrinkOnce(c, fails)
		if smaller == nil {
			return c
		}
		c = smaller
	}
}

func shrinkOnce(c *Case, fails func(*Case) bool) *Case {
	for i := range parts(c) {
		smaller := c.clone()
		parts(smaller)[i]()
		if fails(smaller) {
			return smaller
		}
	}
	return nil
}

// parts returns the possible removals, the largest first; each applies to this case only.
func parts(c *Case) []func() {
	var out []func()
	in := c.Input
	out = append(out, elements(&in.Policies, 0)...)
	out = append(out, elements(&in.Resources, 0)...)
	out = append(out, elements(&in.Workloads, 0)...)
	out = append(out, elements(&in.ResourceClasses, 1)...)
	out = append(out, elements(&in.SubjectClasses, 0)...)
	out = append(out, elements(&in.KnownNames, 0)...)
	for _, p := range in.Policies {
		out = append(out, elements(&p.Spec.Statements, 0)...)
		for i := range p.Spec.Statements {
			st := &p.Spec.Statements[i]
			out = append(out, elements(&st.Subjects, 1)...)
			out = append(out, elements(&st.Actions, 1)...)
			out = append(out, elements(&st.Resources, 1)...)
			out = append(out, unset(&st.NotBefore)...)
			out = append(out, unset(&st.NotAfter)...)
		}
	}
	for _, r := range in.Resources {
		out = append(out, elements(&r.Spec.ClusterModes, 0)...)
		out = append(out, unset(&r.Spec.TemporaryAudit)...)
	}
	for _, w := range in.Workloads {
		out = append(out, elements(&w.Spec.Addresses, 1)...)
	}
	for _, class := range in.ResourceClasses {
		out = append(out, elements(&class.Spec.Actions, 1)...)
		for i := range class.Spec.Actions {
			out = append(out, elements(&class.Spec.Actions[i].Ports, 1)...)
			out = append(out, elements(&class.Spec.Actions[i].HTTP, 1)...)
		}
		if class.Spec.OtherPorts == v1alpha1.OtherPortsAllow {
			out = append(out, func() { class.Spec.OtherPorts = v1alpha1.OtherPortsDeny })
		}
	}
	for _, labels := range []map[string]string{c.Connection.Destination, c.Connection.Source.Labels} {
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			out = append(out, func() { delete(labels, key) })
		}
	}
	return out
}

// elements removes each element, while there are more than least.
func elements[T any](list *[]T, least int) []func() {
	var out []func()
	for i := range *list {
		if len(*list) > least {
			out = append(out, func() { *list = slices.Delete(*list, i, i+1) })
		}
	}
	return out
}

func unset[T any](p **T) []func() {
	if *p == nil {
		return nil
	}
	return []func(){func() { *p = nil }}
}

func (c *Case) clone() *Case {
	out := *c
	out.Input = cloneInput(c.Input)
	out.Connection.Destination = maps.Clone(c.Connection.Destination)
	out.Connection.Source.Labels = maps.Clone(c.Connection.Source.Labels)
	return &out
}

func cloneInput(in *policy.Input) *policy.Input {
	out := *in
	out.Policies = cloneAll(in.Policies)
	out.ResourceClasses = cloneAll(in.ResourceClasses)
	out.SubjectClasses = cloneAll(in.SubjectClasses)
	out.Resources = cloneAll(in.Resources)
	out.Workloads = cloneAll(in.Workloads)
	out.KnownNames = slices.Clone(in.KnownNames)
	return &out
}

func cloneAll[T interface{ DeepCopy() T }](list []T) []T {
	out := make([]T, len(list))
	for i, o := range list {
		out[i] = o.DeepCopy()
	}
	return out
}
