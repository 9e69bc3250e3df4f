package enforcer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestRevision(t *testing.T) {
	// Pinned: a revision that changed with a release would look like drift in every member.
	const want = "2ed5cf76b6ee3c8e"
	cases := map[string]struct {
		reason string
		spec   map[string]any
		same   bool
	}{
		"Ints": {reason: "as written", spec: map[string]any{"b": []any{int64(6379), true}, "a": map[string]any{"x": "<&>"}}, same: true},
		"Floats": {
			reason: "as some decoders read it back",
			spec:   map[string]any{"a": map[string]any{"x": "<&>"}, "b": []any{float64(6379), true}},
			same:   true,
		},
		"Order":   {reason: "the order of a list counts", spec: map[string]any{"b": []any{true, int64(6379)}, "a": map[string]any{"x": "<&>"}}},
		"Value":   {reason: "another value", spec: map[string]any{"b": []any{int64(6380), true}, "a": map[string]any{"x": "<&>"}}},
		"NotJSON": {reason: "what JSON cannot hold has no revision", spec: map[string]any{"f": func() {}}},
		"Nothing": {reason: "no spec", spec: nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Revision(tc.spec); (got == want) != tc.same {
				t.Errorf("%s: Revision = %q, same as %q: want %v", tc.reason, got, want, tc.same)
			}
		})
	}
}

func TestRender(t *testing.T) {
	base, other := map[string]any{"a": "b"}, map[string]any{"a": "c"}
	r, err := Render(Object{Kind: "K", Name: "acp-u", Spec: base}, "u", map[string]map[string]any{"m1": other, "m2": {"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]map[string]any{"m1": other}, r.Overrides); diff != "" {
		t.Errorf("only members that differ are overridden; -want +got:\n%s", diff)
	}
	for cluster, want := range map[string]string{"m1": Revision(other), "m2": Revision(base), "m3": Revision(base)} {
		if got := r.RevisionIn(cluster); got != want {
			t.Errorf("RevisionIn(%s) = %q, want %q", cluster, got, want)
		}
	}
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelUnit: "u", v1alpha1.LabelRevision: Revision(base)}
	if diff := cmp.Diff(labels, r.Object.Labels); diff != "" {
		t.Errorf("labels -want +got:\n%s", diff)
	}
	bad := map[string]any{"f": func() {}}
	if _, err := Render(Object{Spec: bad}, "u", nil); err == nil {
		t.Error("a spec that is not JSON was rendered")
	}
	if _, err := Render(Object{Spec: base}, "u", map[string]map[string]any{"m1": bad}); err == nil {
		t.Error("an override that is not JSON was rendered")
	}
}

func TestWithRuleLabel(t *testing.T) {
	spec := map[string]any{"a": "b"}
	labelled := WithRuleLabel(spec)
	if len(spec) != 1 || !HasRuleLabel(labelled) || HasRuleLabel(spec) {
		t.Fatalf("%v became %v", spec, labelled)
	}
	if got, want := Revision(labelled), Revision(spec); got != want {
		t.Errorf("the label changes the revision from %s to %s", want, got)
	}
	if diff := cmp.Diff(labelled, WithRuleLabel(labelled)); diff != "" {
		t.Errorf("twice is not once: %s", diff)
	}
	label := func(l map[string]any) map[string]any { return map[string]any{"a": "b", "labels": []any{l}} }
	for name, changed := range map[string]map[string]any{
		"OtherContent":  {"a": "c", "labels": labelled["labels"]},
		"OtherRevision": label(map[string]any{"key": v1alpha1.LabelRevision, "source": RuleLabelSource, "value": Revision(map[string]any{"a": "c"})}),
		"OtherSource":   label(map[string]any{"key": v1alpha1.LabelRevision, "source": "k8s", "value": Revision(spec)}),
		"OtherLabel":    label(map[string]any{"key": "x", "source": "y", "value": "z"}),
	} {
		t.Run(name, func(t *testing.T) {
			if got := Revision(changed); got == Revision(spec) {
				t.Errorf("%v has the revision of what was rendered", changed)
			}
		})
	}
}
