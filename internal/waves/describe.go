package waves

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// EventPrefix is the prefix of the reasons of Events about waves: RolloutWaveBegun, RolloutHalted, RolloutResumed, RolloutCompleted,
// RolloutInstructionIgnored.
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

// ignored is the reason why an instruction is not carried out.
type ignored int

const (
	notIgnored ignored = iota
	// withoutTime means that the instruction does not say when it was given.
	withoutTime
	// notLater means that it was not given later than the last one that was carried out.
	notLater
	// tooFarAhead means that its time is more than MaxAhead in the future.
	tooFarAhead
)

// ignoredBecause returns why an instruction is not carried out. last is the time of the last one that was, or nil.
func ignoredBecause(i *Instruction, last *metav1.MicroTime, now time.Time) ignored {
	switch at := timeOf(i); {
	case i.At.IsZero():
		return withoutTime
	case last != nil && !at.After(last.Time):
		return notLater
	case at.After(now.Add(MaxAhead)):
		return tooFarAhead
	}
	return notIgnored
}

// DescribeIgnored returns why the instruction of an object was not carried out, and what to do, for Events and logs. last is the time of the
// last one that was carried out, or nil.
func DescribeIgnored(o metav1.Object, last *metav1.MicroTime, now time.Time) string {
	i, err := InstructionOf(o)
	if err != nil || i == nil {
		return "an instruction was not carried out" // it was replaced meanwhile
	}
	why := "it does not say when it was given"
	given := i.At.UTC().Format(time.RFC3339)
	switch ignoredBecause(i, last, now) {
	case notLater:
		why = fmt.Sprintf("it was given at %s, and the last one that was carried out, at %s, is not older", given, last.UTC().Format(time.RFC3339))
	case tooFarAhead:
		why = "its time, " + given + ", is in the future"
	}
	return fmt.Sprintf("the instruction %s of %s was not carried out: %s; give a new one with kubectl acp rollout or in the portal", i.ID, i.By, why)
}
