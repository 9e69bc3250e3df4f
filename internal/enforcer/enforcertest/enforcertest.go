// Package enforcertest is the conformance test that every enforcer runs over its own units.
//
// It does not depend on a dataplane. Whether the objects mean what the statements mean is tested by each enforcer.
package enforcertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/policy"
)

// Check fails the test for every rule of the enforcer interface that e violates on the units. The units must be usable.
func Check(t *testing.T, e enforcer.Enforcer, units []policy.Unit) {
	t.Helper()
	if errs := validation.IsDNS1123Label(string(e.Name())); len(errs) > 0 {
		t.Errorf("the name %q: %v", e.Name(), errs)
	}
	owners := map[string]string{}
	for _, u := range units {
		for _, problem := range problems(e, u) {
			t.Errorf("unit %s: %s", u.ID, problem)
		}
		r, err := e.Render(u)
		if err != nil {
			continue // reported above
		}
		for _, o := range r.Objects {
			key := o.Object.Kind + " " + o.Object.Namespace + "/" + o.Object.Name
			if other, taken := owners[key]; taken {
				t.Errorf("%s is rendered by units %s and %s", key, other, u.ID)
			}
			owners[key] = u.ID
		}
	}
}

func problems(e enforcer.Enforcer, u policy.Unit) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	before, err := json.Marshal(u)
	if err != nil {
		return []string{err.Error()}
	}
	first, err := e.Render(u)
	if err != nil {
		return []string{err.Error()}
	}
	second, err := e.Render(u)
	if err != nil {
		return []string{err.Error()}
	}
	if !reflect.DeepEqual(first, second) {
		add("the same unit gives two renderings:\n%+v\n%+v", first, second)
	}
	if after, err := json.Marshal(u); err != nil || string(before) != string(after) {
		add("rendering changed the unit")
	}
	for _, o := range first.Objects {
		out = append(out, objectProblems(&u, &o)...)
	}
	lists := [][]policy.Refusal{first.Refused}
	for _, refused := range first.RefusedIn {
		lists = append(lists, refused)
	}
	for _, refused := range lists {
		for _, r := range refused {
			if r.Reason == "" || r.Message.IsZero() || r.Resource != u.Resource {
				add("refusal %+v lacks its reason, its message or the unit's resource", r)
			}
		}
	}
	// An unusable unit must be rejected with an error, because its objects would select every pod.
	for name, change := range map[string]func(*policy.Unit){
		"id":    func(u *policy.Unit) { u.ID = "" },
		"label": func(u *policy.Unit) { u.LabelKey = "" },
	} {
		bad := u
		if change(&bad); len(first.Objects) > 0 {
			if _, err := e.Render(bad); err == nil {
				add("without %s it was rendered", name)
			}
		}
	}
	return out
}

func objectProblems(u *policy.Unit, r *enforcer.Rendered) []string {
	var out []string
	o := &r.Object
	add := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("%s %s: ", o.Kind, o.Name)+fmt.Sprintf(format, args...))
	}
	if o.GroupVersion == "" || o.Kind == "" {
		add("no group, version or kind")
	}
	if !strings.HasPrefix(o.Name, v1alpha1.ObjectPrefix) || len(validation.IsDNS1123Subdomain(o.Name)) > 0 {
		add("the name must be a DNS name that begins with %s", v1alpha1.ObjectPrefix)
	}
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelUnit: u.ID, v1alpha1.LabelRevision: r.Revision}
	if !maps.Equal(labels, o.Labels) {
		add("labels %v, want %v", o.Labels, labels)
	}
	if r.Revision != readBack(o.Spec) {
		add("revision %s is not that of the spec as it is read back", r.Revision)
	}
	if len(r.Overrides) != len(r.Revisions) {
		add("%d overrides and %d revisions of them", len(r.Overrides), len(r.Revisions))
	}
	for cluster, spec := range r.Overrides {
		if r.Revisions[cluster] != readBack(spec) || r.Revisions[cluster] == r.Revision {
			add("in %s, revision %s is not that of a spec of its own", cluster, r.Revisions[cluster])
		}
	}
	slices.Sort(out)
	return out
}

// readBack returns the revision of a spec after a round trip through JSON, as an API server does it.
func readBack(spec map[string]any) string {
	text, err := json.Marshal(spec)
	if err != nil {
		return "not JSON: " + err.Error()
	}
	var back map[string]any
	if err := json.Unmarshal(text, &back); err != nil {
		return "not JSON: " + err.Error()
	}
	return enforcer.Revision(back)
}
