package enforcer

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/policy"
)

func versionOf(t *testing.T, specs map[string]string, overrides map[string]map[string]string) Rendering {
	t.Helper()
	out := Rendering{}
	for _, name := range []string{"a", "b", "c"} {
		text, ok := specs[name]
		if !ok {
			continue
		}
		by := map[string]map[string]any{}
		for c, o := range overrides[name] {
			by[c] = map[string]any{"is": o}
		}
		r, err := Render(Object{Name: name, Spec: map[string]any{"is": text}}, "u", by)
		if err != nil {
			t.Fatal(err)
		}
		out.Objects = append(out.Objects, r)
	}
	return out
}

// TestCombineGivesEachMemberItsVersion checks which objects, with which specs and revisions, each member has of several versions.
func TestCombineGivesEachMemberItsVersion(t *testing.T) {
	present := versionOf(t, map[string]string{"a": "new", "b": "only new"}, map[string]map[string]string{"a": {"m3": "audit", "m2": "audit"}})
	present.Refused = []policy.Refusal{{Reason: "Present"}}
	earlier := versionOf(t, map[string]string{"a": "old", "c": "only old"}, map[string]map[string]string{"a": {"m2": "new"}})
	earlier.Refused = []policy.Refusal{{Reason: "Earlier"}}
	third := versionOf(t, map[string]string{"a": "third", "b": "third", "c": "third"}, nil)
	members := []string{"m1", "m2", "m3", "m4"}
	v := Combine(present, members, []Version{{earlier, []string{"m1", "m2"}}, {third, []string{"m4"}}})
	got := map[string]map[string]string{}
	for _, m := range members {
		got[m] = map[string]string{}
		for i := range v.Objects {
			o := &v.Objects[i]
			if only, listed := v.Members[o.Object.Name]; listed && !slices.Contains(only, m) {
				continue
			}
			spec, ok := o.Overrides[m]
			if !ok {
				spec = o.Object.Spec
			}
			if want := Revision(spec); o.RevisionIn(m) != want {
				t.Errorf("the revision of %s in %s is %s, want %s", o.Object.Name, m, o.RevisionIn(m), want)
			}
			text, _ := spec["is"].(string)
			got[m][o.Object.Name] = text
		}
	}
	want := map[string]map[string]string{
		"m1": {"a": "old", "c": "only old"},
		"m2": {"a": "new", "c": "only old"},
		"m3": {"a": "audit", "b": "only new"},
		"m4": {"a": "third", "b": "third", "c": "third"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for m, reason := range map[string]string{"m1": "Earlier", "m3": "Present"} {
		if got := v.RefusedBy(m); len(got) != 1 || got[0].Reason != reason {
			t.Errorf("refused in %s: %v, want %s", m, got, reason)
		}
	}
	if len(present.Objects) != 2 || present.Objects[0].RevisionIn("m2") == present.Objects[0].Revision {
		t.Error("the present version was changed")
	}
}

// TestCombineKeepsPartialObjects checks which members have an object that some members of a version do not have, and what is held there.
func TestCombineKeepsPartialObjects(t *testing.T) {
	partial := func(r Rendering, name string, only ...string) Rendering {
		o := &r.Objects[r.index(name)]
		o.Only, o.Interim = only, map[string]InterimSpec{}
		for _, m := range only {
			o.Interim[m] = InterimSpec{Objects: []string{name + " of " + m}}
		}
		return r
	}
	members := []string{"m1", "m2", "m3", "m4"}
	all := map[string]string{"a": "all", "b": "some"}
	for _, c := range []struct {
		reason           string
		present, earlier Rendering
		want             []string // of b; nil means every member
		held             []string
	}{
		{"both have it in some", partial(versionOf(t, all, nil), "b", "m1", "m3"), partial(versionOf(t, all, nil), "b", "m1", "m2"), []string{"m1", "m2"},
			[]string{"m1", "m2"}},
		{"the present one has it everywhere", versionOf(t, all, nil), partial(versionOf(t, all, nil), "b", "m2"), []string{"m1", "m2", "m4"}, []string{"m2"}},
		{"the earlier one has it everywhere", partial(versionOf(t, all, nil), "b", "m1"), versionOf(t, all, nil), []string{"m1", "m2", "m3"}, []string{"m1"}},
		{"only the earlier one has it", versionOf(t, map[string]string{"a": "all"}, nil), partial(versionOf(t, all, nil), "b", "m3", "m4"), []string{"m3"},
			[]string{"m3"}},
		{"only the present one has it", partial(versionOf(t, all, nil), "b", "m2", "m4"), versionOf(t, map[string]string{"a": "all"}, nil), []string{"m4"},
			nil},
	} {
		v := Combine(c.present, members, []Version{{c.earlier, []string{"m2", "m3"}}})
		if diff := cmp.Diff(c.want, v.Members["b"]); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.reason, diff)
		}
		for _, m := range c.held {
			if got := v.Objects[v.index("b")].Interim[m].Objects; !slices.Equal(got, []string{"b of " + m}) {
				t.Errorf("%s: held in %s: %q", c.reason, m, got)
			}
		}
	}
	alone := Combine(partial(versionOf(t, all, nil), "b", "m2"), members, nil)
	if diff := cmp.Diff(map[string][]string{"b": {"m2"}}, alone.Members); diff != "" {
		t.Errorf("one version: -want +got:\n%s", diff)
	}
}
