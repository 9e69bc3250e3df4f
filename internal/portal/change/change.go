// Package change computes what a ticket changes: the objects of ACP and those of each dataplane, before and after. Its functions are
// pure: the state of the host cluster is a parameter, and nothing is read or written. It is for display only; approvals are
// bound to Shown of package approval.
package change

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Layers of objects.
const (
	// LayerACP is the layer of ACP's own objects.
	LayerACP = "acp"
	// LayerDataplane is the layer of the objects that the dataplanes are given.
	LayerDataplane = "dataplane"
)

const (
	// mostUnits is the maximum number of resources whose dataplane objects a view contains. A class may have thousands.
	mostUnits = 30
	// mostStatements is the number of statements up to which a policy is shown as a whole. Of larger ones only changed statements are
	// shown.
	mostStatements = 40
)

// Object is an object before and after the change, as YAML; empty if it does not exist.
type Object struct {
	Layer, Kind, Name string
	Enforcer          string
	Clusters          []string // nil for all targeted members that no other object of the view names
	Before, After     string
}

// View contains everything that a ticket changes.
type View struct {
	Objects []Object
	Refused []message.Message // what some or all dataplanes cannot enforce
	Notes   []message.Message // what is not shown, and why
}

// Of returns the view of the items of a ticket or of a preview. base is the snapshot of the input, whose unchanged parts are reused.
// Without members the view contains no objects of Istio.
func Of(base *policy.Snapshot, in policy.Input, members []Member, kind approval.Kind, items []approval.Item, at time.Time) View {
	before, after, units, notes := sides(base, in, kind, items)
	v := View{Notes: notes}
	for _, it := range items {
		if it.Change != nil {
			v.Objects = append(
				v.Objects,
				Object{Layer: LayerACP, Kind: it.Change.Kind, Name: it.Change.Name, Before: spec(it.Change.Before), After: spec(it.Change.After)},
			)
		}
	}
	if kind.Access() {
		v.Objects = append(v.Objects, onboarded(before.Resources, after.Resources)...)
	}
	v.Objects = append(v.Objects, policies(before.Policies, after.Policies, items)...)
	old, new := base.Next(before), base.Next(after)
	if kind == approval.KindWorkload {
		// The policies of the reached resources are left out: they do not change, or they name other clients besides the addresses.
		v.groups(old, new, items)
		return v
	}
	for _, name := range policy.ChangedUnits(old, new) {
		units[name] = true
	}
	v.dataplane(old, new, units, members, at)
	return v
}

// Snapshots returns the snapshots before and after the items, and the names of the resources that they concern.
func Snapshots(base *policy.Snapshot, in policy.Input, kind approval.Kind, items []approval.Item) (before, after *policy.Snapshot, resources []string) {
	old, new, units, _ := sides(base, in, kind, items)
	before, after = base.Next(old), base.Next(new)
	for _, name := range policy.ChangedUnits(before, after) {
		units[name] = true
	}
	return before, after, sortedKeys(units)
}

// sides returns the input without and with the items, and the resources that they name.
func sides(
	base *policy.Snapshot,
	in policy.Input,
	kind approval.Kind,
	items []approval.Item,
) (before, after policy.Input, units map[string]bool, notes []message.Message) {
	before, after, units = in, in, map[string]bool{}
	for _, it := range items {
		switch {
		case kind.Access():
			statement := approval.Statement(it)
			name := shardOf(after.Policies, baseOf(it), statement.SID)
			before.Policies = without(before.Policies, name, it.SID)
			after.Policies = with(after.Policies, name, statement)
			if it.ResourceName != "" {
				onboard(base, &after, it, statement.SID)
				units[it.ResourceName] = true
			}
		case kind == approval.KindRevoke && it.Target != nil:
			after.Policies = WithoutTarget(after.Policies, it)
			if it.ResourceName != "" {
				units[it.ResourceName] = true
			}
		case it.Change != nil:
			if it.ResourceName != "" {
				units[it.ResourceName] = true
			}
			if err := apply(&before, it.Change, it.Change.Before); err != nil {
				notes = []message.Message{message.Of(err)}
			}
			if err := apply(&after, it.Change, it.Change.After); err != nil {
				notes = []message.Message{message.Of(err)}
			}
		}
	}
	return before, after, units, notes
}

// policies returns the policies that differ. Of large ones it returns only the changed statements.
func policies(before, after []*v1alpha1.AccessControlPolicy, items []approval.Item) []Object {
	names := map[string]bool{}
	for _, it := range items {
		if it.ResourceName != "" || it.Scope != nil {
			for _, all := range [][]*v1alpha1.AccessControlPolicy{before, after} {
				for _, name := range shards(all, baseOf(it)) {
					names[name] = true
				}
			}
		}
	}
	var out []Object
	for _, name := range sortedKeys(names) {
		a, b := find(before, name), find(after, name)
		o := Object{Layer: LayerACP, Kind: "AccessControlPolicy", Name: name}
		o.Before, o.After = policyText(a, b), policyText(b, a)
		if o.Before != o.After {
			out = append(out, o)
		}
	}
	return out
}

// policyText returns a policy as YAML. Of a large one it returns only the statements that differ from those of other.
func policyText(p, other *v1alpha1.AccessControlPolicy) string {
	if p == nil || len(p.Spec.Statements) == 0 {
		return ""
	}
	if len(p.Spec.Statements) <= mostStatements {
		return text(p.Spec)
	}
	same := map[string]bool{}
	if other != nil {
		for _, s := range other.Spec.Statements {
			same[text(s)] = true
		}
	}
	short := p.Spec
	short.Statements = slices.DeleteFunc(slices.Clone(short.Statements), func(s v1alpha1.Statement) bool { return same[text(s)] })
	return fmt.Sprintf("# beside %d statements that do not change\n%s", len(p.Spec.Statements)-len(short.Statements), text(short))
}

func find(all []*v1alpha1.AccessControlPolicy, name string) *v1alpha1.AccessControlPolicy {
	i := slices.IndexFunc(all, func(p *v1alpha1.AccessControlPolicy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// with returns the policies with a statement in one of them, which is copied. A statement with the same sid is replaced.
func with(all []*v1alpha1.AccessControlPolicy, name string, s v1alpha1.Statement) []*v1alpha1.AccessControlPolicy {
	all = without(all, name, s.SID)
	p := find(all, name)
	if p == nil {
		return append(
			slices.Clone(all),
			&v1alpha1.AccessControlPolicy{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{s}},
			},
		)
	}
	return replace(all, p, append(slices.Clone(p.Spec.Statements), s))
}

func without(all []*v1alpha1.AccessControlPolicy, name, sid string) []*v1alpha1.AccessControlPolicy {
	p := find(all, name)
	if p == nil || !slices.ContainsFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.SID == sid }) {
		return all
	}
	return replace(all, p, slices.DeleteFunc(slices.Clone(p.Spec.Statements), func(s v1alpha1.Statement) bool { return s.SID == sid }))
}

func replace(all []*v1alpha1.AccessControlPolicy, p *v1alpha1.AccessControlPolicy, statements []v1alpha1.Statement) []*v1alpha1.AccessControlPolicy {
	out := slices.Clone(all)
	changed := *p // the other lists are shared
	changed.Spec.Statements = statements
	out[slices.Index(out, p)] = &changed
	return out
}

// apply sets the spec of an object of the input. Without a spec the object is removed. Approval policies are not part of the input.
func apply(in *policy.Input, c *approval.Change, raw json.RawMessage) error {
	meta := metav1.ObjectMeta{Name: c.Name}
	switch c.Kind {
	case "ProtectedResource":
		o := &v1alpha1.ProtectedResource{ObjectMeta: meta}
		return put(&in.Resources, o, raw, &o.Spec)
	case "ResourceClass":
		o := &v1alpha1.ResourceClass{ObjectMeta: meta}
		return put(&in.ResourceClasses, o, raw, &o.Spec)
	case "SubjectClass":
		o := &v1alpha1.SubjectClass{ObjectMeta: meta}
		return put(&in.SubjectClasses, o, raw, &o.Spec)
	case "ExternalWorkload":
		o := &v1alpha1.ExternalWorkload{ObjectMeta: meta}
		return put(&in.Workloads, o, raw, &o.Spec)
	}
	return nil
}

func put[T metav1.Object](list *[]T, o T, raw json.RawMessage, into any) error {
	out := slices.DeleteFunc(slices.Clone(*list), func(x T) bool {
		if x.GetName() != o.GetName() {
			return false
		}
		o.SetCreationTimestamp(x.GetCreationTimestamp()) // of two classes that overlap the older one counts
		return true
	})
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, into); err != nil {
			return message.ChangeSpecUnreadable(o.GetName()).Wrap(err)
		}
		out = append(out, o)
	}
	*list = out
	return nil
}

func spec(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	out, err := yaml.JSONToYAML(raw)
	if err != nil {
		return ""
	}
	return string(out)
}

func text(v any) string {
	out, err := yaml.Marshal(v)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(out), "\n") + "\n"
}
