package watch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSetValid(t *testing.T) {
	then := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := then.Add(time.Hour)
	condition := func(state, message string, at time.Time) map[string]any {
		return map[string]any{"type": "Valid", "status": state, "message": message, "lastTransitionTime": at.Format(time.RFC3339)}
	}
	other := map[string]any{"type": "Other", "status": "True"}
	cases := map[string]struct {
		reason         string
		before         []any
		state, message string
		changed        bool
		after          []any
	}{
		"New": {"a policy without condition gets one", nil, "True", messageValid, true, []any{condition("True", messageValid, now)}},
		"Unchanged": {
			"the same answer is not written again",
			[]any{condition("True", messageValid, then)},
			"True",
			messageValid,
			false,
			[]any{condition("True", messageValid, then)},
		},
		"Turned": {
			"a changed state has a new time",
			[]any{condition("True", messageValid, then)},
			"False",
			"no",
			true,
			[]any{condition("False", "no", now)},
		},
		"Reworded": {
			"a changed message alone keeps the time",
			[]any{condition("False", "no", then)},
			"False",
			"still no",
			true,
			[]any{condition("False", "still no", then)},
		},
		"Others": {"other conditions stay", []any{other}, "True", messageValid, true, []any{other, condition("True", messageValid, now)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			if tc.before != nil {
				if err := unstructured.SetNestedSlice(u.Object, tc.before, "status", "conditions"); err != nil {
					t.Fatal(err)
				}
			}
			if got := setValid(u, tc.state, tc.message, now); got != tc.changed {
				t.Errorf("%s: changed %t, want %t", tc.reason, got, tc.changed)
			}
			after, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.after, after); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSameContent(t *testing.T) {
	object := func(uid string, generation int64) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": uid}}}
		u.SetGeneration(generation)
		return u
	}
	cases := map[string]struct {
		reason        string
		before, after any
		want          bool
	}{
		"StatusOnly": {"a status leaves the generation alone", object("a", 1), object("a", 1), true},
		"Spec":       {"a spec moves the generation", object("a", 1), object("a", 2), false},
		"Recreated":  {"a new object begins at generation 1 again", object("a", 1), object("b", 1), false},
		"Foreign":    {"what is no object must not be skipped silently", "x", object("a", 1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameContent(tc.before, tc.after); got != tc.want {
				t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
