package guard

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/message"
)

// State is the state of the guard in a member.
type State string

// States of the guard.
const (
	// Present means that the guard is as ACP renders it.
	Present State = "Present"
	// Missing means that a policy or a binding does not exist, so every user with the RBAC rights may write what ACP
	// manages.
	Missing State = "Missing"
	// Changed means that a policy or a binding differs from the rendered one.
	Changed State = "Changed"
	// Unknown means that the policies were not read, or could not be.
	Unknown State = "Unknown"
)

// Judge compares a member's policies with the rendered ones, and returns a sentence about the difference, or the
// zero Message if there is none. found contains the policies and bindings of the member, including others; c are the credentials of the
// classes, which are compared only if the policy about them was installed. pushers are as for Objects. It is pure.
func Judge(found []*unstructured.Unstructured, c Credentials, pushers ...string) (State, message.Message) {
	key := func(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }
	have := map[string]*unstructured.Unstructured{}
	for _, o := range found {
		have[key(o)] = o
	}
	if have[kindPolicy+" "+PolicyClassLabels] == nil && have[kindBinding+" "+PolicyClassLabels] == nil {
		c = Credentials{}
	}
	want, err := Objects(c, pushers...)
	if err != nil {
		return Unknown, message.Of(err)
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
		return Missing, message.GuardMissing(missing)
	case len(changed) > 0:
		return Changed, message.GuardChanged(changed)
	}
	return Present, message.Message{}
}

// sameSpec compares specs as JSON, in which numbers have one type.
func sameSpec(a, b *unstructured.Unstructured) bool {
	x, errA := json.Marshal(a.Object["spec"])
	y, errB := json.Marshal(b.Object["spec"])
	return errA == nil && errB == nil && string(x) == string(y)
}
