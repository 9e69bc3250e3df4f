package federation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// written returns the time of the adapter's last write of an object from the managed fields, with a resolution of one
// second.
func written(meta *metav1.ObjectMeta) time.Time {
	at := meta.CreationTimestamp.Time
	for i := range meta.ManagedFields {
		if m := &meta.ManagedFields[i]; m.Manager == v1alpha1.ManagedBy && m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}
