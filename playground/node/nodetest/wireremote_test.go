package nodetest

import (
	"fmt"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
)

// remoteSources are pods of the cluster m2, and what is in the member but not on the node.
func remoteSources() []ciliumtest.Source {
	var out []ciliumtest.Source
	for _, labels := range clientLabels() {
		out = append(out, ciliumtest.Source{Cluster: "m2", Labels: labels})
	}
	return append(out,
		ciliumtest.Source{Cluster: "m2", NoNamespace: true, Labels: map[string]string{ciliumtest.AppKey: "888"}},
		ciliumtest.Source{Cluster: ciliumtest.Here, NoNamespace: true, Labels: map[string]string{ciliumtest.AppKey: "889"}},
		ciliumtest.Source{Cluster: ciliumtest.Here, Labels: map[string]string{ciliumtest.AppKey: "team-7", ciliumtest.SvcKey: "pay"}})
}

// remoteNumber returns the number of the identity of a remote source. Those of the node's own pods are allocated from the lowest number on.
func remoteNumber(i int, s ciliumtest.Source) int64 {
	number := map[string]int64{ciliumtest.Here: 1, "m2": 2}[s.Cluster]
	return number<<identityBits | int64(50_000+i)
}

func remoteIdentity(i int, s ciliumtest.Source) *unstructured.Unstructured {
	labels := map[string]any{"k8s:io.cilium.k8s.policy.cluster": s.Cluster}
	for k, v := range s.Labels {
		labels["k8s:"+k] = v
	}
	if !s.NoNamespace {
		labels["k8s:io.kubernetes.pod.namespace"] = "default"
		labels["k8s:io.cilium.k8s.policy.serviceaccount"] = "default"
	}
	return ciliumObject("CiliumIdentity", "", strconv.FormatInt(remoteNumber(i, s), 10), map[string]any{"security-labels": labels})
}

func remoteEndpoint(i int, s ciliumtest.Source, address string) *unstructured.Unstructured {
	return ciliumObject("CiliumEndpoint", "default", fmt.Sprintf("elsewhere-%d", i), map[string]any{"status": map[string]any{
		"identity":   map[string]any{"id": remoteNumber(i, s)},
		"networking": map[string]any{"addressing": []any{map[string]any{"ipv4": address}}, "node": otherNode},
		"state":      "ready",
	}})
}

func ciliumObject(kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion("cilium.io/v2")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// ensureRemote creates the objects of remote endpoints that are missing: Cilium's operator removes those without a pod every few minutes.
func (m *wireMember) ensureRemote(t *testing.T) {
	t.Helper()
	for _, resource := range []schema.GroupVersionResource{ciliumNodes, ciliumIdentities, ciliumEndpoints} {
		have, err := m.objects.Resource(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, o := range have.Items {
			names[o.GetName()] = true
		}
		for _, o := range m.remote[resource] {
			if names[o.GetName()] {
				continue
			}
			client := dynamic.ResourceInterface(m.objects.Resource(resource))
			if o.GetNamespace() != "" {
				client = m.objects.Resource(resource).Namespace(o.GetNamespace())
			}
			if _, err := client.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
				t.Fatalf("create %s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
}
