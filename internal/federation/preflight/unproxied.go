package preflight

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// Unproxied are the pods of a member that have the label of a class of Istio's, and neither a sidecar nor ztunnel: no
// AuthorizationPolicy is enforced for them, so they are open in every mode.
type Unproxied struct {
	// Unread is the reason why they are not known, or zero.
	Unread message.Message
	// Keys are the label keys whose pods were listed. Nothing is known about the pods with other labels.
	Keys []string
	// Pods are namespace/name by label, sorted, at most maxUnproxied for each label.
	Pods map[federation.Label][]string
}

// maxUnproxied bounds the pods that are stored for each label.
const maxUnproxied = 200

// connected selects the pods that have an address and have not ended. A pod without an address cannot be connected to, and
// Istio writes the redirection to ztunnel only when the network of the pod is set up.
const connected = "status.phase!=Succeeded,status.phase!=Failed,status.podIP!="

// Annotations of pods that Istio writes or reads. Source: istio.io/api/annotation.
const (
	// sidecarStatus is added when containers are injected. Its value describes them.
	sidecarStatus = "sidecar.istio.io/status"
	// templates names what is injected, if it is something else than the sidecar.
	templates = "inject.istio.io/templates"
	// interceptionMode and includedPorts determine which connections the sidecar gets.
	interceptionMode = "sidecar.istio.io/interceptionMode"
	includedPorts    = "traffic.sidecar.istio.io/includeInboundPorts"
	// redirection is added by istio-cni when the traffic of a pod is redirected to ztunnel, with the value redirected.
	redirection = "ambient.istio.io/redirection"
	redirected  = "enabled"
)

// proxied reports whether a pod has a proxy that gets all of its connections, by the annotations. Whoever may create pods
// can write them.
func proxied(annotations map[string]string) bool {
	if annotations[redirection] == redirected {
		return true
	}
	if named := annotations[templates]; named != "" && !slices.Contains(strings.Split(named, ","), "sidecar") {
		return false
	}
	ports, limited := annotations[includedPorts]
	return annotations[sidecarStatus] != "" && annotations[interceptionMode] != "NONE" && (!limited || ports == "*")
}

// ReadUnproxied lists only the metadata of the pods with each label key. In a member that declares no Istio that enforces,
// nothing is listed: no policy of Istio is enforced there at all.
func ReadUnproxied(ctx context.Context, reader *rest.Config, istio Istio, keys []string) Unproxied {
	if len(keys) == 0 || !istio.Enforces() {
		return Unproxied{}
	}
	client, err := metadata.NewForConfig(bounded(reader))
	if err != nil {
		return Unproxied{Unread: message.Of(err)}
	}
	out := Unproxied{Keys: keys, Pods: map[federation.Label][]string{}}
	for _, key := range keys {
		list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(ctx,
			metav1.ListOptions{LabelSelector: key, FieldSelector: connected, ResourceVersion: "0"})
		if err != nil {
			return Unproxied{Unread: unread(err, "pods with the label "+key)}
		}
		for i := range list.Items {
			pod := &list.Items[i]
			label := federation.Label{Key: key, Value: pod.Labels[key]}
			if !proxied(pod.Annotations) && len(out.Pods[label]) < maxUnproxied {
				out.Pods[label] = append(out.Pods[label], pod.Namespace+"/"+pod.Name)
			}
		}
	}
	for _, pods := range out.Pods {
		slices.Sort(pods)
	}
	return out
}

// Listed reports whether the pods with a label key were listed.
func (u Unproxied) Listed(key string) bool { return slices.Contains(u.Keys, key) }

// Describe lists the first pods with a label, or returns the zero Message if there are none.
func (u Unproxied) Describe(key, value string) message.Message {
	pods := u.Pods[federation.Label{Key: key, Value: value}]
	if len(pods) == 0 {
		return message.Message{}
	}
	return message.NamesOf(pods, maxNamedPods)
}

// unproxiedFindings reports pods for which Istio enforces nothing, in a member whose Istio is to enforce.
func unproxiedFindings(f Facts, n Needs) []Finding {
	if !f.Istio.Enforces() || len(IstioLabels(n.Keys)) == 0 {
		return nil
	}
	if !f.Unproxied.Unread.IsZero() {
		return []Finding{{Severity: Warns, Code: UnproxiedUnread,
			Message: message.PreflightUnproxiedUnread(f.Unproxied.Unread), Do: message.RemedyApplyMemberRbac()}}
	}
	var out []Finding
	for _, k := range n.Keys {
		if !k.Istio {
			continue
		}
		var pods []string
		for label, named := range f.Unproxied.Pods {
			if label.Key == k.Label {
				pods = append(pods, named...)
			}
		}
		if len(pods) == 0 {
			continue
		}
		slices.Sort(pods)
		out = append(out, Finding{Severity: Warns, Code: UnproxiedPods, Class: k.Class, Label: k.Label,
			Message: message.PreflightUnproxiedPods(k.Label, k.Class, message.NamesOf(pods, maxNamedPods)), Do: message.RemedyInjectProxy()})
	}
	return out
}
