package guard

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/internal/message"
)

// DowngradeMarkResource is the resource of the object that is the downgrade mark: ConfigMaps.
var DowngradeMarkResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// DowngradeMark is the content of the ConfigMap DowngradeMarkName in a member. Its presence means that an operator downgraded the member:
// they changed the policies there to allow all traffic, without the control plane.
type DowngradeMark struct {
	Since  time.Time `json:"since"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// Same reports whether two marks have the same content.
func (d DowngradeMark) Same(e DowngradeMark) bool {
	return d.Since.Equal(e.Since) && d.By == e.By && d.Reason == e.Reason
}

// Keys of the mark's data.
const (
	keySince  = "since"
	keyBy     = "by"
	keyReason = "reason"
)

// maxText bounds, in characters, what is read from a mark that another program may have written.
const maxText = 256

// Object returns the mark as a ConfigMap.
func (d DowngradeMark) Object() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": Namespace, "name": DowngradeMarkName},
		"data":     map[string]any{keySince: d.Since.UTC().Format(time.RFC3339), keyBy: d.By, keyReason: d.Reason}}}
}

// ParseDowngradeMark returns the content of the mark. It never fails, because the presence of the mark counts, whatever its content is:
// what cannot be read is empty, and the time is then that of the object's creation.
func ParseDowngradeMark(u *unstructured.Unstructured) DowngradeMark {
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	d := DowngradeMark{By: clip(data[keyBy]), Reason: clip(data[keyReason])}
	since, err := time.Parse(time.RFC3339, data[keySince])
	if err != nil {
		since = u.GetCreationTimestamp().Time
	}
	d.Since = since.UTC()
	return d
}

// Message describes the downgrade for users.
func (d DowngradeMark) Message() message.Message {
	since := d.Since.Format(time.RFC3339)
	switch {
	case d.By == "" && d.Reason == "":
		return message.GuardMarkNothing(since)
	case d.By == "":
		return message.GuardMarkNobody(since, d.Reason)
	case d.Reason == "":
		return message.GuardMarkNoReason(since, d.By)
	}
	return message.GuardMark(since, d.By, d.Reason)
}

// String describes the downgrade in English.
func (d DowngradeMark) String() string { return d.Message().Text }

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
