package federation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWritten(t *testing.T) {
	entry := func(manager, subresource, at string) any {
		return map[string]any{
			"manager":     manager,
			"operation":   "Update",
			"subresource": subresource,
			"time":        at,
			"fieldsType":  "FieldsV1",
			"fieldsV1":    map[string]any{},
		}
	}
	for _, c := range []struct {
		reason string
		fields []any
		want   string
	}{
		{"nobody is known to have written it", nil, "2026-01-01T00:00:00Z"},
		{"the adapter wrote it again", []any{entry("acp-adapter", "", "2026-01-02T00:00:00Z")}, "2026-01-02T00:00:00Z"},
		{"others did", []any{entry("acp-adapter", "", "2026-01-02T00:00:00Z"), entry("kubectl", "", "2026-01-03T00:00:00Z")}, "2026-01-02T00:00:00Z"},
		{"KubeFed writes only the status", []any{entry("acp-adapter", "status", "2026-01-03T00:00:00Z")}, "2026-01-01T00:00:00Z"},
	} {
		u := &unstructured.Unstructured{
			Object: map[string]any{
				"apiVersion": "types.kubefed.io/v1beta1",
				"kind":       CiliumPolicy.Federated.Kind,
				"metadata":   map[string]any{"name": "acp-x", "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": c.fields},
			},
		}
		o := ParseObject(CiliumPolicy, u)
		if got := o.Written.UTC().Format("2006-01-02T15:04:05Z"); got != c.want || o.Meta.ManagedFields != nil {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}
