package host

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/tracing"
	"github.com/acp-io/acp/internal/wallclock"
)

// addTraces adds the position of the context's trace to a policy whose statements change, so that the adapter continues the
// trace. It never causes a write: without another change, and while nothing is traced, the policy stays as it is.
func (w *Writer) addTraces(ctx context.Context, before, p *v1alpha1.AccessControlPolicy, sids []string) {
	position := tracing.Position(ctx)
	if position == "" || equality.Semantic.DeepEqual(before.Spec, p.Spec) {
		return
	}
	now := wallclock.Now
	if w.Now != nil {
		now = w.Now
	}
	changes := make([]tracing.Change, len(sids))
	for i, sid := range sids {
		changes[i] = tracing.Change{SID: sid, Position: position, At: now()}
	}
	p.Annotations[v1alpha1.AnnotationTraces] = tracing.AddChanges(p.Annotations[v1alpha1.AnnotationTraces], now(), changes...)
}
