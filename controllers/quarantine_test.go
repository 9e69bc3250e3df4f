package controllers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// TestMemberThatWouldStopKubeFedIsQuarantined checks that a member in which KubeFed could not list a kind is excluded from KubeFed, gets no
// new objects, is never realized, and is included again when it serves the kind.
func TestMemberThatWouldStopKubeFedIsQuarantined(t *testing.T) {
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"}, "m1", "m2")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	s := enforcedOn(t, f, "held")
	kind := memberCRD(t, "ciliumcidrgroups.yaml")
	if err := s.members["m2"].client.Delete(s.ctx, kind.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	s.untilStates("it is quarantined", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberQuarantined})
	if m := s.message("m2"); !strings.Contains(m, "ciliumcidrgroups.cilium.io") {
		t.Errorf("the message lacks the reason: %q", m)
	}
	c := s.registration("m2")
	if !c.Quarantined || c.Secret != federation.PusherSecretName("m2") || s.registration("m1").Quarantined {
		t.Fatalf("%+v", c)
	}

	// A revocation stays pending there.
	before := s.protected().Status.Revision
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements[0].Subjects = []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:trip-com:" + s.service + ":sa:app/999")}
	})
	s.until("m1 has the wanted revision", func() string {
		s.push()
		status := s.protected().Status
		if status.Revision == before {
			return "the change is not compiled yet"
		}
		for _, c := range status.Clusters {
			if c.Name == "m1" && (c.State != v1alpha1.MemberRealized || c.DesiredRevision != status.Revision) {
				return fmt.Sprint(c)
			}
		}
		return ""
	})
	s.untilStates("m2 is not reported as realized", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberQuarantined})

	// New objects are not placed there, and existing ones stay placed.
	s.untilPlaced("m1", "m2")
	other := newScenario(t, f, "beside")
	other.protect(v1alpha1.ModeEnforce)
	other.untilPlaced("m1")
	other.until("m2 is reported nevertheless", func() string {
		if len(other.protected().Status.Clusters) != 2 {
			return fmt.Sprint(other.protected().Status.Clusters)
		}
		return ""
	})

	kind = memberCRD(t, "ciliumcidrgroups.yaml")
	s.until("the kind is there again", func() string {
		if err := s.members["m2"].client.Create(s.ctx, kind.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		} else if err != nil && s.registration("m2").Quarantined {
			return "the former definition is not gone yet, or the adapter has not read the new one"
		}
		return ""
	})
	s.until("it is no longer excluded from KubeFed", func() string {
		if c := s.registration("m2"); c.Quarantined || c.Secret != federation.PusherSecretName("m2") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	other.untilPlaced("m1", "m2")
	s.pushUntilStates("it catches up", bothRealized)
}

// memberCRD returns a CustomResourceDefinition that members serve.
func memberCRD(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	docs, err := documents(repositoryFile("controllers/testdata/member/" + file))
	if err != nil {
		t.Fatal(err)
	}
	var found *unstructured.Unstructured
	for _, u := range docs {
		found = u
	}
	return found
}

// setting changes the agents' configuration in a member, and restores it at the end of the test.
func (s *scenario) setting(member, key, value string) {
	s.Helper()
	write := func(change func(map[string]string)) {
		s.Helper()
		c := &corev1.ConfigMap{}
		if err := s.members[member].client.Get(context.Background(), types.NamespacedName{Namespace: "kube-system", Name: "cilium-config"}, c); err != nil {
			s.Fatal(err)
		}
		change(c.Data)
		if err := s.members[member].client.Update(context.Background(), c); err != nil {
			s.Fatal(err)
		}
	}
	var before string
	var had bool
	write(func(data map[string]string) {
		before, had = data[key]
		data[key] = value
	})
	s.Cleanup(func() {
		write(func(data map[string]string) {
			if data[key] = before; !had {
				delete(data, key)
			}
		})
	})
}

// TestEnforceWaitsForLabelsInIdentities checks that no member is realized in Enforce while Cilium leaves the class's label out of
// identities, because a policy that selects by it matches nothing.
func TestEnforceWaitsForLabelsInIdentities(t *testing.T) {
	s := enforced(t, "identities")
	s.setting("m2", "labels", `k8s:com\.trip/appid`)
	s.untilStates("the member is not realized", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending})
	if m := s.message("m2"); !strings.Contains(m, "com.trip/identities") {
		t.Errorf("%q", m)
	}

	late := newScenario(t, shared, "late")
	late.protect(v1alpha1.ModeEnforce)
	late.untilPlaced("m1", "m2")
	late.push()
	late.untilStates("Enforce waits everywhere", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberPending})
	if m := late.message("m1"); !strings.Contains(m, "Enforce is delayed") || !strings.Contains(m, "m2 (") || !strings.Contains(m, "com.trip/late") {
		t.Errorf("%q", m)
	}
	if late.closing() {
		t.Error("it closes members before the labels are known")
	}

	s.setting("m2", "labels", `k8s:app k8s:com\.trip/`)
	s.untilStates("it is closed", bothRealized)
	late.until("Enforce is applied", func() string {
		if !late.closing() {
			return "it is still in Audit"
		}
		return ""
	})
	late.pushUntilStates("both are closed", bothRealized)
}

// closing reports whether the resource's Federated object denies by default.
func (s *scenario) closing() bool {
	s.Helper()
	u, _ := s.federated()
	if u == nil {
		return false
	}
	closed, _, err := unstructured.NestedBool(u.Object, "spec", "template", "spec", "enableDefaultDeny", "ingress")
	if err != nil {
		s.Fatal(err)
	}
	return closed
}

// TestMemberWhoseSettingsVoidPoliciesIsNotRealized checks that a member whose agents ignore ACP's policies, or whose agents are unknown, is
// not realized, neither in Enforce nor in Audit.
func TestMemberWhoseSettingsVoidPoliciesIsNotRealized(t *testing.T) {
	s := enforced(t, "settings")
	oneRealized := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending}
	s.setting("m2", "enable-cilium-clusterwide-network-policy", "false")
	s.untilStates("its agents ignore the policies", oneRealized)
	if m := s.message("m2"); !strings.Contains(m, "enable-cilium-clusterwide-network-policy") {
		t.Errorf("%q", m)
	}
	s.setting("m2", "enable-cilium-clusterwide-network-policy", "true")
	s.untilStates("its agents apply them again", bothRealized)

	agents := &appsv1.DaemonSet{}
	if err := s.members["m2"].client.Get(s.ctx, types.NamespacedName{Namespace: "kube-system", Name: "cilium"}, agents); err != nil {
		t.Fatal(err)
	}
	if err := s.members["m2"].client.Delete(s.ctx, agents); err != nil {
		t.Fatal(err)
	}
	s.untilStates("its agents are unknown", oneRealized)
	agents.ResourceVersion, agents.UID = "", ""
	if err := s.members["m2"].client.Create(s.ctx, agents); err != nil {
		t.Fatal(err)
	}
	s.untilStates("its agents are known again", bothRealized)

	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(r *v1alpha1.ProtectedResource) { r.Spec.Mode = v1alpha1.ModeAudit })
	s.untilStates("the members still have the policy of Enforce", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberPending})
	s.pushUntilStates("it is audited", bothRealized)
	s.setting("m2", "enable-non-default-deny-policies", "false")
	s.untilStates("its agents would deny in Audit", oneRealized)
}
