package rollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// Stage is the stage of a resource. It is derived from its mode, the flows and the announcement, and never entered.
type Stage string

const (
	// StageObserve means that nothing is written to the members.
	StageObserve Stage = "observe"
	// StageInitial means that the resource is in Audit, and that the evidence is not sufficient yet.
	StageInitial Stage = "initial"
	// StageRefine means that the resource is in Audit with sufficient evidence. The clients that have access only
	// because of Audit are to be reviewed.
	StageRefine Stage = "refine"
	// StageAnnounced means that the resource is in Audit, and that the owners of its clients were notified.
	StageAnnounced Stage = "announced"
	// StageEnforce means that a member enforces the resource, or would but for a temporary audit.
	StageEnforce Stage = "enforce"
)

// Stages returns all stages, in the order in which a resource passes them.
func Stages() []Stage {
	return []Stage{StageObserve, StageInitial, StageRefine, StageAnnounced, StageEnforce}
}

// Assessment is the evaluation of a resource's flows in the window.
type Assessment struct {
	approval.Score
	Clients      []string // subjects that were seen, sorted
	Newcomers    []string // those that no statement allows
	Unattributed int      // sources without a name
	Unwatched    []string // members in which the resource is placed and whose flows are not watched, sorted
}

// Input is the input of the derivation of a stage.
type Input struct {
	Protection *v1alpha1.ProtectedResource // nil if not onboarded
	State      State
	Assessment *Assessment // nil if the flows cannot be read
	Now        time.Time
}

// StageOf returns the stage of a resource.
func StageOf(in Input) Stage {
	p := in.Protection
	switch {
	case p == nil:
		return StageObserve
	case Enforces(p.Spec):
		return StageEnforce
	case !has(p.Spec, v1alpha1.ModeAudit):
		return StageObserve
	case in.State.Unreadable:
		return StageInitial
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

// Code identifies a hint.
type Code string

const (
	// CodeOnboard suggests to onboard the resource.
	CodeOnboard Code = "onboard"
	// CodePropose suggests to request access for the clients that were observed.
	CodePropose Code = "propose"
	// CodeReview suggests to review the clients that no statement allows.
	CodeReview Code = "review"
	// CodeRegister suggests to register the sources without a name as external workloads.
	CodeRegister Code = "register"
	// CodeWait suggests to wait for more evidence.
	CodeWait Code = "wait"
	// CodeAnnounce suggests to notify the owners of the clients.
	CodeAnnounce Code = "announce"
	// CodeEnforce suggests to request Enforce.
	CodeEnforce Code = "enforce"
	// CodeWiden suggests to request Enforce in further members.
	CodeWiden Code = "widen"
	// CodeStopped suggests to examine why the guard has stopped the rollout.
	CodeStopped Code = "stopped"
	// CodeDone says that every member enforces the resource.
	CodeDone Code = "done"
)

// Hint is what a user could do next, and why. Nothing happens automatically.
type Hint struct {
	Code    Code
	Next    Stage // empty if there is none
	Message message.Message
}

// HintOf returns the hint for a resource.
func HintOf(in Input) Hint {
	stage := StageOf(in)
	if in.State.Unreadable {
		return Hint{Code: CodeWait, Message: message.RolloutHintStateUnreadable()}
	}
	if s := in.State.Guard.Stop; s != nil {
		return Hint{Code: CodeStopped, Message: message.RolloutHintStopped(s.Reason.Message)}
	}
	switch stage {
	case StageObserve:
		if in.Protection == nil {
			return Hint{CodeOnboard, StageInitial, message.RolloutHintOnboard()}
		}
		return Hint{CodePropose, StageInitial, message.RolloutHintAudit()}
	case StageEnforce:
		if m := unseenDenials(in.Assessment); !m.IsZero() {
			return Hint{Code: CodeWait, Message: m}
		}
		if m := Waiting(in.Protection); !m.IsZero() {
			return Hint{Code: CodeWait, Message: m}
		}
		if n := open(in.Protection); n > 0 {
			return Hint{CodeWiden, StageEnforce, message.RolloutHintWiden(n)}
		}
		return Hint{Code: CodeDone, Message: message.RolloutHintDone()}
	}
	if h, ok := work(in.Assessment); ok {
		return h
	}
	if stage != StageAnnounced {
		return Hint{CodeAnnounce, StageAnnounced, message.RolloutHintAnnounce()}
	}
	return Hint{CodeEnforce, StageEnforce, message.RolloutHintEnforce()}
}

// unseenDenials returns a message about the members of an enforced resource whose flows are not watched, so that the guard does not see denials
// there, or zero if there are none.
func unseenDenials(a *Assessment) message.Message {
	if a == nil || len(a.Unwatched) == 0 {
		return message.Message{}
	}
	const most = 5
	names := message.NamesList(a.Unwatched[:min(len(a.Unwatched), most)])
	if n := len(a.Unwatched) - most; n > 0 {
		names = message.NamesListAndMore(a.Unwatched[:most], n)
	}
	return message.RolloutHintFlowsNotWatched(names)
}

// work returns what has to be done in Audit before the next stage.
func work(a *Assessment) (Hint, bool) {
	switch {
	case a == nil:
		return Hint{Code: CodeWait, Message: message.RolloutHintFlowsUnreadable()}, true
	case len(a.Newcomers) > 0:
		return Hint{Code: CodeReview, Message: message.RolloutHintNewcomers(len(a.Newcomers))}, true
	case a.Unattributed > 0 && !a.Enough:
		return Hint{Code: CodeRegister, Message: message.RolloutHintSourcesWithoutName(a.Unattributed)}, true
	case !a.Enough && a.Value >= a.Threshold:
		return Hint{Code: CodeWait, Message: message.RolloutHintPartZero()}, true
	case !a.Enough:
		return Hint{Code: CodeWait, Message: message.RolloutHintEvidenceLow(a.Value, a.Threshold)}, true
	}
	return Hint{}, false
}

// Missing returns the requirements of the next stage that are not met.
func Missing(in Input) []message.Message {
	out := []message.Message{}
	if in.State.Unreadable {
		out = append(out, message.RolloutHintStateUnreadable())
	}
	switch stage := StageOf(in); stage {
	case StageInitial, StageRefine, StageAnnounced:
		h, pending := work(in.Assessment)
		if pending {
			out = append(out, h.Message)
		}
		if a := in.Assessment; a != nil && !a.Enough {
			out = append(out, a.Missing...)
		}
		if !pending && stage != StageAnnounced {
			out = append(out, message.RolloutHintNotAnnounced())
		}
	case StageEnforce:
		if m := unseenDenials(in.Assessment); !m.IsZero() {
			out = append(out, m)
		}
	}
	return out
}

// open counts the known members that do not enforce.
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
