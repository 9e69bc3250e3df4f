package federation

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LastWriter is the program that changed an object last, according to its managedFields. The user is recorded only in
// the member's audit log.
type LastWriter struct {
	Manager, Operation string
	At                 time.Time
}

// String describes the writer for messages, or returns "" if it is not known.
func (w LastWriter) String() string {
	if w.Manager == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s) at %s", w.Manager, w.Operation, w.At.UTC().Format(time.RFC3339))
}

// decisive are the fields that define what is enforced.
var decisive = []string{"f:spec", "f:specs"}

// lastWriterOf returns the last writer of a decisive field. Times have a resolution of one second; of two writes in one
// second, the one with fewer fields is taken as the later change.
func lastWriterOf(u *unstructured.Unstructured) LastWriter {
	var out LastWriter
	var last managedFields
	for m := range managedFieldsOf(u) {
		if m.subresource != "" || m.at.IsZero() || !m.isDecisive() {
			continue
		}
		if out.Manager == "" || m.at.After(out.At) || m.at.Equal(out.At) && m.size() < last.size() {
			out, last = LastWriter{Manager: sanitize(m.manager), Operation: m.operation, At: m.at}, m
		}
	}
	return out
}

// managedFields is an entry of the managed fields of an object.
type managedFields struct {
	manager, operation, subresource string
	// at is the time of the write, or zero.
	at     time.Time
	fields map[string]any
}

// managedFieldsOf returns the readable entries of an object's managed fields. GetManagedFields would encode the fields of each entry again,
// which takes longer than reading the object, and is done for every object of every member.
func managedFieldsOf(u *unstructured.Unstructured) iter.Seq[managedFields] {
	metadata, _ := u.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	return func(yield func(managedFields) bool) {
		for _, e := range entries {
			entry, _ := e.(map[string]any)
			text := func(field string) string {
				s, _ := entry[field].(string)
				return s
			}
			m := managedFields{manager: text("manager"), operation: text("operation"), subresource: text("subresource")}
			m.fields, _ = entry["fieldsV1"].(map[string]any)
			if at, err := time.Parse(time.RFC3339, text("time")); err == nil {
				m.at = at.Local()
			}
			if !yield(m) {
				return
			}
		}
	}
}

// isDecisive reports whether the fields of an entry include a decisive one.
func (m managedFields) isDecisive() bool {
	return slices.ContainsFunc(decisive, func(field string) bool {
		_, has := m.fields[field]
		return has
	})
}

// size returns the size of the fields of an entry as JSON, in bytes.
func (m managedFields) size() int {
	text, err := json.Marshal(m.fields)
	if err != nil {
		return 0
	}
	return len(text)
}

// DirectFieldManager is the field manager of EngineDirect in the members.
const DirectFieldManager = "acp-adapter-direct"

// writtenDirectly reports whether EngineDirect was the last to change an object, or may have been: times have a resolution of one second.
func writtenDirectly(u *unstructured.Unstructured) bool {
	var direct, others time.Time
	for m := range managedFieldsOf(u) {
		switch {
		case m.subresource != "":
		case m.manager == DirectFieldManager && m.at.After(direct):
			direct = m.at
		case m.manager != DirectFieldManager && m.at.After(others):
			others = m.at
		}
	}
	return !direct.IsZero() && !direct.Before(others)
}

// sanitize removes characters from a manager's name that do not fit in a message, because any client can choose the
// name.
func sanitize(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if len(out) == 64 {
			break
		}
		if r < ' ' || r == 0x7f {
			r = '?'
		}
		out = append(out, r)
	}
	return string(out)
}
