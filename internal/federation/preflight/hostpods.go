package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
)

// HostPods are the pods of a member that have the label of a class and use the network of their node. Cilium identifies
// them as the node, so no policy selects them: they are open in every mode, and a rule about their label does not match
// them.
type HostPods struct {
	// Unread is the reason why they are not known, or "".
	Unread string
	// Pods are namespace/name by label, sorted, at most maxHostPods for each key.
	Pods map[federation.Label][]string
}

// maxHostPods bounds the pods that are stored for each label key, and maxNamedPods those that a message lists.
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
		return HostPods{Unread: err.Error()}
	}
	out := HostPods{Pods: map[federation.Label][]string{}}
	for _, key := range keys {
		list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(ctx,
			metav1.ListOptions{LabelSelector: key, FieldSelector: onHost, ResourceVersion: "0"})
		if err != nil {
			return HostPods{Unread: unread(err, "pods with the label "+key)}
		}
		for i := range list.Items[:min(len(list.Items), maxHostPods)] {
			pod := &list.Items[i]
			label := federation.Label{Key: key, Value: pod.Labels[key]}
			out.Pods[label] = append(out.Pods[label], pod.Namespace+"/"+pod.Name)
		}
	}
	for _, pods := range out.Pods {
		slices.Sort(pods)
	}
	return out
}

// Describe lists the first pods with a label, or returns "" if there are none.
func (h HostPods) Describe(key, value string) string {
	return namedOf(h.Pods[federation.Label{Key: key, Value: value}])
}

func namedOf(pods []string) string {
	if len(pods) <= maxNamedPods {
		return strings.Join(pods, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(pods[:maxNamedPods], ", "), len(pods)-maxNamedPods)
}

// hostPodFindings reports pods that no policy selects.
func hostPodFindings(f Facts, n Needs) []Finding {
	if f.HostPods.Unread != "" {
		return []Finding{{Severity: Warns, Code: HostPodsUnread, voids: VoidsEnforce,
			Message: "whether pods of the classes use the network of their node is unknown: " + f.HostPods.Unread, Do: "apply deploy/rbac/member there"}}
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
		out = append(out, Finding{Severity: Warns, Code: HostNetworkPods, Class: k.Class, Label: k.Label,
			Message: fmt.Sprintf("pods with the label %s use the network of their node, so no policy selects them and no rule about the label matches them: %s", k.named(), namedOf(pods)),
			Do:      "take hostNetwork out of these pods, or the label"})
	}
	return out
}
