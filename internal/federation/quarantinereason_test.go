package federation

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/message"
)

// TestQuarantineReason checks that the reason of a quarantine is read with its code, and as plain text where the annotations do not
// belong together: an earlier version wrote the text alone, and a person may have changed it.
func TestQuarantineReason(t *testing.T) {
	coded := message.PreflightUnreachable(message.MemberNoAnswer("https://m1", "timeout"))
	for name, c := range map[string]struct {
		annotations map[string]any
		want        message.Message
	}{
		"with its code": {map[string]any{AnnotationQuarantineReason: coded.Text, AnnotationQuarantineMessage: coded.Encode()}, coded},
		"text alone":    {map[string]any{AnnotationQuarantineReason: coded.Text}, message.Verbatim(coded.Text)},
		"another text": {
			map[string]any{AnnotationQuarantineReason: "maintenance", AnnotationQuarantineMessage: coded.Encode()},
			message.Verbatim("maintenance"),
		},
		"no text":            {map[string]any{AnnotationQuarantineMessage: coded.Encode()}, message.Message{}},
		"unreadable message": {map[string]any{AnnotationQuarantineReason: coded.Text, AnnotationQuarantineMessage: "{"}, message.Verbatim(coded.Text)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCluster(&unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "m1", "annotations": c.annotations},
				"spec":     map[string]any{"secretRef": map[string]any{"name": quarantineSecret}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got.QuarantineReason != c.want {
				t.Errorf("reason %+v, want %+v", got.QuarantineReason, c.want)
			}
		})
	}
}
