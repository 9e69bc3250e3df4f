package federation

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
)

// written returns the time of the adapter's last write of an object, with a resolution of one second: from the managed fields, or the given
// time of its creation.
func written(u *unstructured.Unstructured, created time.Time) time.Time {
	at := created
	for m := range managedFieldsOf(u) {
		if m.manager == v1alpha1.ManagedBy && m.subresource == "" && m.at.After(at) {
			at = m.at
		}
	}
	return at
}
