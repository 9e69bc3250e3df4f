package controllers_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// TestClusterProfileOnlyReports checks, with the adapter's own rights on the host, that what a ClusterProfile says about a member is reported, and
// that neither an unhealthy nor a changed nor a deleted ClusterProfile changes what is placed in the member or what the member has.
func TestClusterProfileOnlyReports(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host", "controllers/testdata/inventory"}, "m1", "m2")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	s := enforcedOn(t, f, "profiles")
	s.untilMemberStatus("a member without a ClusterProfile has no findings about it", "m1", func(m v1alpha1.MemberClusterStatus) bool {
		return m.State == v1alpha1.MemberClusterReady && m.ClusterProfile == "" && !reportsProfile(m)
	})
	has := func() string {
		t.Helper()
		u := s.ccnp()
		if err := s.members["m1"].client.Get(s.ctx, types.NamespacedName{Name: s.object()}, u); err != nil {
			t.Fatal(err)
		}
		return u.GetResourceVersion()
	}
	version := has()

	profile := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": "manager"}}}}
	profile.SetAPIVersion("multicluster.x-k8s.io/v1alpha1")
	profile.SetKind("ClusterProfile")
	profile.SetNamespace(acpNS)
	profile.SetName("m1")
	s.create(profile)
	says := func(healthy, endpoint string) {
		t.Helper()
		profile.Object["status"] = map[string]any{
			"conditions": []any{map[string]any{"type": "ControlPlaneHealthy", "status": healthy, "reason": "Probed", "message": "",
				"lastTransitionTime": metav1.Now().UTC().Format("2006-01-02T15:04:05Z")}},
			"accessProviders": []any{map[string]any{"name": "token", "cluster": map[string]any{"server": endpoint,
				"certificate-authority-data": encode(s.members["m1"].server.Config.CAData)}}},
		}
		if err := s.host.Status().Update(s.ctx, profile); err != nil {
			t.Fatal(err)
		}
	}
	address := "https://" + s.members["m1"].proxy.Address()
	says("True", address)
	c := &unstructured.Unstructured{}
	c.SetAPIVersion("core.kubefed.io/v1beta1")
	c.SetKind("KubeFedCluster")
	c.SetNamespace(fedNS)
	c.SetName("m1")
	s.until("the registration names it", func() string {
		if err := s.host.Get(s.ctx, types.NamespacedName{Namespace: fedNS, Name: "m1"}, c); err != nil {
			t.Fatal(err)
		}
		c.SetAnnotations(map[string]string{federation.AnnotationClusterProfile: acpNS + "/m1"})
		if err := s.host.Update(s.ctx, c); err != nil {
			return err.Error()
		}
		return ""
	})
	remains := func(what string, codes ...string) {
		t.Helper()
		s.untilMemberStatus(what, "m1", func(m v1alpha1.MemberClusterStatus) bool {
			if m.ClusterProfile != acpNS+"/m1" || m.State != v1alpha1.MemberClusterReady || len(codes) == 0 && reportsProfile(m) {
				return false
			}
			return !slices.ContainsFunc(codes, func(code string) bool {
				return !slices.ContainsFunc(m.Findings, func(f v1alpha1.MemberFinding) bool { return f.Code == code && f.Severity == v1alpha1.FindingWarns })
			})
		})
		if problem := s.haveStates(bothRealized); problem != "" {
			t.Errorf("%s: %s", what, problem)
		}
		if _, o := s.federated(); o == nil || !slices.Equal(o.Placement, []string{"m1", "m2"}) {
			t.Errorf("%s: the placement is %+v", what, o)
		}
		if now := has(); now != version {
			t.Errorf("%s: the policy in the member was written", what)
		}
		if r := s.registration("m1"); r.Quarantined || r.Leaving || r.Endpoint != address {
			t.Errorf("%s: the registration is %+v", what, r)
		}
	}
	remains("a healthy cluster")
	says("False", address)
	remains("an unhealthy cluster", preflight.ProfileUnhealthy)
	says("Unknown", "https://elsewhere.example")
	remains("another address", preflight.ProfileHealthUnknown, preflight.ProfileDiffers)
	if err := s.host.Delete(s.ctx, profile); err != nil {
		t.Fatal(err)
	}
	remains("the ClusterProfile is gone", preflight.ProfileMissing)
	docs, err := documents(repositoryFile("controllers/testdata/inventory/clusterprofiles.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range docs {
		if err := s.host.Delete(s.ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	remains("the kind is gone", preflight.ProfileMissing)

	// A grant still reaches the member.
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements = append(p.Spec.Statements, s.statement("two", "889"))
	})
	s.until("the grant is in the unit", func() string { return s.unitHas("one", "two") })
	s.pushUntilStates("the grant is in both", bothRealized)
}

// reportsProfile reports whether a status has a finding about a ClusterProfile.
func reportsProfile(m v1alpha1.MemberClusterStatus) bool {
	return slices.ContainsFunc(m.Findings, func(f v1alpha1.MemberFinding) bool {
		return slices.Contains([]string{preflight.ProfileInvalid, preflight.ProfileMissing, preflight.ProfileUnread, preflight.ProfileLeaving,
			preflight.ProfileUnhealthy, preflight.ProfileHealthUnknown, preflight.ProfileDiffers, preflight.ProfileShared}, f.Code)
	})
}
