package membertally

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestTally compares a tally of random lists, which share memory, are equal, or differ in their middle alone, with a simple count.
func TestTally(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		var lists [][]v1alpha1.ClusterName
		for range 1 + r.IntN(5) {
			var names []v1alpha1.ClusterName
			for i := range r.IntN(6) {
				if i == 0 || i == 5 || r.IntN(2) == 0 {
					names = append(names, v1alpha1.ClusterName(fmt.Sprint("m", i)))
				}
			}
			lists = append(lists, names)
		}
		var tally Tally
		want := map[string]int{}
		for range 50 {
			names, n := lists[r.IntN(len(lists))], r.IntN(3)
			for _, name := range names {
				want[string(name)] += n
			}
			if r.IntN(2) == 0 {
				names = append([]v1alpha1.ClusterName(nil), names...)
			}
			tally.Add(names, n)
		}
		if d := cmp.Diff(want, tally.Counts()); d != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, d)
		}
	}
}
