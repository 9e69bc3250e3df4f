package istio

import (
	"testing"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// Every mistake that the translation is careful about has to be noticed by the comparison.
func TestFaultyTranslationsAreFound(t *testing.T) {
	for name, change := range istiotest.Mutants() {
		t.Run(name, func(t *testing.T) {
			out := newOutcome()
			for seed := uint64(0); seed < 1500 && len(out.disagreements) == 0; seed++ {
				compare(t, seed, true, true, &out, change)
			}
			if len(out.disagreements) == 0 {
				t.Errorf("%d decisions do not notice it", out.exact)
			}
		})
	}
}

// A pod may carry the labels of several classes: without the other units, a refused deny would leave access open.
func TestUnitsDependOnEachOther(t *testing.T) {
	out := newOutcome()
	for seed := uint64(0); seed < 1500 && len(out.disagreements) == 0; seed++ {
		compare(t, seed, false, false, &out, nil)
	}
	if len(out.disagreements) == 0 {
		t.Error("the comparison does not notice that units are rendered alone")
	}
}

func anyList(v any) []any { l, _ := v.([]any); return l }
