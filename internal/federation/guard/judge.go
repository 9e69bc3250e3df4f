package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State of the guard of a member.
type State string

// States.
const (
	Present State = "Present"
	// Missing: a policy or a binding is not there, so anybody with the rights may write what ACP manages.
	Missing State = "Missing"
	// Changed: one is not as it is rendered.
	Changed State = "Changed"
	// Unknown: nobody looked, or was not let.
	Unknown State = "Unknown"
)

// Judge compares what a member has with what is rendered, and says in a sentence what is wrong; "": nothing. found are
// its policies and bindings, others too; c are the credentials of the classes, which count only where the
// policy about them was brought to the member. It is pure.
func Judge(found []*unstructured.Unstructured, c Credentials) (State, string) {
	key := func(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }
	have := map[string]*unstructured.Unstructured{}
	for _, o := range found {
		have[key(o)] = o
	}
	if have[kindPolicy+" "+ClassLabels] == nil && have[kindBinding+" "+ClassLabels] == nil {
		c = Credentials{}
	}
	want, err := Objects(c)
	if err != nil {
		return Unknown, err.Error()
	}
	var missing, changed []string
	for _, w := range want {
		h := have[key(w)]
		switch {
		case h == nil || h.GetDeletionTimestamp() != nil:
			missing = append(missing, key(w))
		case !sameSpec(h, w):
			changed = append(changed, key(w))
		}
	}
	slices.Sort(missing)
	slices.Sort(changed)
	switch {
	case len(missing) > 0:
		return Missing, fmt.Sprintf("whoever has the rights there may change what ACP manages: it lacks %s", strings.Join(missing, ", "))
	case len(changed) > 0:
		return Changed, fmt.Sprintf("what guards the managed objects was changed: %s", strings.Join(changed, ", "))
	}
	return Present, ""
}

// sameSpec compares as JSON, in which numbers have one type.
func sameSpec(a, b *unstructured.Unstructured) bool {
	x, errA := json.Marshal(a.Object["spec"])
	y, errB := json.Marshal(b.Object["spec"])
	return errA == nil && errB == nil && string(x) == string(y)
}
