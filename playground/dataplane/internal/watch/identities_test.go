package watch

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
)

// TestIdentitiesArePublished checks that each identity of the own member's pods has an object as long as one of these pods exists.
func TestIdentitiesArePublished(t *testing.T) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		identityResource: "CiliumIdentityList",
	}).
		Resource(identityResource)
	m, err := mesh.New([]string{"m1", "m2"})
	if err != nil {
		t.Fatal(err)
	}
	p := newIdentities("m1", client, m, slog.New(slog.DiscardHandler))
	if _, err := client.Create(t.Context(), object("70000", map[string]any{"k8s:left": "over"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.queue.Add("70000")
	drain := func() {
		t.Helper()
		for p.queue.Len() > 0 {
			name, _ := p.queue.Get()
			if err := p.publish(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			p.queue.Done(name)
		}
	}
	apps := func() map[string]int {
		t.Helper()
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int{}
		for i := range list.Items {
			labels, _ := list.Items[i].Object["security-labels"].(map[string]any)
			app, _ := labels["k8s:com.trip/appid"].(string)
			out[app]++
			if list.Items[i].GetLabels()[namespaceLabel] != "shop" {
				t.Errorf("identity %s has labels %v", list.Items[i].GetName(), list.Items[i].GetLabels())
			}
		}
		return out
	}
	pod := func(cluster, name, app string) {
		t.Helper()
		update, err := m.Upsert(mesh.Pod{Cluster: cluster, Namespace: "shop", Name: name, IP: "10.1.0.1", Labels: map[string]string{"com.trip/appid": app}})
		if err != nil {
			t.Fatal(err)
		}
		p.changed(update)
	}
	pod("m1", "a", "888")
	pod("m1", "b", "888")
	pod("m1", "c", "889")
	pod("m2", "d", "777")
	drain()
	if diff := cmp.Diff(map[string]int{"888": 1, "889": 1}, apps()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p.changed(m.Delete("m1", "shop", "a"))
	p.changed(m.Delete("m1", "shop", "c"))
	drain()
	if diff := cmp.Diff(map[string]int{"888": 1}, apps()); diff != "" {
		t.Errorf("after pods went: -want +got:\n%s", diff)
	}
}
