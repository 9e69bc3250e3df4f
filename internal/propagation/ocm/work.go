package ocm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// WorkResource is the resource of ManifestWorks on the host.
var WorkResource = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "manifestworks"}

// Annotations of a ManifestWork, which stay on the host.
const (
	annotationPurpose = "acp.io/work-purpose"
	annotationKey     = "acp.io/work-object"
	// annotationRecord is the UID and the generation of the record that the content was taken from.
	annotationRecord = "acp.io/work-record"
	annotationNonce  = "acp.io/work-nonce"
	// annotationRevision is the revision of the spec.
	annotationRevision = "acp.io/work-revision"
	// annotationAsked is the time of a heartbeat, and annotationSince that of the first one without an answer, both in RFC 3339.
	annotationAsked = "acp.io/work-asked"
	annotationSince = "acp.io/work-unanswered-since"
)

// purpose is the reason why a ManifestWork exists.
type purpose string

const (
	// purposeApply makes the member have the object.
	purposeApply purpose = "apply"
	// purposeHold reports on an object without changing it, while the member is quarantined. The agent neither restores nor deletes it.
	purposeHold purpose = "hold"
	// purposeAdopt makes the agent own an object that remained in the member after its ManifestWork was deleted, so that the agent can
	// delete it.
	purposeAdopt purpose = "adopt"
	// purposeRead makes the agent report whether the member has an object, without changing it: a read request.
	purposeRead purpose = "read"
	// purposeRelease makes the agent remove its owner reference from an object, which stays in the member, because the member uses another engine.
	purposeRelease purpose = "release"
	// purposeHeartbeat shows that the agent is alive.
	purposeHeartbeat purpose = "heartbeat"
)

// changes reports whether the agent writes the object of the ManifestWork.
func (p purpose) changes() bool { return p == purposeApply || p == purposeAdopt }

// readOnly is the update strategy with which the agent does not write the object.
const readOnly = "ReadOnly"

// createOnly is the update strategy with which the agent creates the object if it is missing, and otherwise changes only its owners.
const createOnly = "CreateOnly"

// Types of conditions. The first is set by the rule of the ManifestWork, and the others by the agent.
const (
	conditionReport    = "acp.io/Recorded"
	conditionApplied   = "Applied"
	conditionAvailable = "Available"
	reasonMissing      = "ResourceNotAvailable"
)

// Results of the agent's last attempt to read an object.
const (
	available   = "True"
	unavailable = "False"
	unreadable  = "Unknown"
)

// work is a ManifestWork as the host has it.
type work struct {
	cluster, name   string
	uid             types.UID
	resourceVersion string
	generation      int64
	created         time.Time
	deleting        bool
	purpose         purpose
	// readOnly reports whether the spec forbids the agent to write the object, whatever the purpose says, and orphan whether the object stays
	// when the ManifestWork is deleted.
	readOnly, orphan bool
	// key is the key of the object, and object is its name.
	key, object string
	record      string
	// content is a digest of the spec, and body one of what the agent does, which does not change with the nonce.
	content, body string
	nonce         string
	revision      string
	// asked is the time of a heartbeat, and since that of the first one without an answer when it was sent.
	asked, since time.Time
	// applied reports whether the agent has handled the present version and has nothing of an earlier one in flight, and refused is its
	// message if it failed.
	applied bool
	refused string
	// available is the result of the agent's last attempt to read the object, or "" before the first one.
	available string
	// report is the last report, or nil. It belongs to the version with its nonce.
	report *report
}

// answered reports whether the agent has reported on the present version.
func (w *work) answered() bool { return w.report != nil && w.report.nonce == w.nonce }

// exact reports whether the agent found the recorded content in the member, after it had handled the present version. An answer alone does not
// count, because the agent may still be writing an earlier version then.
func (w *work) exact() bool {
	return w.applied && w.refused == "" && w.available == available && w.answered() && w.report.exact
}

// epoch returns the epoch in which the ManifestWork was written; see Works.isOfPresentEpoch.
func (w *work) epoch() string {
	epoch, _, _ := strings.Cut(w.nonce, epochSeparator)
	return epoch
}

// epochSeparator separates the epoch from the rest of a nonce.
const epochSeparator = "."

// missing reports whether the agent found that the member does not have the object. That report has no nonce, so it is only conclusive for a
// ManifestWork that has had one version.
func (w *work) missing() bool { return w.available == unavailable }

// recordOf identifies a version of a record.
func recordOf(o *federation.Object) string {
	return string(o.Meta.UID) + "/" + strconv.FormatInt(o.Meta.Generation, 10)
}

// nameOf returns the name of the ManifestWork of an object. The agent derives other names from it, so its length is limited.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return v1alpha1.ObjectPrefix + hex.EncodeToString(sum[:16])
}

// heartbeatName is the name of the ManifestWork whose reports show that the agent works.
const heartbeatName = v1alpha1.ObjectPrefix + "heartbeat"

// desired is the content of a ManifestWork.
type desired struct {
	cluster, name, key string
	purpose            purpose
	record, revision   string
	asked, since       time.Time
	manifest           *unstructured.Unstructured
	resource           schema.GroupVersionResource
	// expressions are the conditions under which the object counts as exactly what is recorded.
	expressions []string
}

// objectWork returns the ManifestWork with which the agent applies an object, or only reports on it, depending on the purpose.
func objectWork(o *federation.Object, cluster string, as purpose, revision string, of Scope) (desired, error) {
	spec, labels := o.TemplateSpec, o.TemplateLabels
	if own := o.Overrides[cluster]; o.IsPlacedIn(cluster) {
		spec, labels = o.SpecIn(cluster), federation.Overlay(labels, own.Labels)
	}
	labels = federation.Overlay(labels, map[string]string{federation.LabelKubeFed: "true", federation.LabelWorkAgent: "true"})
	expressions, err := exactExpressions(spec, labels)
	if err != nil {
		return desired{}, fmt.Errorf("compare %s: %w", o.Key(), err)
	}
	d := newDesired(o.Kind, o.Meta.Name, cluster, as, of)
	d.record, d.revision, d.expressions = recordOf(o), revision, expressions
	d.manifest.SetLabels(labels)
	d.manifest.Object["spec"] = spec
	return d, nil
}

// readRequest returns the ManifestWork with which the agent reports whether a member has an object.
func readRequest(o *federation.Object, cluster string, of Scope) desired {
	d := newDesired(o.Kind, o.Meta.Name, cluster, purposeRead, of)
	d.record, d.expressions = recordOf(o), []string{"false"}
	return d
}

// newDesired returns a ManifestWork for an object without content.
func newDesired(k federation.Kind, name, cluster string, as purpose, of Scope) desired {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(k.Target)
	u.SetNamespace(k.Namespace)
	u.SetName(name)
	key := of.key(k.Key(name))
	return desired{cluster: cluster, name: nameOf(key), key: key, purpose: as, manifest: u, resource: k.TargetResource}
}

// heartbeatRequest returns the ManifestWork that shows whether a member's agent is alive: the agent reports on the namespace kube-system, which every
// cluster has. The agent does not own the namespace, so it stays when the ManifestWork is deleted.
func heartbeatRequest(cluster string, now, since time.Time) desired {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(metav1.NamespaceSystem)
	return desired{cluster: cluster, name: heartbeatName, purpose: purposeHeartbeat, asked: now, since: since, manifest: u,
		resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, expressions: []string{"true"}}
}

// unstructured returns the ManifestWork with a nonce.
func (d *desired) unstructured(nonce string) *unstructured.Unstructured {
	strategy := map[string]any{"type": readOnly}
	if d.purpose.changes() {
		strategy = map[string]any{"type": "Update"}
	}
	expressions := make([]any, len(d.expressions))
	for i, e := range d.expressions {
		expressions[i] = e
	}
	identifier := map[string]any{"group": d.resource.Group, "resource": d.resource.Resource, "name": d.manifest.GetName()}
	if ns := d.manifest.GetNamespace(); ns != "" {
		identifier["namespace"] = ns
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"workload": map[string]any{"manifests": []any{d.manifest.DeepCopy().Object}},
		"manifestConfigs": []any{map[string]any{
			"resourceIdentifier": identifier,
			"updateStrategy":     strategy,
			"conditionRules": []any{map[string]any{"type": "CEL", "condition": conditionReport, "celExpressions": expressions,
				"messageExpression": reportMessage(nonce)}},
		}},
	}}}
	u.SetAPIVersion(WorkResource.GroupVersion().String())
	u.SetKind("ManifestWork")
	u.SetNamespace(d.cluster)
	u.SetName(d.name)
	u.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})
	annotations := map[string]string{annotationPurpose: string(d.purpose), annotationKey: d.key, annotationRecord: d.record,
		annotationRevision: d.revision, annotationNonce: nonce}
	if !d.asked.IsZero() {
		annotations[annotationAsked], annotations[annotationSince] = d.asked.UTC().Format(time.RFC3339), d.since.UTC().Format(time.RFC3339)
	}
	u.SetAnnotations(annotations)
	return u
}

// matches reports whether a ManifestWork has this content, regardless of the nonce.
func (d *desired) matches(w *work) bool {
	return w.purpose == d.purpose && w.key == d.key && w.record == d.record && w.revision == d.revision && w.nonce != "" &&
		w.content == digest(d.unstructured(w.nonce))
}

// digest returns a digest of the spec of a ManifestWork.
func digest(u *unstructured.Unstructured) string {
	raw, err := json.Marshal(u.Object["spec"])
	if err != nil {
		return "" // it is an object that was decoded from JSON, or goes to the host, which refuses it then
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// bodyOf returns a digest of what a ManifestWork makes the agent do, without what it reports.
func bodyOf(u *unstructured.Unstructured) string {
	spec, _ := u.Object["spec"].(map[string]any)
	raw, err := json.Marshal([]any{spec["workload"], strategyOf(u), spec["deleteOption"], spec["executor"]})
	if err != nil {
		return "" // see digest
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// manifestOf returns the metadata of the object in a ManifestWork, or nil.
func manifestOf(u *unstructured.Unstructured) map[string]any {
	field, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "workload", "manifests")
	manifests, _ := field.([]any)
	if len(manifests) != 1 {
		return nil
	}
	manifest, _ := manifests[0].(map[string]any)
	metadata, _ := manifest["metadata"].(map[string]any)
	return metadata
}

// isReadOnly reports whether the spec of a ManifestWork forbids the agent to write any object.
func isReadOnly(u *unstructured.Unstructured) bool { return strategyOf(u) == readOnly }

// strategyOf returns the update strategy of the only object of a ManifestWork, or "" if it has none.
func strategyOf(u *unstructured.Unstructured) string {
	field, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "manifestConfigs")
	configs, _ := field.([]any)
	if len(configs) != 1 {
		return ""
	}
	config, _ := configs[0].(map[string]any)
	strategy, _, _ := unstructured.NestedString(config, "updateStrategy", "type")
	return strategy
}

// isOrphan reports whether the objects of a ManifestWork stay in the member when it is deleted.
func isOrphan(u *unstructured.Unstructured) bool {
	policy, _, _ := unstructured.NestedString(u.Object, "spec", "deleteOption", "propagationPolicy")
	return policy == "Orphan"
}

// parseWork parses a ManifestWork, and may change it.
func parseWork(u *unstructured.Unstructured) *work {
	metadata := manifestOf(u)
	if at, found := metadata["creationTimestamp"]; found && at == nil {
		delete(metadata, "creationTimestamp") // API servers before Kubernetes 1.34 add it
	}
	a := u.GetAnnotations()
	w := &work{cluster: u.GetNamespace(), name: u.GetName(), uid: u.GetUID(), resourceVersion: u.GetResourceVersion(),
		generation: u.GetGeneration(), created: u.GetCreationTimestamp().Time, deleting: u.GetDeletionTimestamp() != nil,
		purpose: purpose(a[annotationPurpose]), readOnly: isReadOnly(u), orphan: isOrphan(u), key: a[annotationKey], record: a[annotationRecord],
		content: digest(u), body: bodyOf(u), nonce: a[annotationNonce], revision: a[annotationRevision]}
	w.object, _ = metadata["name"].(string)
	w.asked, _ = time.Parse(time.RFC3339, a[annotationAsked]) // the zero time if there is none, or it was changed by hand
	w.since, _ = time.Parse(time.RFC3339, a[annotationSince]) // the same
	own, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if c := condition(own, conditionApplied); c != nil {
		generation, _, _ := unstructured.NestedInt64(c, "observedGeneration")
		w.applied = generation == u.GetGeneration()
		if c["status"] != "True" {
			w.refused = "Applied is not True"
		}
	}
	manifests, _, _ := unstructured.NestedSlice(u.Object, "status", "resourceStatus", "manifests")
	if len(manifests) != 1 {
		return w
	}
	manifest, _ := manifests[0].(map[string]any)
	conditions, _, _ := unstructured.NestedSlice(manifest, "conditions")
	if c := condition(conditions, conditionApplied); c != nil && c["status"] != "True" {
		message, _ := c["message"].(string)
		w.refused = cut(message)
	}
	if c := condition(conditions, conditionAvailable); c != nil {
		status, _ := c["status"].(string)
		w.available = cut(status)
		if w.available == unavailable && c["reason"] != reasonMissing {
			w.available = unreadable
		}
	}
	if c := condition(conditions, conditionReport); c != nil {
		message, _ := c["message"].(string)
		if r, ok := parseReport(message); ok {
			r.exact = r.exact && c["status"] == "True"
			w.report = &r
		}
	}
	return w
}

func condition(conditions []any, kind string) map[string]any {
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m
		}
	}
	return nil
}
