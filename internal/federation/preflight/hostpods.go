package preflight

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// onHost selects pods that use the network of their node and have not ended.
const onHost = "spec.hostNetwork=true,status.phase!=Succeeded,status.phase!=Failed"

// ReadHostPods lists the pods with each label key that use the network of their node. Cilium identifies them as the node,
// so no policy selects them: they are open in every mode, and a rule about their label does not match them.
func ReadHostPods(ctx context.Context, reader *rest.Config, keys []string) LabeledPods {
	out := newLabeledPods(keys)
	why := readPods(ctx, reader, keys, onHost, func(label federation.Label, pod *metav1.PartialObjectMetadata) {
		out.add(label, pod.Namespace+"/"+pod.Name)
	})
	if !why.IsZero() {
		return LabeledPods{Unread: why}
	}
	out.sort()
	return out
}

// hostPodFindings reports pods that no policy selects.
func hostPodFindings(f Facts, n Needs) []Finding {
	if !f.HostPods.Unread.IsZero() {
		return []Finding{{Severity: Warns, Code: HostPodsUnread, invalidates: InvalidatesEnforce,
			Message: message.PreflightHostPodsUnread(f.HostPods.Unread), Remedy: message.RemedyApplyMemberRbac()}}
	}
	var out []Finding
	for _, k := range n.Keys {
		pods := f.HostPods.describeKey(k.Label, maxNamedPods)
		if pods.IsZero() || k.GuardedOnly {
			continue
		}
		why := message.PreflightHostPods(k.Label, pods)
		if k.Class != "" {
			why = message.PreflightHostPodsOf(k.Label, k.Class, pods)
		}
		out = append(out, Finding{Severity: Warns, Code: HostNetworkPods, Class: k.Class, Label: k.Label, Message: why, Remedy: message.RemedyHostNetwork()})
	}
	return out
}
