package class

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// propagationEstimate returns the condition that estimates how long a change of many resources of a class still takes.
// A few resources that wait a second are not reported. It is pure.
func propagationEstimate(pattern string, waiting []string) metav1.Condition {
	n := 0
	if class, err := policy.ParseName(pattern); err == nil {
		for _, w := range waiting {
			if resource, err := policy.ParseName(w); err == nil && class.Covers(resource) {
				n++
			}
		}
	}
	if n <= requestqueue.MaxIndividual {
		return statusfields.True(v1alpha1.ConditionPropagated, v1alpha1.ReasonPropagated, "")
	}
	// All waiting units share KubeFed's write rate.
	left := roundUp(int(federation.BulkDuration(len(waiting)).Seconds()), int(showStep.Seconds()))
	return statusfields.False(v1alpha1.ConditionPropagated, v1alpha1.ReasonPropagating,
		fmt.Sprintf("up to %d units of the class wait to be written: about %d s; revocations and single grants do not wait for them",
			roundUp(n, int(showStep.Seconds())*federation.WritesPerSecond), left))
}

// showStep rounds the estimate, so that it does not change with every unit; each change triggers a status write.
const showStep = 5 * time.Second

// roundUp returns n rounded up to a multiple of step.
func roundUp(n, step int) int { return (n + step - 1) / step * step }
