package waves

import (
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestDescribe checks the sentences about a rollout.
func TestDescribe(t *testing.T) {
	for want, p := range map[string]*v1alpha1.RolloutProgress{
		"":                                     nil,
		"wave 1 of 3 (canary), 7 members wait": {Wave: 1, Waves: 3, Name: "canary", Waiting: 7},
		"wave 3 of 3, 0 members wait":          {Wave: 3, Waves: 3},
		"Paused: errors (by sam)":              {Wave: 1, Halt: &v1alpha1.RolloutHalt{Reason: v1alpha1.HaltPaused, Message: "errors", By: "sam"}},
	} {
		if got := Describe(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
