package mesh

import (
	"testing"

	"github.com/cilium/cilium/pkg/identity"
	"github.com/google/go-cmp/cmp"
)

func aPod(cluster, name, app, ip string) Pod {
	return Pod{Cluster: cluster, Namespace: "payments", Name: name, Labels: map[string]string{"com.trip/appid": app}, IP: ip, Node: "n1"}
}

func newMesh(t *testing.T) *Mesh {
	t.Helper()
	m, err := New([]string{"m2", "m1"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func upsert(t *testing.T, m *Mesh, p Pod) IdentityUpdate {
	t.Helper()
	u, err := m.Upsert(p)
	if err != nil {
		t.Fatalf("Upsert: %v", err)
	}
	return u
}

func one(t *testing.T, m *Mesh, name string) Endpoint {
	t.Helper()
	found := m.Select(func(ep Endpoint) bool { return ep.Name == name })
	if len(found) != 1 {
		t.Fatalf("%d endpoints called %s, want 1", len(found), name)
	}
	return found[0]
}

func TestIdentityLabels(t *testing.T) {
	want := []string{
		"k8s:com.trip/appid=888",
		"k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name=payments",
		"k8s:io.cilium.k8s.policy.cluster=m1",
		"k8s:io.cilium.k8s.policy.serviceaccount=default",
		"k8s:io.kubernetes.pod.namespace=payments",
	}
	if diff := cmp.Diff(want, IdentityLabels(aPod("m1", "a", "888", "10.1.0.1")).GetModel()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestAllocation(t *testing.T) {
	m, other := newMesh(t), newMesh(t)
	first := upsert(t, m, aPod("m1", "a", "888", "10.1.0.1"))
	if len(first.Added) != 1 || len(first.Deleted) != 0 {
		t.Fatalf("the first pod of a label set must add one identity, got %v", first)
	}
	second := upsert(t, m, aPod("m1", "b", "888", "10.1.0.2"))
	if len(second.Added)+len(second.Deleted) != 0 {
		t.Errorf("pods with the same labels share an identity, got %v", second)
	}
	upsert(t, m, aPod("m2", "c", "888", "10.2.0.1"))
	a, b, c := one(t, m, "a").Identity, one(t, m, "b").Identity, one(t, m, "c").Identity
	if a != b {
		t.Error("pods with the same labels have different identities")
	}
	if a.ID == c.ID || a.ID>>clusterShift != 1 || c.ID>>clusterShift != 2 {
		t.Errorf("the cluster's id belongs into the upper bits: m1 %d, m2 %d", a.ID, c.ID)
	}
	if low := uint32(a.ID) & (1<<clusterShift - 1); low < firstLocal {
		t.Errorf("identity %d falls into the reserved numbers", a.ID)
	}
	// Another emulator, which received the pods in another order, must allocate the same identities.
	upsert(t, other, aPod("m2", "c", "888", "10.2.0.1"))
	upsert(t, other, aPod("m1", "b", "888", "10.1.0.2"))
	if got := one(t, other, "b").Identity.ID; got != a.ID {
		t.Errorf("identity %d in one mesh, %d in the other", a.ID, got)
	}
}

func TestIdentityLifecycle(t *testing.T) {
	m := newMesh(t)
	if u := upsert(t, m, aPod("m1", "a", "888", "")); len(u.Added) != 0 {
		t.Errorf("a pod without address has no identity yet, got %v", u)
	}
	upsert(t, m, aPod("m1", "a", "888", "10.1.0.1"))
	if u := upsert(t, m, aPod("m1", "a", "888", "10.1.0.1")); len(u.Added)+len(u.Deleted) != 0 {
		t.Errorf("an unchanged pod changes nothing, got %v", u)
	}
	if u := upsert(t, m, aPod("m1", "a", "889", "10.1.0.1")); len(u.Added) != 1 || len(u.Deleted) != 1 {
		t.Errorf("a relabelled pod leaves one identity and takes another, got %v", u)
	}
	if u := m.Delete("m1", "payments", "a"); len(u.Deleted) != 1 {
		t.Errorf("the last pod takes the identity with it, got %v", u)
	}
	if u := m.Delete("m1", "payments", "a"); len(u.Deleted) != 0 {
		t.Errorf("deleting twice changes nothing, got %v", u)
	}
	if _, err := m.Upsert(aPod("m9", "x", "1", "10.9.0.1")); err == nil {
		t.Error("a pod of an unknown cluster must be an error")
	}
}

func TestCollision(t *testing.T) {
	m := newMesh(t)
	upsert(t, m, aPod("m1", "a", "888", "10.1.0.1"))
	taken := m.byID[one(t, m, "a").Identity.ID]
	// Simulate a collision of the labels of 889 with the number of 888.
	u := IdentityUpdate{Added: identity.IdentityMap{}, Deleted: identity.IdentityMap{}}
	delete(m.byLabels, taken.key)
	id, err := m.allocate(1, IdentityLabels(aPod("m1", "a", "888", "10.1.0.1")), u)
	if err != nil || id.ID == taken.id.ID {
		t.Errorf("a taken number must not be given twice: %v, %v", id, err)
	}
}
