package federation

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LastWriter is who changed an object, as its managedFields tell: the program that wrote, not the person, whom only the member's
// audit log knows.
type LastWriter struct {
	Manager, Operation string
	At                 time.Time
}

// String says it for people; "": nobody is known.
func (h LastWriter) String() string {
	if h.Manager == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s) at %s", h.Manager, h.Operation, h.At.UTC().Format(time.RFC3339))
}

// decisive are the fields that say what is enforced, and what the object says of itself.
var decisive = []string{"f:spec", "f:specs"}

// lastWriterOf is the last one that wrote something which decides. Times have whole seconds: of two in one second the one with
// fewer fields made the later, smaller change.
func lastWriterOf(u *unstructured.Unstructured) LastWriter {
	var out LastWriter
	fewest := 0
	for _, m := range u.GetManagedFields() {
		if m.Subresource != "" || m.Time == nil || m.FieldsV1 == nil || !writes(m.FieldsV1) {
			continue
		}
		size := len(m.FieldsV1.GetRawBytes())
		if out.Manager == "" || m.Time.After(out.At) || m.Time.Time.Equal(out.At) && size < fewest {
			out, fewest = LastWriter{Manager: clean(m.Manager), Operation: string(m.Operation), At: m.Time.Time}, size
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

// clean keeps what a manager calls itself fit for a sentence: anybody may choose the name.
func clean(s string) string {
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
