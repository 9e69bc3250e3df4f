package preflight

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/inventory"
	"github.com/acp-io/acp/internal/message"
)

// TestProfileFindings checks that whatever an inventory says is reported and is never more than a warning, which neither quarantines a member
// nor makes its policies count as not enforced.
func TestProfileFindings(t *testing.T) {
	const name = "fleet/m1"
	fine := Profile{Name: name, Healthy: metav1.ConditionTrue, Same: true, Manager: "manager"}
	with := func(change func(*Profile)) Profile {
		p := fine
		change(&p)
		return p
	}
	for _, c := range []struct {
		reason  string
		profile Profile
		others  []Facts
		want    []string
	}{
		{reason: "no profile", others: []Facts{{Member: "m2"}}},
		{reason: "a healthy cluster", profile: fine, others: []Facts{{Member: "m1", Profile: fine}, {Member: "m2", Profile: Profile{Name: "fleet/m2"}}}},
		{reason: "an unhealthy cluster", profile: with(func(p *Profile) { p.Healthy, p.Reason = metav1.ConditionFalse, "NoLease" }),
			want: []string{ProfileUnhealthy}},
		{reason: "an unknown health", profile: with(func(p *Profile) { p.Healthy = metav1.ConditionUnknown }), want: []string{ProfileHealthUnknown}},
		{reason: "no health", profile: with(func(p *Profile) { p.Healthy = "" }), want: []string{ProfileHealthUnknown}},
		{reason: "another address", profile: with(func(p *Profile) { p.Same = false }), want: []string{ProfileDiffers}},
		{reason: "an unhealthy cluster with another address that leaves",
			profile: with(func(p *Profile) { p.Same, p.Deleting, p.Healthy = false, true, metav1.ConditionFalse }),
			want:    []string{ProfileLeaving, ProfileUnhealthy, ProfileDiffers}},
		{reason: "a profile that is gone", profile: Profile{Name: name, Missing: true}, want: []string{ProfileMissing}},
		{reason: "a profile that cannot be read", profile: Profile{Name: name, Unread: message.Verbatim("forbidden")}, want: []string{ProfileUnread}},
		{reason: "a name that is none", profile: Profile{Name: "m1", Invalid: true},
			others: []Facts{{Member: "m2", Profile: Profile{Name: "m1", Invalid: true}}}, want: []string{ProfileInvalid}},
		{reason: "a profile of two members", profile: fine, others: []Facts{{Member: "m2", Profile: fine}}, want: []string{ProfileShared}},
	} {
		for _, unreachable := range []string{"", "no route"} {
			f, n := healthy(), needs
			f.Member, f.Profile, n.Others = "m1", c.profile, c.others
			f.Mesh = federation.NoMesh
			if unreachable != "" {
				f.Unreachable, f.Kinds = unreachable, nil
			}
			var got []string
			findings := Assess(f, n)
			for _, x := range findings {
				if x.Code == Unreachable {
					continue
				}
				if got = append(got, x.Code); x.Severity != Warns || x.Invalidates() != 0 || x.Message.IsZero() || x.Remedy.IsZero() {
					t.Errorf("%s: %+v", c.reason, x)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (unreachable: %q): %s", c.reason, unreachable, d)
			}
			if Passes(findings) == (unreachable != "") {
				t.Errorf("%s: the profile decides whether the member passes", c.reason)
			}
		}
	}
}

// TestMalformedProfile: a ClusterProfile that cannot be parsed has to be corrected, and no right is missing.
func TestMalformedProfile(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": inventory.Resource.GroupVersion().String(), "kind": "ClusterProfile",
		"metadata": map[string]any{"namespace": "fleet", "name": "m1"},
		"status": map[string]any{"accessProviders": []any{
			map[string]any{"name": "p", "cluster": map[string]any{"certificate-authority-data": "not base64!"}},
		}},
	}}
	host := fake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(),
		map[schema.GroupVersionResource]string{inventory.Resource: "ClusterProfileList"},
		u,
	)
	f := healthy()
	f.Member, f.Profile, f.Mesh = "m1", ReadProfile(t.Context(), host, federation.Cluster{Name: "m1", Profile: "fleet/m1"}), federation.NoMesh
	k := slices.IndexFunc(Assess(f, needs), func(x Finding) bool { return x.Code == ProfileUnread })
	if k < 0 {
		t.Fatalf("the profile %+v has no finding", f.Profile)
	}
	if remedy := Assess(f, needs)[k].Remedy; remedy.Code != "remedy.profile-malformed" {
		t.Errorf("the remedy is %s", remedy.Code)
	}
}
