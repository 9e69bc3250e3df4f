package federation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Observed is one object that was read back from a member.
type Observed struct {
	Name string
	// Revision is recomputed from the spec that is there.
	Revision string
	// Label is the revision that the object says it has; it differs from Revision when somebody changed the spec. Groups of
	// addresses say none.
	Label string
	// Managed: the object carries ACP's label.
	Managed bool
	// Hand is whoever changed the object last, when it is not as its label says.
	Hand LastWriter
	// Invalid is the dataplane's complaint, when it wrote that it does not accept the object.
	Invalid string
}

// Observation is what is known of one object in one member at this moment.
type Observation struct {
	// Registered: a KubeFedCluster of that name exists.
	Registered bool
	// Reachable: the member answers, and its objects are listed and watched.
	Reachable bool
	// Unknown: the members' registrations were not listed yet, or the member is being asked for the first time, or anew after an
	// outage, and has neither answered nor failed.
	Unknown bool
	// Message says why the member is not reachable, and what to do.
	Message string
	// Object is what is there; nil: nothing. It means nothing unless Reachable.
	Object *Observed
}

// Revision computes the revision of a spec.
type Revision func(spec map[string]any) string

func (r Revision) parse(u *unstructured.Unstructured) (Observed, error) {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	// Dataplanes enforce more than the spec (Cilium: specs); ACP writes nothing there, so whoever did changed the policy.
	for k, v := range u.Object {
		switch k {
		case "apiVersion", "kind", "metadata", "spec", "status":
		default:
			spec = map[string]any{"spec": spec, k: v}
		}
	}
	labels := u.GetLabels()
	revision, hand := r(spec), LastWriter{}
	if revision != labels[v1alpha1.LabelRevision] { // groups have no such label, and whether they were changed is decided later
		hand = lastWriterOf(u)
	}
	return Observed{
		Hand: hand, Name: u.GetName(), Revision: revision, Label: labels[v1alpha1.LabelRevision],
		Managed: labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy, Invalid: invalid(u),
	}, nil
}

// invalid returns the message of Cilium's condition Valid unless it is True. Only cilium-operator writes that condition, after it
// has parsed the policy with its own settings; agents write nothing, also when they refuse a policy. So an object without the
// condition may be unknown to the operator yet, and one with it may be refused by agents that are configured otherwise; what agents
// refuse follows from their settings, which the preflight reads.
func invalid(u *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["type"] != "Valid" || m["status"] == "True" {
			continue
		}
		if msg, ok := m["message"].(string); ok && msg != "" {
			return msg
		}
		return "cilium-operator does not accept the policy, and does not say why"
	}
	return ""
}
