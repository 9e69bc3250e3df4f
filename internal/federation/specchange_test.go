package federation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSpecChanges checks that members with the same specs before and after a change share one SpecChange.
func TestSpecChanges(t *testing.T) {
	spec := func(v string) map[string]any { return map[string]any{"v": v} }
	before := &Object{TemplateSpec: spec("a"), Placement: []string{"m1", "m2", "m3", "m4"}, Overrides: map[string]Override{
		"m3": {Spec: spec("b")}, "m2": {Labels: map[string]string{"l": "only a label"}}}}
	after := &Object{TemplateSpec: spec("c"), Placement: []string{"m1", "m2", "m3", "m5"}, Overrides: map[string]Override{"m1": {Spec: spec("d")}}}
	members := append(before.Placement, after.Placement...)
	for name, tc := range map[string]struct {
		reason        string
		before, after *Object
		members       []string
		want          []SpecChange
	}{
		"Mixed": {"each pair of template and overrides is one change", before, after, members, []SpecChange{
			{Before: spec("a"), After: spec("d"), Members: []string{"m1"}},
			{Before: spec("a"), After: spec("c"), Members: []string{"m2"}},
			{Before: spec("b"), After: spec("c"), Members: []string{"m3"}},
			{Before: spec("a"), Members: []string{"m4"}},
			{After: spec("c"), Members: []string{"m5"}},
		}},
		"Some": {"only the members that are asked for", before, after, []string{"m3"}, []SpecChange{
			{Before: spec("b"), After: spec("c"), Members: []string{"m3"}}}},
		"Same": {"members without overrides share a change", before, before, []string{"m1", "m2", "m4"}, []SpecChange{
			{Before: spec("a"), After: spec("a"), Members: []string{"m1", "m2", "m4"}}}},
		"New": {"there was no object before", nil, after, after.Placement, []SpecChange{
			{After: spec("d"), Members: []string{"m1"}}, {After: spec("c"), Members: []string{"m2", "m3", "m5"}}}},
		"None": {"no member", before, after, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := SpecChanges(tc.before, tc.after, tc.members)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			for _, change := range got {
				for _, c := range change.Members {
					if tc.before != nil && !cmp.Equal(change.Before, tc.before.SpecIn(c)) || !cmp.Equal(change.After, tc.after.SpecIn(c)) {
						t.Errorf("%s: %s has other specs by SpecIn", tc.reason, c)
					}
				}
			}
		})
	}
}
