package waves

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Action is what an instruction does to the present rollout.
type Action string

const (
	// Pause keeps further waves from beginning.
	Pause Action = "pause"
	// Resume continues after any halt. The soak time of the current wave begins again.
	Resume Action = "resume"
	// Skip begins the next wave at once, whatever the current wave waits for.
	Skip Action = "skip"
	// Finish begins all waves at once.
	Finish Action = "finish"
	// RollBack returns the members of the rollout to Audit, or to the earlier rules of a class, and halts it.
	RollBack Action = "rollback"
)

// Actions returns all actions.
func Actions() []Action { return []Action{Pause, Resume, Skip, Finish, RollBack} }

// Limits of the fields of an instruction.
const (
	maxID     = 63
	maxBy     = 253
	maxReason = 1024
)

// Guard is the author of the instructions of the portal's rollout guard. It cannot be a person, because it contains a colon.
const Guard = "acp:rollout-guard"

// Instruction is an order of a person, or of the portal's guard, about a rollout. It is the value of
// v1alpha1.AnnotationRollout. The adapter carries out an instruction once: its id identifies it, and it must have been given later than the
// last one, so that an old one that is applied again, such as from a repository, has no effect.
type Instruction struct {
	ID     string `json:"id"`
	Action Action `json:"action"`
	By     string `json:"by"`
	Reason string `json:"reason"`
	// At is the time of the instruction, as its author states.
	At time.Time `json:"at"`
	// Halt is the reason of a pause by the guard, and Cluster the member in which it found it. Code and Params are the reason as a
	// message.
	Halt    v1alpha1.HaltReason `json:"halt,omitempty"`
	Cluster string              `json:"cluster,omitempty"`
	Code    string              `json:"code,omitempty"`
	Params  string              `json:"params,omitempty"`
}

// New returns an instruction of a person.
func New(a Action, by, reason string, at time.Time) Instruction {
	at = at.UTC()
	return Instruction{ID: string(a) + "-" + strconv.FormatInt(at.UnixNano(), 36), Action: a, By: by, Reason: reason, At: at}
}

// LaterThan returns the instruction with a time that is later than that of the last one that the adapter has carried out. The clock of the
// person or program that gave the last one may be ahead, and the adapter ignores an instruction that is not later.
func (i Instruction) LaterThan(last *metav1.MicroTime) Instruction {
	if last != nil && !timeOf(&i).After(last.Time) {
		i.At = last.UTC().Add(time.Microsecond)
	}
	return i
}

// timeOf returns the time of an instruction as a status stores it.
func timeOf(i *Instruction) metav1.MicroTime {
	return metav1.NewMicroTime(i.At.UTC().Truncate(time.Microsecond))
}

var errInstruction = errors.New("the instruction is not valid")

// Validate returns an error if a field is missing or too long.
func (i *Instruction) Validate() error {
	for _, f := range []struct {
		name, value string
		most        int
		required    bool
	}{
		{"id", i.ID, maxID, true},
		{"by", i.By, maxBy, true},
		{"reason", i.Reason, maxReason, true},
		{"cluster", i.Cluster, maxBy, false},
		{"code", i.Code, maxID, false},
		{"params", i.Params, maxReason, false},
	} {
		if f.required && f.value == "" || utf8.RuneCountInString(f.value) > f.most {
			return fmt.Errorf("%w: %s must have 1 to %d characters", errInstruction, f.name, f.most)
		}
	}
	switch {
	case !slices.Contains(Actions(), i.Action):
		return fmt.Errorf("%w: unknown action %q", errInstruction, i.Action)
	case i.Halt != "" && i.Halt != v1alpha1.HaltClientsRefused && i.Halt != v1alpha1.HaltVerdictsDisagree:
		return fmt.Errorf("%w: unknown reason %q", errInstruction, i.Halt)
	}
	return nil
}

// String returns the value of the annotation.
func (i *Instruction) String() string {
	text, err := json.Marshal(i)
	if err != nil {
		return "" // strings can always be marshaled
	}
	return string(text)
}

// InstructionOf returns the instruction of a ProtectedResource or a ResourceClass, or nil if there is none. It returns an error for a value
// that is not valid.
func InstructionOf(o metav1.Object) (*Instruction, error) {
	text := o.GetAnnotations()[v1alpha1.AnnotationRollout]
	if text == "" {
		return nil, nil
	}
	out := &Instruction{}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		return nil, fmt.Errorf("%w: %w", errInstruction, err)
	}
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return out, nil
}
