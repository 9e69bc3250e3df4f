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

// HostPods are the pods of a member that have the label of a class and use the network of their node. Cilium identifies
// them as the node, so no policy selects them: they are open in every mode, and a rule about their label does not match
// them.
type HostPods struct {
	// Unread is the reason why they are not known, or zero.
	Unread message.Message
	// Pods are namespace/name by label, sorted, at most maxHostPods for each label.
	Pods map[federation.Label][]string
}

// maxHostPods bounds the pods that are stored for each label, and maxNamedPods those that a message lists.
const (
	maxHostPods  = 200
	maxNamedPods = 5
)

// onHost selects pods that use the network of their node and have not ended. The API server filters from its cache, so
// a member without such pods returns an empty list.
const onHost = "spec.hostNetwork=true,status.phase!=Succeeded,status.phase!=Failed"

// ReadHostPods lists only the metadata of such pods for each label key.
func ReadHostPods(ctx context.Context, reader *rest.Config, keys []string) HostPods {
	client, err := metadata.NewForConfig(bounded(reader))
	if err != nil {
		return HostPods{Unread: message.Of(err)}
	}
	out := HostPods{Pods: map[federation.Label][]string{}}
	for _, key := range keys {
		list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(ctx,
			metav1.ListOptions{LabelSelector: key, FieldSelector: onHost, ResourceVersion: "0"})
		if err != nil {
			return HostPods{Unread: unread(err, "pods with the label "+key)}
		}
		for i := range list.Items {
			pod := &list.Items[i]
			label := federation.Label{Key: key, Value: pod.Labels[key]}
			if len(out.Pods[label]) < maxHostPods {
				out.Pods[label] = append(out.Pods[label], pod.Namespace+"/"+pod.Name)
			}
		}
	}
	for _, pods := range out.Pods {
		slices.Sort(pods)
	}
	return out
}

// Describe lists the first pods with a label, or returns the zero Message if there are none.
func (h HostPods) Describe(key, value string) message.Message {
	pods := h.Pods[federation.Label{Key: key, Value: value}]
	if len(pods) == 0 {
		return message.Message{}
	}
	return message.NamesOf(pods, maxNamedPods)
}

// hostPodFindings reports pods that no policy selects.
func hostPodFindings(f Facts, n Needs) []Finding {
	if !f.HostPods.Unread.IsZero() {
		return []Finding{{Severity: Warns, Code: HostPodsUnread, invalidates: InvalidatesEnforce,
			Message: message.PreflightHostPodsUnread(f.HostPods.Unread), Do: message.RemedyApplyMemberRbac()}}
	}
	var out []Finding
	for _, k := range n.Keys {
		var pods []string
		for label, named := range f.HostPods.Pods {
			if label.Key == k.Label {
				pods = append(pods, named...)
			}
		}
		if len(pods) == 0 || k.GuardedOnly {
			continue
		}
		slices.Sort(pods)
		why := message.PreflightHostPods(k.Label, message.NamesOf(pods, maxNamedPods))
		if k.Class != "" {
			why = message.PreflightHostPodsOf(k.Label, k.Class, message.NamesOf(pods, maxNamedPods))
		}
		out = append(out, Finding{Severity: Warns, Code: HostNetworkPods, Class: k.Class, Label: k.Label, Message: why, Do: message.RemedyHostNetwork()})
	}
	return out
}
