package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// Stage of a resource. It follows from its mode, what was seen and what was announced; nobody types it.
type Stage string

const (
	StageObserve   Stage = "observe"   // nothing is sent to the members
	StageInitial   Stage = "initial"   // Audit, and too little is known yet
	StageRefine    Stage = "refine"    // Audit, with evidence enough; what is only let in by Audit is reviewed
	StageAnnounced Stage = "announced" // Audit, and the owners of the clients were told
	StageEnforce   Stage = "enforce"   // some member enforces, or would but for a temporary audit
)

// Stages in their order.
func Stages() []Stage {
	return []Stage{StageObserve, StageInitial, StageRefine, StageAnnounced, StageEnforce}
}

// Assessment is what the flows of the window say about a resource.
type Assessment struct {
	approval.Score
	Clients      []string // subjects that were seen, sorted
	Newcomers    []string // those that no statement allows
	Unattributed int      // sources without a name
	Unwatched    []string // members that the resource is placed in and whose flows are not watched, sorted
}

// Input of the derivation of a stage.
type Input struct {
	Protection *v1alpha1.ProtectedResource // nil: not onboarded
	State      State
	Assessment *Assessment // nil: the flows cannot be read
	Now        time.Time
}

// StageOf a resource.
func StageOf(in Input) Stage {
	p := in.Protection
	switch {
	case p == nil:
		return StageObserve
	case Enforces(p.Spec):
		return StageEnforce
	case !has(p.Spec, v1alpha1.ModeAudit):
		return StageObserve
	case in.State.Announcement != nil:
		return StageAnnounced
	case in.Assessment != nil && in.Assessment.Enough:
		return StageRefine
	}
	return StageInitial
}

func has(s v1alpha1.ProtectedResourceSpec, mode v1alpha1.Mode) bool {
	return s.Mode == mode || slices.ContainsFunc(s.ClusterModes, func(m v1alpha1.ClusterMode) bool { return m.Mode == mode })
}

// Code of a hint.
type Code string

const (
	CodeOnboard  Code = "onboard"
	CodePropose  Code = "propose"
	CodeReview   Code = "review"
	CodeRegister Code = "register"
	CodeWait     Code = "wait"
	CodeAnnounce Code = "announce"
	CodeEnforce  Code = "enforce"
	CodeWiden    Code = "widen"
	CodeStopped  Code = "stopped"
	CodeDone     Code = "done"
)

// Hint is what a person could do next, and why. Nothing happens by itself.
type Hint struct {
	Code Code
	Next Stage // empty: none
	Text string
}

// HintOf a resource.
func HintOf(in Input) Hint {
	stage := StageOf(in)
	if s := in.State.Guard.Stop; s != nil {
		return Hint{Code: CodeStopped, Text: fmt.Sprintf("New denials stopped the rollout: %s Look at who was refused, then arm the guard again.", s.Reason)}
	}
	switch stage {
	case StageObserve:
		if in.Protection == nil {
			return Hint{CodeOnboard, StageInitial, "Onboard it in Audit: nothing is refused, and what would be is reported."}
		}
		return Hint{CodePropose, StageInitial, "Ask for Audit: nothing is refused, and what would be is reported."}
	case StageEnforce:
		if text := blind(in.Assessment); text != "" {
			return Hint{Code: CodeWait, Text: text}
		}
		if n := open(in.Protection); n > 0 {
			return Hint{CodeWiden, StageEnforce, fmt.Sprintf("%d members do not enforce yet: go on with them.", n)}
		}
		return Hint{Code: CodeDone, Text: "Every member enforces. Look at unused grants from time to time."}
	}
	if h, ok := work(in.Assessment); ok {
		return h
	}
	if stage != StageAnnounced {
		return Hint{CodeAnnounce, StageAnnounced, "The evidence is enough: tell the owners of the clients when it will be enforced."}
	}
	return Hint{CodeEnforce, StageEnforce, "Everything is known and announced: ask for Enforce, one member first if you like."}
}

// blind says in which members of an enforced resource nobody sees what is refused, so that the guard cannot see it either.
func blind(a *Assessment) string {
	if a == nil || len(a.Unwatched) == 0 {
		return ""
	}
	const most = 5
	names := strings.Join(a.Unwatched[:min(len(a.Unwatched), most)], ", ")
	if n := len(a.Unwatched) - most; n > 0 {
		names += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("The flows of %s are not watched: what is refused there does not show, and the guard does not see it.", names)
}

// work is what is left to do in Audit before anything can be announced or enforced.
func work(a *Assessment) (Hint, bool) {
	switch {
	case a == nil:
		return Hint{Code: CodeWait, Text: "The flows cannot be read now, so nothing can be said."}, true
	case len(a.Newcomers) > 0:
		return Hint{Code: CodeReview, Text: fmt.Sprintf("%d clients that were seen are not allowed yet: ask that they may stay, or tell their owners.", len(a.Newcomers))}, true
	case a.Unattributed > 0 && !a.Enough:
		return Hint{Code: CodeRegister, Text: fmt.Sprintf("%d sources have no name: register them, or find out what they are.", a.Unattributed)}, true
	case !a.Enough && a.Value >= a.Threshold:
		return Hint{Code: CodeWait, Text: "A part of the evidence has no point: nothing is enforced before that is mended."}, true
	case !a.Enough:
		return Hint{Code: CodeWait, Text: fmt.Sprintf("The evidence is %d of %d: wait until more was seen.", a.Value, a.Threshold)}, true
	}
	return Hint{}, false
}

// Missing for the next stage, as sentences.
func Missing(in Input) []string {
	out := []string{}
	switch stage := StageOf(in); stage {
	case StageInitial, StageRefine, StageAnnounced:
		h, some := work(in.Assessment)
		if some {
			out = append(out, h.Text)
		}
		if a := in.Assessment; a != nil && !a.Enough {
			out = append(out, a.Missing...)
		}
		if !some && stage != StageAnnounced {
			out = append(out, "The owners of the clients were not told yet.")
		}
	case StageEnforce:
		if text := blind(in.Assessment); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// open counts the members that are known and do not enforce.
func open(p *v1alpha1.ProtectedResource) int {
	own := make(map[v1alpha1.ClusterName]v1alpha1.Mode, len(p.Spec.ClusterModes))
	for _, m := range p.Spec.ClusterModes {
		own[m.Cluster] = m.Mode
	}
	n := 0
	for c := range p.Status.All() {
		if cmp.Or(own[c.Name], p.Spec.Mode) != v1alpha1.ModeEnforce {
			n++
		}
	}
	return n
}
