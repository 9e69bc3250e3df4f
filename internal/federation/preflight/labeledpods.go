package preflight

import (
	"context"
	"maps"
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
	// Pods are namespace/name by label, sorted, at most maxPods for each label. More about a pod may follow in parentheses.
	Pods map[federation.Label][]string
}

// maxPods bounds the pods that are stored for each label, and maxNamedPods those that a message lists. Of workloads, a message lists more.
const (
	maxPods           = 200
	maxNamedPods      = 5
	maxNamedWorkloads = 10
)

// readPods lists only the metadata of the pods with each label key that a field selector selects, and calls each with them and their
// label. The API server filters from its cache. It returns the reason why they are not known, or the zero Message.
func readPods(ctx context.Context, reader *rest.Config, keys []string, selected string,
	each func(label federation.Label, pod *metav1.PartialObjectMetadata),
) message.Message {
	client, err := metadata.NewForConfig(bounded(reader))
	if err != nil {
		return message.Of(err)
	}
	for _, key := range keys {
		list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).List(ctx,
			metav1.ListOptions{LabelSelector: key, FieldSelector: selected, ResourceVersion: "0"})
		if err != nil {
			return unread(err, "pods with the label "+key)
		}
		for i := range list.Items {
			each(federation.Label{Key: key, Value: list.Items[i].Labels[key]}, &list.Items[i])
		}
	}
	return message.Message{}
}

// newLabeledPods returns LabeledPods of the pods with some label keys, without pods.
func newLabeledPods(keys []string) LabeledPods {
	return LabeledPods{Keys: keys, Pods: map[federation.Label][]string{}}
}

// add adds a pod with a label, unless there are enough pods with it.
func (p *LabeledPods) add(label federation.Label, pod string) {
	if len(p.Pods[label]) < maxPods {
		p.Pods[label] = append(p.Pods[label], pod)
	}
}

// addOnce is add, unless the name was added with the label before.
func (p *LabeledPods) addOnce(label federation.Label, name string) {
	if !slices.Contains(p.Pods[label], name) {
		p.add(label, name)
	}
}

// sort sorts the pods of each label.
func (p *LabeledPods) sort() {
	for _, pods := range p.Pods {
		slices.Sort(pods)
	}
}

// equal reports whether both contain the same.
func (p LabeledPods) equal(o LabeledPods) bool {
	return p.Unread == o.Unread && slices.Equal(p.Keys, o.Keys) && maps.EqualFunc(p.Pods, o.Pods, slices.Equal[[]string])
}

// Listed reports whether the pods with a label key were listed.
func (p LabeledPods) Listed(key string) bool { return slices.Contains(p.Keys, key) }

// Describe lists the first pods with a label, or returns the zero Message if there are none.
func (p LabeledPods) Describe(key, value string) message.Message {
	return namesOf(p.Pods[federation.Label{Key: key, Value: value}], maxNamedPods)
}

// describeKey lists the first pods with a label key, at most as many as given, or returns the zero Message if there are none.
func (p LabeledPods) describeKey(key string, most int) message.Message {
	var all []string
	for label, pods := range p.Pods {
		if label.Key == key {
			all = append(all, pods...)
		}
	}
	slices.Sort(all)
	return namesOf(slices.Compact(all), most)
}

func namesOf(pods []string, most int) message.Message {
	if len(pods) == 0 {
		return message.Message{}
	}
	return message.NamesOf(pods, most)
}
