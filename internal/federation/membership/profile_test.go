package membership

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/inventory"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// inventoryNamespace is a namespace that every API server has.
const inventoryNamespace = "default"

// describe creates or changes the ClusterProfile of a cluster on the host, as a cluster manager does.
func describe(t *testing.T, name, healthy, endpoint string, ca []byte) types.NamespacedName {
	t.Helper()
	profiles := host(t).dynamic.Resource(inventory.Resource).Namespace(inventoryNamespace)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"clusterManager": map[string]any{"name": "manager"}}}}
	if _, err := profiles.Create(t.Context(), u, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": []any{
			map[string]any{"type": "ControlPlaneHealthy", "status": healthy, "reason": "Probed", "message": "", "lastTransitionTime": metav1.Now()},
		},
		"accessProviders": []any{map[string]any{"name": "token", "cluster": map[string]any{
			"server": endpoint, "certificate-authority-data": base64.StdEncoding.EncodeToString(ca)}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := profiles.Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	return types.NamespacedName{Namespace: inventoryNamespace, Name: name}
}

// from returns a Join with the address in a ClusterProfile.
func from(t *testing.T, member string, profile types.NamespacedName, steps *[]Step) (*Join, error) {
	t.Helper()
	j := joining(t, member, steps)
	p, err := j.Host.Profile(t.Context(), profile)
	if err != nil {
		t.Fatal(err)
	}
	j.Cluster.Endpoint = "https://context.invalid"
	j.Cluster, err = FromProfile(j.Cluster, p, "")
	return j, err
}

func codes(findings []preflight.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code)
	}
	return out
}

// TestJoinFromAClusterProfile checks that a member is registered with the address of its ClusterProfile, that the two are compared from then on,
// and that neither a change nor the removal of the ClusterProfile changes the registration.
func TestJoinFromAClusterProfile(t *testing.T) {
	ctx := t.Context()
	var steps []Step
	server := memberServer.Config
	profile := describe(t, "one", "True", server.Host, server.CAData)
	j, err := from(t, "profiled", profile, &steps)
	if err != nil {
		t.Fatal(err)
	}
	if findings, err := j.Run(ctx); err != nil || len(findings) != 0 {
		t.Fatalf("Run: got error %v, findings %v", err, findings)
	}
	registration := func() (*unstructured.Unstructured, federation.Cluster) {
		t.Helper()
		u, c, err := j.Host.registration(ctx, "profiled")
		if err != nil {
			t.Fatal(err)
		}
		return u, c
	}
	before, c := registration()
	if c.Profile != "default/one" || c.Endpoint != server.Host {
		t.Fatalf("got registration %+v", c)
	}
	found := func() []string {
		t.Helper()
		facts, err := j.Host.Facts(ctx, "profiled")
		if err != nil {
			t.Fatal(err)
		}
		return codes(preflight.Assess(facts, preflight.Needs{}))
	}

	for _, x := range []struct {
		reason string
		change func()
		want   string
	}{
		{"nothing changed", func() {}, ""},
		{"the cluster is not healthy", func() { describe(t, "one", "False", server.Host, server.CAData) }, preflight.ProfileUnhealthy},
		{"its health is not known", func() { describe(t, "one", "Unknown", server.Host, server.CAData) }, preflight.ProfileHealthUnknown},
		{"somebody names another address", func() { describe(t, "one", "True", "https://elsewhere.example", server.CAData) }, preflight.ProfileDiffers},
		{"somebody names another authority", func() { describe(t, "one", "True", server.Host, hostServer.Config.CAData) }, preflight.ProfileDiffers},
		{"it is gone", func() {
			if err := j.Host.dynamic.Resource(inventory.Resource).Namespace(inventoryNamespace).Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, preflight.ProfileMissing},
	} {
		x.change()
		if got := strings.Join(found(), " "); got != x.want {
			t.Errorf("%s: got findings %q, want %q", x.reason, got, x.want)
		}
	}
	if after, _ := registration(); after.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the registration was changed")
	}

	// A later join without the flag keeps the name.
	again := joining(t, "profiled", &steps)
	if findings, err := again.Run(ctx); err != nil || !slices.Equal(codes(findings), []string{preflight.ProfileMissing}) {
		t.Errorf("Run: got error %v, findings %v", err, findings)
	}
	if _, c := registration(); c.Profile != "default/one" {
		t.Errorf("the name of the ClusterProfile was lost: %+v", c)
	}
}

// TestClusterProfilesAndMembersDoNotConflictSilently checks what is refused before anything is written.
func TestClusterProfilesAndMembersDoNotConflictSilently(t *testing.T) {
	ctx := t.Context()
	var steps []Step
	server := memberServer.Config
	first, second := describe(t, "first", "True", server.Host, server.CAData), describe(t, "second", "True", server.Host, server.CAData)
	elsewhere := describe(t, "elsewhere", "True", "https://elsewhere.example", server.CAData)
	forged := describe(t, "forged", "True", "https://127.0.0.1:1", hostServer.Config.CAData)
	if _, err := joining(t, "by-hand", &steps).Run(ctx); err != nil {
		t.Fatal(err)
	}
	j, err := from(t, "linked", first, &steps)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason, member string
		profile        types.NamespacedName
		want           error
	}{
		{"a member with another ClusterProfile", "linked", second, ErrProfileMismatch},
		{"the ClusterProfile of another member", "third", first, ErrProfileMismatch},
		{"a member that is registered with another address", "by-hand", elsewhere, ErrNameTaken},
		{"a ClusterProfile with an authority that is not the member's", "third", forged, ErrProfileMismatch},
	} {
		steps = nil
		j, err := from(t, c.member, c.profile, &steps)
		if err == nil {
			_, err = j.Run(ctx)
		}
		if !errors.Is(err, c.want) || len(steps) != 0 {
			t.Errorf("%s: got error %v, steps %v, want %v", c.reason, err, steps, c.want)
		}
	}
	// A member that was registered by hand is linked later.
	if j, err = from(t, "by-hand", second, &steps); err != nil {
		t.Fatal(err)
	}
	if findings, err := j.Run(ctx); err != nil || len(findings) != 0 {
		t.Errorf("Run: got error %v, findings %v", err, findings)
	}
	// An administrator can annotate two registrations with one ClusterProfile. Both members report it.
	if err := j.Host.annotate(ctx, "by-hand", map[string]any{federation.AnnotationClusterProfile: first.String()}); err != nil {
		t.Fatal(err)
	}
	others, err := j.Host.Others(ctx, "by-hand")
	if err != nil {
		t.Fatal(err)
	}
	facts, err := j.Host.Facts(ctx, "by-hand")
	if err != nil {
		t.Fatal(err)
	}
	if got := codes(preflight.Assess(facts, preflight.Needs{Others: others})); !slices.Contains(got, preflight.ProfileShared) {
		t.Errorf("got findings %v", got)
	}
}

// TestWithoutTheKind checks a host that does not serve ClusterProfiles.
func TestWithoutTheKind(t *testing.T) {
	h, err := NewHost(memberServer.Config, kubeFedNamespace, acpNamespace)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := h.Profiles(t.Context()); err != nil || found != nil {
		t.Errorf("got %v, %v", found, err)
	}
	if got := preflight.ReadProfile(t.Context(), h.dynamic, federation.Cluster{}); got != (preflight.Profile{}) {
		t.Errorf("got %+v", got)
	}
	if got := preflight.ReadProfile(t.Context(), h.dynamic, federation.Cluster{Profile: "fleet/m1"}); !got.Missing {
		t.Errorf("got %+v", got)
	}
}

// TestARepeatedJoinKeepsTheProxy joins again without the flags of the first time: the tokens and the registration need the proxy.
func TestARepeatedJoinKeepsTheProxy(t *testing.T) {
	registered := federation.Cluster{Name: "m1", Profile: "fleet/m1", ProxyURL: "http://proxy:3128"}
	for name, tc := range map[string]struct {
		given federation.Cluster
		proxy string
	}{
		"no flags":                {federation.Cluster{}, "http://proxy:3128"},
		"another proxy":           {federation.Cluster{ProxyURL: "http://other:3128"}, "http://other:3128"},
		"a profile without proxy": {federation.Cluster{Profile: "fleet/m1"}, ""},
	} {
		j := &Join{Cluster: tc.given}
		j.keep(true, registered)
		if j.Cluster.ProxyURL != tc.proxy || j.Cluster.Profile != registered.Profile {
			t.Errorf("%s: proxy %q, profile %q", name, j.Cluster.ProxyURL, j.Cluster.Profile)
		}
	}
}
