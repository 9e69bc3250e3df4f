package federation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestLastWriter(t *testing.T) {
	at := func(seconds int64) *metav1.Time {
		t := metav1.NewTime(time.Unix(seconds, 0))
		return &t
	}
	entry := func(manager, fields, subresource string, when *metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: when,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	pushed := entry("hyperfed", `{"f:metadata":{"f:labels":{}},"f:spec":{".":{},"f:ingress":{},"f:endpointSelector":{}}}`, "", at(100))
	for _, c := range []struct {
		reason string
		fields []metav1.ManagedFieldsEntry
		want   string
	}{
		{"nobody is known", nil, ""},
		{
			"whoever wrote last", []metav1.ManagedFieldsEntry{pushed, entry("kubectl-edit", `{"f:spec":{"f:ingress":{}}}`, "", at(160))},
			"kubectl-edit (Update) at 1970-01-01T00:02:40Z",
		},
		{
			"in any order of the entries",
			[]metav1.ManagedFieldsEntry{entry("kubectl-edit", `{"f:spec":{"f:ingress":{}}}`, "", at(160)), pushed},
			"kubectl-edit (Update) at 1970-01-01T00:02:40Z",
		},
		{
			"in one second, the smaller change",
			[]metav1.ManagedFieldsEntry{pushed, entry("kubectl-patch", `{"f:spec":{"f:ingress":{}}}`, "", at(100))},
			"kubectl-patch (Update) at 1970-01-01T00:01:40Z",
		},
		{
			"agents write the status", []metav1.ManagedFieldsEntry{pushed, entry("cilium-agent", `{"f:status":{}}`, "status", at(200))},
			"hyperfed (Update) at 1970-01-01T00:01:40Z",
		},
		{
			"an annotation decides nothing",
			[]metav1.ManagedFieldsEntry{pushed, entry("kubectl-annotate", `{"f:metadata":{"f:annotations":{}}}`, "", at(200))},
			"hyperfed (Update) at 1970-01-01T00:01:40Z",
		},
		{
			"rules beside the spec do", []metav1.ManagedFieldsEntry{pushed, entry("evil\nname", `{"f:specs":{}}`, "", at(200))},
			"evil?name (Update) at 1970-01-01T00:03:20Z",
		},
		{"what cannot be read", []metav1.ManagedFieldsEntry{entry("x", `[`, "", at(200)), {Manager: "y", Time: at(300)}}, ""},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetManagedFields(c.fields)
		if got := lastWriterOf(u).String(); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestWrittenDirectly checks which objects count as written by the direct engine: in doubt, those that it may have written last.
func TestWrittenDirectly(t *testing.T) {
	entry := func(manager, subresource string, second int64) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Unix(second, 0))
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &at}
	}
	const direct = DirectFieldManager
	for _, c := range []struct {
		reason string
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		{"nobody is known", nil, false},
		{"another writer", []metav1.ManagedFieldsEntry{entry("hyperfed", "", 100)}, false},
		{"the direct engine", []metav1.ManagedFieldsEntry{entry(direct, "", 100)}, true},
		{"another writer before it", []metav1.ManagedFieldsEntry{entry(direct, "", 100), entry("hyperfed", "", 99)}, true},
		{"another writer in the same second", []metav1.ManagedFieldsEntry{entry("hyperfed", "", 100), entry(direct, "", 100)}, true},
		{"another writer after it", []metav1.ManagedFieldsEntry{entry(direct, "", 100), entry("hyperfed", "", 101)}, false},
		{"the dataplane's status after it", []metav1.ManagedFieldsEntry{entry(direct, "", 100), entry("cilium-agent", "status", 101)}, true},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetManagedFields(c.fields)
		if got := writtenDirectly(u); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}
