package externalgroup

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// TestLabelsOfGroupsAreStable checks that the labels of a group, which are part of the identity that an agent assigns to its
// addresses, do not change when an address is added or removed, and that an object of an earlier release, whose labels contain
// the revision, is written once without it.
func TestLabelsOfGroupsAreStable(t *testing.T) {
	m := newMachines(t, 6, 2)
	name := v1alpha1.ObjectPrefix + policy.UnitID(fmt.Sprint(subjectHead, 1))
	before := m.host.objects[name]
	m.move(1, 99)
	m.work()
	after := m.host.objects[name]
	if diff := cmp.Diff(before.TemplateLabels, after.TemplateLabels); diff != "" {
		t.Errorf("the labels changed with an address, -before +after:\n%s", diff)
	}
	if was, is := before.RevisionIn("m1"), after.RevisionIn("m1"); was == "" || is == "" || was == is {
		t.Errorf("the revision was %q and is %q, want a new one", was, is)
	}

	earlier := *after
	earlier.Meta = *after.Meta.DeepCopy()
	delete(earlier.Meta.Annotations, federation.AnnotationRevision)
	label := map[string]string{v1alpha1.LabelRevision: after.RevisionIn("m1")}
	earlier.Meta.Labels, earlier.TemplateLabels = federation.Overlay(earlier.Meta.Labels, label), federation.Overlay(after.TemplateLabels, label)
	m.host.objects[name] = &earlier
	writes := m.host.writes
	for range 2 {
		if err := m.groups.Ensure(t.Context(), m.index.View(), fmt.Sprint(subjectHead, 1)); err != nil {
			t.Fatal(err)
		}
	}
	now := m.host.objects[name]
	if !maps.Equal(now.TemplateLabels, after.TemplateLabels) || now.Meta.Labels[v1alpha1.LabelRevision] != "" ||
		now.RevisionIn("m1") != after.RevisionIn("m1") {
		t.Errorf("labels %v and %v, revision %q", now.Meta.Labels, now.TemplateLabels, now.RevisionIn("m1"))
	}
	if n := m.host.writes - writes; n != 1 {
		t.Errorf("%d writes of an object of the earlier form, want 1", n)
	}
}
