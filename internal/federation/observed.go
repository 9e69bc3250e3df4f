package federation

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/message"
)

// LabelKubeFed is the label "true" of the objects that KubeFed finds in a member (KubeFed v0.10.0, pkg/controller/util/managedlabel.go). It
// removes no others. Every engine writes it, so that KubeFed can remove what another engine created when the member moves to it.
const LabelKubeFed = "kubefed.io/managed"

// LabelWorkAgent is the label "true" of the objects that a work agent wrote last. Every other engine removes it with its first change, so that
// it is known whether KubeFed has written an object since the member moved to it.
const LabelWorkAgent = "acp.io/work-agent"

// Observed is one object that was read back from a member.
type Observed struct {
	Name string
	// Revision is computed from the spec that was read.
	Revision string
	// Label is the revision in the object's label. It differs from Revision if the spec was changed in the member.
	// Groups of addresses have no such label.
	Label string
	// Managed reports whether the object has ACP's label.
	Managed bool
	// KubeFed reports whether the object has the label by which KubeFed finds what it may remove.
	KubeFed bool
	// LastWriter is the last writer of the object, if its content does not match its label.
	LastWriter LastWriter
	// WrittenDirectly reports whether EngineDirect or a work agent was the last to change the object, or may have been.
	WrittenDirectly bool
	// Invalid is the dataplane's message if it reported that it rejects the object, or why it is known not to enforce it.
	Invalid string
	// Ztunnel is what istiod reports about a policy of Istio's for ztunnel.
	Ztunnel istio.ZtunnelStatus
	// Waypoint is what istiod reports about a policy of Istio's for a waypoint.
	Waypoint istio.WaypointStatus
	// foreign is the object as a policy of others, or nil for ACP's own, if the fleet is read for ForeignPolicies.
	foreign *policyObject
}

// Observation is the current state of one object in one member.
type Observation struct {
	// Registered reports whether a KubeFedCluster with that name exists.
	Registered bool
	// Reachable reports whether the member answers and its objects are listed and watched.
	Reachable bool
	// Unknown reports whether the members' registrations were not listed yet, or the member is being contacted for
	// the first time or after an outage, and has neither answered nor failed.
	Unknown bool
	// Message says why the member is not reachable, and what to do.
	Message message.Message
	// Object is the object in the member, or nil if there is none. It is valid only if Reachable is true.
	Object *Observed
	// AsOf is the resource version up to which the member's objects of the kind were read, or "".
	AsOf string
}

// Precedes reports whether the observation is known to be older than a write, whose result had the given resource version. It is false
// if that is not known.
func (o Observation) Precedes(version string) bool {
	return o.Reachable && o.AsOf != "" && version != "" && newer(version, o.AsOf)
}

// Revision is a function that computes the revision of a spec.
type Revision func(spec map[string]any) string

func (r Revision) parse(u *unstructured.Unstructured) (Observed, error) {
	spec, _ := u.Object["spec"].(map[string]any) // it is not copied, because every object of every member is read here
	// Dataplanes enforce more fields than spec (Cilium: specs). ACP never writes them, so their presence is a change of
	// the policy.
	for k, v := range u.Object {
		switch k {
		case "apiVersion", "kind", "metadata", "spec", "status":
		default:
			spec = map[string]any{"spec": spec, k: v}
		}
	}
	labels := u.GetLabels()
	revision, writer := shared.share(r(spec)), LastWriter{}
	if revision != labels[v1alpha1.LabelRevision] { // groups have no such label; whether they were changed is decided later
		writer = lastWriterOf(u)
	}
	rejection := cmp.Or(invalid(u), istio.AnalysisError(u.Object))
	if rejection == "" && istio.DryRun(u) {
		rejection = message.RejectionDryRun().Text
	}
	return Observed{
		LastWriter: writer, WrittenDirectly: writtenDirectly(u) || labels[LabelWorkAgent] == "true",
		Name: shared.share(u.GetName()), Revision: revision, Label: shared.share(labels[v1alpha1.LabelRevision]),
		Managed: labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy, KubeFed: labels[LabelKubeFed] == "true",
		Invalid: rejection, Ztunnel: istio.ZtunnelStatusOf(u.Object), Waypoint: istio.WaypointStatusOf(u.Object),
	}, nil
}

// sizeOfObserved returns about how many bytes are kept of an object that was parsed.
func sizeOfObserved(u *unstructured.Unstructured, o Observed) int {
	if o.foreign != nil {
		return sizeOf(u.Object)
	}
	const fixed = 512 // the struct, and its entry in the Watch
	return fixed + len(o.Name) + len(o.Revision) + len(o.Label) + len(o.LastWriter.Manager) + len(o.LastWriter.Operation) +
		len(o.Invalid) + len(o.Ztunnel.Problem) + len(o.Waypoint.Problem)
}

// invalid returns the message of Cilium's condition Valid unless it is True. Only cilium-operator writes that
// condition, after it parsed the policy with its own settings; agents write nothing, even when they reject a policy. So
// the operator may not have read an object without the condition yet, and agents with other settings may reject an
// object that has it. What agents reject is derived from their settings, which the preflight reads.
func invalid(u *unstructured.Unstructured) string {
	status, _ := u.Object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
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
