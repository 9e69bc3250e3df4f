package change

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

// Affected returns the names of the resources that a change of a class affects, sorted: those whose compiled units differ with and without
// the change and, if the change is one of the placement or the enforcers of a resource class, all resources of the class that are onboarded.
func Affected(base *policy.Snapshot, in policy.Input, c approval.Change, at time.Time) []string {
	before, after, names := Snapshots(base, in, approval.KindClass, []approval.Item{{Change: &c}})
	found := map[string]bool{}
	for _, name := range names { // of every unit of the class: another object is a reason to compile a unit again
		a, had := before.CompileResource(name, at)
		b, has := after.CompileResource(name, at)
		if had != has || !equality.Semantic.DeepEqual(a, b) {
			found[name] = true
		}
	}
	patterns := replacedPatterns(c)
	for _, r := range in.Resources {
		name, err := policy.ParseName(string(r.Spec.Resource))
		if err != nil || !r.Spec.RequiresProtection() {
			continue
		}
		for _, p := range patterns {
			if p.Covers(name) {
				found[string(r.Spec.Resource)] = true
			}
		}
	}
	return sortedKeys(found)
}

// replacedPatterns returns the patterns of a resource class, before and after a change of its placement or its enforcers, which replaces the
// objects in the members; none for other changes. A spec that cannot be read counts as such a change.
func replacedPatterns(c approval.Change) []policy.Name {
	if c.Kind != approval.ObjectResourceClass {
		return nil
	}
	var before, after v1alpha1.ResourceClassSpec
	readable := true
	for raw, into := range map[*json.RawMessage]*v1alpha1.ResourceClassSpec{&c.Before: &before, &c.After: &after} {
		if len(*raw) > 0 && json.Unmarshal(*raw, into) != nil {
			readable = false
		}
	}
	if readable && equality.Semantic.DeepEqual(before.Placement, after.Placement) && equality.Semantic.DeepEqual(before.Enforcers, after.Enforcers) {
		return nil
	}
	var out []policy.Name
	for _, pattern := range []v1alpha1.NamePattern{before.Pattern, after.Pattern} {
		if name, err := policy.ParseName(string(pattern)); err == nil {
			out = append(out, name)
		}
	}
	return out
}
