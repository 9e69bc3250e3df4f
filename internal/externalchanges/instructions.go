package externalchanges

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/waves"
)

// Kinds of objects that have instructions about waves.
const (
	// KindProtectedResource is the kind of an object that enforces a resource.
	KindProtectedResource = "ProtectedResource"
	// KindResourceClass is the kind of a class whose change reaches the members in waves.
	KindResourceClass = "ResourceClass"
)

// Instructed is an instruction about the waves of a ProtectedResource or a ResourceClass that the host cluster has.
type Instructed struct {
	// Kind is the kind of the object, Object its name, and Resource the name of the resource that a ProtectedResource protects.
	Kind, Object, Resource string
	waves.Instruction
}

// InstructionKey identifies an instruction. Object is the name of a ProtectedResource, or KIND/NAME of an object of another kind. The digest
// covers the content, because anybody who may write the annotation can use the id of an earlier instruction again for another action.
type InstructionKey struct{ Object, ID, Digest string }

// Key returns the key of the instruction.
func (i *Instructed) Key() InstructionKey {
	sum := sha256.Sum256([]byte(i.String()))
	object := i.Object
	if i.Kind != KindProtectedResource {
		object = i.Kind + "/" + i.Object
	}
	return InstructionKey{object, i.ID, hex.EncodeToString(sum[:])}
}

// InstructionLine is the ledger entry about an instruction.
type InstructionLine struct {
	Key   InstructionKey
	Entry ledger.Entry
}

// line returns the entry about an instruction that was seen at an instant. Its actor is unknown: the instruction itself says who gave it and
// when, which nobody verified. id is the catalog's ID of the resource, or empty.
func (i *Instructed) line(id string, at time.Time) InstructionLine {
	object := i.Kind + "/" + i.Object
	e := ledger.Entry{At: at, Actor: Unknown, Action: ActionInstructed, Object: object, Details: map[string]string{
		"instruction": i.ID, "do": string(i.Action), "statedBy": i.By, "reason": i.Reason, "at": i.At.UTC().Format(time.RFC3339Nano),
	}}
	if i.Kind == KindResourceClass {
		e.Action = ActionClassInstructed
		return InstructionLine{i.Key(), e}
	}
	e.Details["resource"] = i.Resource
	if id != "" {
		e.Object, e.Details["object"] = id, object
	}
	return InstructionLine{i.Key(), e}
}

// maxInstructions bounds the instructions that wait to be recorded, while the database cannot be written.
const maxInstructions = 10_000

// NoticeInstruction must be called for every ProtectedResource and ResourceClass whose instruction changed.
func (r *Recorder) NoticeInstruction(i Instructed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started { // Earlier instructions are found by the comparison at the start.
		r.putInstruction(i)
	}
}

func (r *Recorder) putInstruction(i Instructed) {
	key := i.Key()
	switch {
	case r.instructedKeys[key]:
		return
	case len(r.instructed) >= maxInstructions:
		r.Log.Error("Too many instructions about waves wait; one is not recorded in the ledger", "object", i.Object, "id", i.ID)
		return
	}
	if r.instructedKeys == nil {
		r.instructedKeys = map[InstructionKey]bool{}
	}
	r.instructedKeys[key], r.instructed = true, append(r.instructed, i)
}

// compareInstructions finds instructions that no watch reported. The first comparison of a database only records which exist.
func (r *Recorder) compareInstructions(ctx context.Context) error {
	all, err := r.Host.Instructions(ctx)
	if err != nil {
		return err
	}
	first, err := r.Store.FillInstructions(ctx, all)
	if err != nil || first {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range all {
		r.putInstruction(i)
	}
	return nil
}

// recordInstructions records the instructions that wait. It records nothing for those that the ledger has, or that the portal gave itself:
// the portal records these before it writes them, so there is no need to wait for the record.
func (r *Recorder) recordInstructions(ctx context.Context) error {
	r.mu.Lock()
	waiting := r.instructed
	r.mu.Unlock()
	if len(waiting) == 0 {
		return nil
	}
	lines := make([]InstructionLine, 0, len(waiting))
	for _, i := range waiting {
		id := ""
		if r.ResourceID != nil {
			id = r.ResourceID(i.Resource)
		}
		lines = append(lines, i.line(id, r.Now()))
	}
	if err := r.Store.RecordInstructions(ctx, lines); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instructed = r.instructed[len(waiting):] // Further ones may have been noticed meanwhile.
	for _, l := range lines {
		delete(r.instructedKeys, l.Key)
	}
	return nil
}
