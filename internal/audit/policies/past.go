package policies

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// past reconstructs the states of the policies before the first read, newest first, by leaving out statements and protections
// that were created since. Changed and deleted objects cannot be reconstructed. Every state contains all classes and workloads,
// because they determine names. The oldest state has no beginning.
func past(in policy.Input, now time.Time) []audit.Epoch {
	epochs := []audit.Epoch{{Evaluator: policy.NewSnapshot(in)}}
	for _, created := range creations(in, now) {
		in.Policies, in.Resources = before(in.Policies, created), before(in.Resources, created)
		epochs[len(epochs)-1].Since = created
		epochs = append(epochs, audit.Epoch{Evaluator: policy.NewSnapshot(in)})
	}
	return epochs
}

// creations are the times at which something was created while states are kept, newest first, and no more than are kept.
func creations(in policy.Input, now time.Time) []time.Time {
	var times []time.Time
	note := func(at time.Time) {
		if now.Sub(at) < keptFor {
			times = append(times, at)
		}
	}
	each(in.Policies, note)
	each(in.Resources, note)
	slices.SortFunc(times, func(a, b time.Time) int { return b.Compare(a) })
	times = slices.CompactFunc(times, time.Time.Equal)
	return times[:min(len(times), keptEpochs-1)]
}

func each[T metav1.Object](objects []T, do func(time.Time)) {
	for _, o := range objects {
		do(o.GetCreationTimestamp().Time)
	}
}

func before[T metav1.Object](objects []T, t time.Time) []T {
	return slices.DeleteFunc(slices.Clone(objects), func(o T) bool { return !o.GetCreationTimestamp().Time.Before(t) })
}
