package federation

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	fewest := 0
	for _, m := range u.GetManagedFields() {
		if m.Subresource != "" || m.Time == nil || m.FieldsV1 == nil || !writes(m.FieldsV1) {
			continue
		}
		size := len(m.FieldsV1.GetRawBytes())
		if out.Manager == "" || m.Time.After(out.At) || m.Time.Time.Equal(out.At) && size < fewest {
			out, fewest = LastWriter{Manager: sanitize(m.Manager), Operation: string(m.Operation), At: m.Time.Time}, size
		}
	}
	return out
}

func writes(f *metav1.FieldsV1) bool {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(f.GetRawBytes(), &fields); err != nil {
		return false
	}
	for _, d := range decisive {
		if _, ok := fields[d]; ok {
			return true
		}
	}
	return false
}

// DirectFieldManager is the field manager of EngineDirect in the members.
const DirectFieldManager = "acp-adapter-direct"

// writtenDirectly reports whether EngineDirect was the last to change an object, or may have been: times have a resolution of one second.
func writtenDirectly(u *unstructured.Unstructured) bool {
	var direct, others time.Time
	for _, m := range u.GetManagedFields() {
		switch {
		case m.Subresource != "" || m.Time == nil:
		case m.Manager == DirectFieldManager && m.Time.After(direct):
			direct = m.Time.Time
		case m.Manager != DirectFieldManager && m.Time.After(others):
			others = m.Time.Time
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
