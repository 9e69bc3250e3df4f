package preflight

import (
	"context"
	"slices"

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
	// Pods are namespace/name by label, sorted, at most maxUnproxied for each key.
	Pods map[federation.Label][]string
}

// maxUnproxied bounds the pods that are stored for each label key.
const maxUnproxied = 200

// running selects the pods that have not ended.
const running = "status.phase!=Succeeded,status.phase!=Failed"

// Annotations that Istio adds to pods. Source: istio.io/api/annotation.
const (
	// sidecarStatus is added when the sidecar is injected. Its value describes the injected containers.
	sidecarStatus = "sidecar.istio.io/status"
	// redirection is added by istio-cni when the traffic of a pod is redirected to ztunnel, with the value redirected.
	redirection = "ambient.istio.io/redirection"
	redirected  = "enabled"
)

// proxied reports whether a pod has a proxy, by what Istio wrote to it. Whoever may create pods can write the same.
func proxied(pod *metav1.PartialObjectMetadata) bool {
	return pod.Annotations[sidecarStatus] != "" || pod.Annotations[redirection] == redirected
}

// ReadUnproxied lists only the metadata of the pods with each label key.
func ReadUnproxied(ctx context.Context, reader *rest.Config, keys []string) Unproxied {
	if len(keys) == 0 {
		return Unproxied{}
	}
	client, err := metadata.NewForConfig(bounded(reader))
	if err != nil {
		return Unproxied{Unread: message.Of(err)}
	}
	out := Unproxied{Pods: map[federation.Label][]string{}}
	for _, key := range keys {
		list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(ctx,
			metav1.ListOptions{LabelSelector: key, FieldSelector: running, ResourceVersion: "0"})
		if err != nil {
			return Unproxied{Unread: unread(err, "pods with the label "+key)}
		}
		found := 0
		for i := range list.Items {
			pod := &list.Items[i]
			if proxied(pod) {
				continue
			}
			if found++; found > maxUnproxied {
				break
			}
			label := federation.Label{Key: key, Value: pod.Labels[key]}
			out.Pods[label] = append(out.Pods[label], pod.Namespace+"/"+pod.Name)
		}
	}
	for _, pods := range out.Pods {
		slices.Sort(pods)
	}
	return out
}

// Describe lists the first pods with a label, or returns the zero Message if there are none.
func (u Unproxied) Describe(key, value string) message.Message {
	pods := u.Pods[federation.Label{Key: key, Value: value}]
	if len(pods) == 0 {
		return message.Message{}
	}
	return message.NamesOf(pods, maxNamedPods)
}

// unproxiedFindings reports pods for which Istio enforces nothing.
func unproxiedFindings(f Facts, n Needs) []Finding {
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
