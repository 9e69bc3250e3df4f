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

// LabeledPods are pods of a member that have the label of a class and a property by which a policy does not protect them.
type LabeledPods struct {
	// Unread is the reason why they are not known, or zero.
	Unread message.Message
	// Keys are the label keys whose pods were listed. Nothing is known about the pods with other labels.
	Keys []string
	// Pods are namespace/name by label, sorted, at most maxPods for each label.
	Pods map[federation.Label][]string
}

// maxPods bounds the pods that are stored for each label, and maxNamedPods those that a message lists.
const (
	maxPods      = 200
	maxNamedPods = 5
)

// readPods lists only the metadata of the pods with each label key that a field selector selects, and returns those that
// include accepts. The API server filters from its cache.
func readPods(ctx context.Context, reader *rest.Config, keys []string, selected string, include func(annotations map[string]string) bool) LabeledPods {
	client, err := metadata.NewForConfig(bounded(reader))
	if err != nil {
		return LabeledPods{Unread: message.Of(err)}
	}
	out := LabeledPods{Keys: keys, Pods: map[federation.Label][]string{}}
	for _, key := range keys {
		list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(ctx,
			metav1.ListOptions{LabelSelector: key, FieldSelector: selected, ResourceVersion: "0"})
		if err != nil {
			return LabeledPods{Unread: unread(err, "pods with the label "+key)}
		}
		for i := range list.Items {
			pod := &list.Items[i]
			label := federation.Label{Key: key, Value: pod.Labels[key]}
			if include(pod.Annotations) && len(out.Pods[label]) < maxPods {
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
func (p LabeledPods) Listed(key string) bool { return slices.Contains(p.Keys, key) }

// Describe lists the first pods with a label, or returns the zero Message if there are none.
func (p LabeledPods) Describe(key, value string) message.Message {
	return namesOf(p.Pods[federation.Label{Key: key, Value: value}])
}

// describeKey lists the first pods with a label key, or returns the zero Message if there are none.
func (p LabeledPods) describeKey(key string) message.Message {
	var all []string
	for label, pods := range p.Pods {
		if label.Key == key {
			all = append(all, pods...)
		}
	}
	slices.Sort(all)
	return namesOf(all)
}

func namesOf(pods []string) message.Message {
	if len(pods) == 0 {
		return message.Message{}
	}
	return message.NamesOf(pods, maxNamedPods)
}
