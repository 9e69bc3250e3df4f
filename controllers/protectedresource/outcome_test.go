package protectedresource

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
)

func TestResult(t *testing.T) {
	broken := errors.New("the host refuses it")
	stale := fmt.Errorf("write: %w", federation.ErrStale)
	after := func(d time.Duration) reconcile.Result { return reconcile.Result{RequeueAfter: d} }
	known := &facts{Groups: []externalgroup.Object{{Name: "g"}}, LastReport: statuscache.Report{Groups: []string{"g"}}}
	first := &facts{Groups: []externalgroup.Object{{Name: "g"}}}
	for _, c := range []struct {
		reason string
		out    outcome
		want   reconcile.Result
		err    error
	}{
		{"the listing triggers the next reconcile", outcome{Step: stepNotReady, Err: errNotReady}, reconcile.Result{}, nil},
		{"the facts cannot be collected", outcome{Step: stepUnread, Err: broken}, reconcile.Result{}, broken},
		{"everything is done", outcome{Step: stepApplied, Facts: known}, reconcile.Result{}, nil},
		{"a Federated object changed meanwhile", outcome{Step: stepApplied, Facts: known, Err: stale}, after(conflictRequeueDelay), nil},
		{"a ProtectedResource changed meanwhile", outcome{Step: stepApplied, Facts: known, Err: errConflict}, after(conflictRequeueDelay), nil},
		{"a write failed", outcome{Step: stepApplied, Facts: known, Err: broken}, reconcile.Result{}, broken},
		{"the status failed", outcome{Step: stepApplied, Facts: known, StatusErr: broken}, reconcile.Result{}, broken},
		{"the status met a newer object", outcome{Step: stepApplied, Facts: known, StatusErr: errConflict}, after(conflictRequeueDelay), nil},
		{
			"the status met a newer object after a failed write",
			outcome{Step: stepApplied, Facts: known, Err: broken, StatusErr: errConflict}, after(conflictRequeueDelay), broken,
		},
		{"a group is missing", outcome{Step: stepMissingGroup, Facts: known, MissingGroup: "g"}, after(graceCheckInterval), nil},
		{"KubeFed still reports on the last write", outcome{Step: stepInFlight, Facts: known}, after(conflictRequeueDelay), nil},
		{"the write queue triggers the next reconcile", outcome{Step: stepQueued, Facts: known}, reconcile.Result{}, nil},
		{"the unit refers to a group for the first time", outcome{Step: stepApplied, Facts: first}, after(conflictRequeueDelay), nil},
		{"the status is deferred", outcome{Step: stepApplied, Facts: known, StatusDelay: time.Second},
			reconcile.Result{RequeueAfter: time.Second, Priority: new(requestqueue.StatusUpdate)}, nil},
		{
			"the status is deferred, and a group is missing",
			outcome{Step: stepMissingGroup, Facts: known, StatusDelay: 5 * time.Second}, after(graceCheckInterval), nil,
		},
	} {
		got, err := c.out.result()
		if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: error %v, -want +got:\n%s", c.reason, err, diff)
		}
	}
}
