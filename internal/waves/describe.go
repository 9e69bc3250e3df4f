package waves

import (
	"strconv"

	"github.com/acp-io/acp/api/v1alpha1"
)

// EventPrefix is the prefix of the reasons of Events about waves: RolloutWaveBegun, RolloutHalted, RolloutResumed, RolloutCompleted.
const EventPrefix = "Rollout"

// Describe returns how far a rollout has come, or why it is halted, in a sentence for Events and logs; "" if none is in progress.
func Describe(p *v1alpha1.RolloutProgress) string {
	if p == nil {
		return ""
	}
	if h := p.Halt; h != nil {
		text := string(h.Reason) + ": " + h.Message
		if h.By != "" {
			text += " (by " + h.By + ")"
		}
		return text
	}
	text := "wave " + strconv.Itoa(int(p.Wave)) + " of " + strconv.Itoa(int(p.Waves))
	if p.Name != "" {
		text += " (" + p.Name + ")"
	}
	return text + ", " + strconv.Itoa(int(p.Waiting)) + " members wait"
}
