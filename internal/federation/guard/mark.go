package guard

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MarkResource is that of the mark.
var MarkResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// Downgrade is what the mark in a member says: its policies were turned to let everything through, by hand.
type Downgrade struct {
	Since  time.Time `json:"since"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// Same tells whether two say the same.
func (d Downgrade) Same(e Downgrade) bool {
	return d.Since.Equal(e.Since) && d.By == e.By && d.Reason == e.Reason
}

// Keys of the mark's data.
const (
	keySince  = "since"
	keyBy     = "by"
	keyReason = "reason"
)

// maxText bounds what is taken over from a mark that somebody else may have written.
const maxText = 256

// Object is the mark.
func (d Downgrade) Object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": Namespace, "name": Mark},
		"data":     map[string]any{keySince: d.Since.UTC().Format(time.RFC3339), keyBy: d.By, keyReason: d.Reason}}}
}

// ParseMark reads the mark. Whatever it says, its presence is what counts.
func ParseMark(u *unstructured.Unstructured) Downgrade {
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	d := Downgrade{By: clip(data[keyBy]), Reason: clip(data[keyReason])}
	since, err := time.Parse(time.RFC3339, data[keySince])
	if err != nil {
		since = u.GetCreationTimestamp().Time
	}
	d.Since = since.UTC()
	return d
}

// String says it for people.
func (d Downgrade) String() string {
	by, reason := d.By, d.Reason
	if by == "" {
		by = "somebody who did not say who"
	}
	if reason == "" {
		reason = "no reason given"
	}
	return fmt.Sprintf("downgraded since %s by %s (%s)", d.Since.Format(time.RFC3339), by, reason)
}

func clip(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if len(out) == maxText {
			break
		}
		if r < ' ' || r == 0x7f {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}
