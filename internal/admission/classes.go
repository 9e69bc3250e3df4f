package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// namedUsers bounds the users of a class that a message names.
const namedUsers = 3

// ResourceClass reviews a class that is created (old is nil) or updated. The input must contain the resource classes
// and the policies.
func ResourceClass(old, now *v1alpha1.ResourceClass, in policy.Input) Verdict {
	var v Verdict
	var others []class
	for _, o := range without(in.ResourceClasses, now.Name) {
		others = append(others, class{o.Name, o.Spec.Pattern, o.Spec.LabelKey})
	}
	v.pattern(old == nil, class{now.Name, now.Spec.Pattern, now.Spec.LabelKey}, others)

	in.ResourceClasses, in.Policies = []*v1alpha1.ResourceClass{now}, nil
	for _, p := range problemsOf(policy.NewSnapshot(in), "ResourceClass", now.Name) {
		v.fault(old == nil || !slices.ContainsFunc(problemsOfClass(old), func(q policy.Problem) bool { return p == q }), "%s", p.Message)
	}
	for _, n := range lintResourceClass(old, now) {
		v.warn("%s", n.Message)
	}
	return v
}

func problemsOfClass(c *v1alpha1.ResourceClass) []policy.Problem {
	return problemsOf(policy.NewSnapshot(policy.Input{ResourceClasses: []*v1alpha1.ResourceClass{c}}), "ResourceClass", c.Name)
}

// SubjectClass reviews a class that is created (old is nil) or updated. The input must contain the subject classes.
func SubjectClass(old, now *v1alpha1.SubjectClass, in policy.Input) Verdict {
	var v Verdict
	var others []class
	for _, o := range without(in.SubjectClasses, now.Name) {
		others = append(others, class{o.Name, o.Spec.Pattern, o.Spec.LabelKey})
	}
	v.pattern(old == nil, class{now.Name, now.Spec.Pattern, now.Spec.LabelKey}, others)
	return v
}

// DeleteResourceClass reviews a deletion, which it denies while the class is in use. The input must contain the
// policies and the protected resources.
func DeleteResourceClass(old *v1alpha1.ResourceClass, in policy.Input) Verdict {
	var users []string
	for _, r := range in.Resources {
		if covers(old.Spec.Pattern, string(r.Spec.Resource)) {
			users = append(users, "ProtectedResource "+r.Name)
		}
	}
	users = append(users, statementsWith(in.Policies, func(st *v1alpha1.Statement) bool {
		return slices.ContainsFunc(st.Resources, func(r v1alpha1.ResourceName) bool { return covers(old.Spec.Pattern, string(r)) })
	})...)
	return inUse(users)
}

// DeleteSubjectClass reviews a deletion, which it denies while the class is in use. The input must contain the policies
// and the external workloads.
func DeleteSubjectClass(old *v1alpha1.SubjectClass, in policy.Input) Verdict {
	var users []string
	for _, w := range in.Workloads {
		if covers(old.Spec.Pattern, string(w.Spec.Subject)) {
			users = append(users, "ExternalWorkload "+w.Name)
		}
	}
	users = append(users, statementsWith(in.Policies, func(st *v1alpha1.Statement) bool {
		return slices.ContainsFunc(st.Subjects, func(s v1alpha1.Subject) bool { return covers(old.Spec.Pattern, string(s)) })
	})...)
	return inUse(users)
}

// class has the fields that both kinds of class have.
type class struct {
	name    string
	pattern v1alpha1.NamePattern
	key     v1alpha1.LabelKey
}

// pattern reviews the pattern of a class against the other classes of its kind. The pattern is immutable, so only a new
// class is denied.
func (v *Verdict) pattern(created bool, c class, others []class) {
	n, err := policy.ParseName(string(c.pattern))
	if err != nil {
		v.fault(created, "%v", err)
		return
	}
	for _, o := range others {
		if other, err := policy.ParseName(string(o.pattern)); err == nil && n.Overlaps(other) {
			v.fault(created, "pattern %s overlaps with %s of class %s: a name must be in one class; narrow one of them", c.pattern, o.pattern, o.name)
		}
		if o.key == c.key {
			v.warn("class %s has the same label key %s: a pod carries the names of both, with the same value", o.name, c.key)
		}
	}
}

// covers reports whether a pattern and a name, which may be a wildcard, have names in common.
func covers(pattern v1alpha1.NamePattern, name string) bool {
	p, err := policy.ParseName(string(pattern))
	if err != nil {
		return false
	}
	n, err := policy.ParseName(name)
	return err == nil && p.Overlaps(n)
}

func statementsWith(policies []*v1alpha1.AccessControlPolicy, uses func(*v1alpha1.Statement) bool) []string {
	var out []string
	for _, p := range policies {
		for i := range p.Spec.Statements {
			if st := &p.Spec.Statements[i]; uses(st) {
				out = append(out, fmt.Sprintf("statement %s/%s", p.Name, st.SID))
			}
		}
	}
	return out
}

func inUse(users []string) Verdict {
	var v Verdict
	if len(users) == 0 {
		return v
	}
	slices.Sort(users)
	more := ""
	if n := len(users) - namedUsers; n > 0 {
		users, more = users[:namedUsers], fmt.Sprintf(" and %d more", n)
	}
	v.deny("the class is in use by %s%s: remove them first", strings.Join(users, ", "), more)
	return v
}
