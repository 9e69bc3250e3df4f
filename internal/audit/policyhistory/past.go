package policyhistory

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// epochsBeforeStart reconstructs the states of the policies before the first read, newest first, by leaving out statements and protections
// that were created since. Changed and deleted objects cannot be reconstructed. Every state contains all classes and workloads,
// because they determine names. The oldest state has no beginning.
func epochsBeforeStart(in policy.Input, now time.Time) []audit.Epoch {
	snapshot := policy.NewSnapshot(in)
	epochs := []audit.Epoch{{Evaluator: snapshot}}
	for _, created := range recentCreations(in, now) {
		in.Policies, in.Resources = createdBefore(in.Policies, created), createdBefore(in.Resources, created)
		epochs[len(epochs)-1].Since = created
		snapshot = snapshot.Next(in) // shares the parsed statements
		epochs = append(epochs, audit.Epoch{Evaluator: snapshot})
	}
	return epochs
}

// recentCreations returns the times at which objects were created, newest first: at most as many, and as old, as epochs are kept.
func recentCreations(in policy.Input, now time.Time) []time.Time {
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

func createdBefore[T metav1.Object](objects []T, t time.Time) []T {
	return slices.DeleteFunc(slices.Clone(objects), func(o T) bool { return !o.GetCreationTimestamp().Time.Before(t) })
}
