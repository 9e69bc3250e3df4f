package federation

import (
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

// TestChangesOfUnreadableMember checks that a change of a registration is reported, also while the member cannot be read: it may be
// quarantined, or be placed elsewhere, because of that.
func TestChangesOfUnreadableMember(t *testing.T) {
	f, err := newFleet(FleetConfig{Host: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), KubeFedNamespace: "kube-federation-system",
		CredentialsNamespace: "acp-system", Kind: CiliumPolicy, Log: logr.Discard(), Changed: func(string, string) {}}, parseToken)
	if err != nil {
		t.Fatal(err)
	}
	c := Cluster{Name: "m1", Endpoint: "https://m1.example"}
	for _, tc := range []struct {
		reason  string
		change  func()
		changed bool
	}{
		{"it was registered", func() {}, true},
		{"nothing changed", func() {}, false},
		{"it is quarantined", func() { c.Quarantined = true }, true},
		{"nothing changed since the quarantine", func() {}, false},
		{"a class places its resources by this label", func() { c.Labels = map[string]string{"region": "eu"} }, true},
		{"another engine writes to it", func() { c.Engine = EngineDirect }, true},
	} {
		tc.change()
		var running sync.WaitGroup
		if got := f.adjustMember(t.Context(), &running, c); got != tc.changed {
			t.Errorf("%s: reported %v, want %v", tc.reason, got, tc.changed)
		}
		if o, m := f.observe("m1"); o.Reachable || m != nil || o.Message.IsZero() {
			t.Errorf("%s: without a token it is observed as %+v", tc.reason, o)
		}
	}
}

// TestKubeFedNoticesThatItLostAMember checks that it is reported when KubeFed may not write into a member of another engine any more: until then
// each unit there is Pending. What KubeFed says about its own members matters to nobody.
func TestKubeFedNoticesThatItLostAMember(t *testing.T) {
	f, err := newFleet(FleetConfig{Host: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), KubeFedNamespace: "kube-federation-system",
		CredentialsNamespace: "acp-system", Kind: CiliumPolicy, Log: logr.Discard(), Changed: func(string, string) {}}, parseToken)
	if err != nil {
		t.Fatal(err)
	}
	c := Cluster{Name: "m1", Endpoint: "https://m1.example", Engine: EngineDirect, Secret: DirectSecretName("m1"), ReadyForKubeFed: true}
	m := &member[token]{cluster: c}
	f.members["m1"] = m
	for _, tc := range []struct {
		reason  string
		change  func()
		changed bool
	}{
		{"nothing changed", func() {}, false},
		{"KubeFed has noticed that it has no credential", func() { c.ReadyForKubeFed = false }, true},
		{"nothing changed since then", func() {}, false},
		{"it is a member of KubeFed again", func() { c.Engine, c.Secret = EngineKubeFed, "m1-secret" }, true},
		{"KubeFed reaches it", func() { c.ReadyForKubeFed = true }, false},
	} {
		tc.change()
		var running sync.WaitGroup
		if got := f.adjustMember(t.Context(), &running, c); got != tc.changed {
			t.Errorf("%s: reported %v, want %v", tc.reason, got, tc.changed)
		}
		if got := m.cluster.SharedWithKubeFed(); got != c.SharedWithKubeFed() {
			t.Errorf("%s: shared with KubeFed: %v, want %v", tc.reason, got, c.SharedWithKubeFed())
		}
	}
}

// TestClustersAreKept checks that the list of members follows the registrations, that what a caller got stays as it was, and that nothing is copied:
// the list is asked for at every event in a member, and grows with the fleet.
func TestClustersAreKept(t *testing.T) {
	f := &fleet[Observed]{clusters: NewWatch[Cluster](nil, "kubefedclusters", logr.Discard(), nil, nil)}
	register := func(name, endpoint, version string) {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetName(name)
		u.SetResourceVersion(version)
		_ = f.clusters.store(u, Cluster{Name: name, Endpoint: endpoint}, false)
	}
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range f.Clusters() {
			got = append(got, c.Name+c.Endpoint)
		}
		if !slices.Equal(got, want) {
			t.Errorf("members %v, want %v", got, want)
		}
	}
	expect()
	register("b", "", "1")
	register("a", "", "2")
	expect("a", "b")
	before := f.Clusters()
	_ = append(before, Cluster{Name: "c"})
	expect("a", "b")
	register("b", "/new", "3")
	expect("a", "b/new")
	if before[1].Endpoint != "" {
		t.Error("a list that was returned before has changed")
	}
	if n := testing.AllocsPerRun(100, func() { f.Clusters() }); n > 0 {
		t.Errorf("asking for the members allocates %v times", n)
	}
	f.clusters.mu.Lock()
	f.clusters.unset("a")
	f.clusters.mu.Unlock()
	expect("b/new")
}
