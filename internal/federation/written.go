package federation

import (
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Written is when the adapter last wrote the object, to the second.
func (o *Object) Written() time.Time {
	at := o.Meta.CreationTimestamp.Time
	for i := range o.Meta.ManagedFields {
		if m := &o.Meta.ManagedFields[i]; m.Manager == v1alpha1.ManagedBy && m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}
