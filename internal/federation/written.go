package federation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// written reads from the managed fields when the adapter last wrote an object, to the second.
func written(meta *metav1.ObjectMeta) time.Time {
	at := meta.CreationTimestamp.Time
	for i := range meta.ManagedFields {
		if m := &meta.ManagedFields[i]; m.Manager == v1alpha1.ManagedBy && m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}
