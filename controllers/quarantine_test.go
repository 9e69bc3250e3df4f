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

// A member that KubeFed could not list a kind in is kept from KubeFed, gets no new objects, is never realized, and comes
// back by itself.
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
		t.Errorf("the message does not say why: %q", m)
	}
	c := s.registration("m2")
	if !c.Quarantined || c.Secret != federation.PusherSecretName("m2") || s.registration("m1").Quarantined {
		t.Fatalf("%+v", c)
	}

	// A revocation waits for it.
	change(s, s.host, &v1alpha1.AccessControlPolicy{}, s.service, func(p *v1alpha1.AccessControlPolicy) {
		p.Spec.Statements[0].Subjects = []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:trip-com:" + s.service + ":sa:app/999")}
	})
	s.until("m1 has what is wanted now", func() string {
		s.push()
		for _, c := range s.protected().Status.Clusters {
			if c.Name == "m1" && (c.State != v1alpha1.MemberRealized || c.DesiredRevision != s.protected().Status.Revision) {
				return fmt.Sprint(c)
			}
		}
		return ""
	})
	s.untilStates("m2 is not said to have it", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberQuarantined})

	// What is new is not placed there, and what was there stays placed.
	s.untilPlaced("m1", "m2")
	other := begin(t, f, "beside")
	other.protect(v1alpha1.ModeEnforce)
	other.untilPlaced("m1")
	other.until("m2 is told of, all the same", func() string {
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
			return "the one before is still going, or the adapter has not seen it"
		}
		return ""
	})
	s.until("KubeFed has it again", func() string {
		if c := s.registration("m2"); c.Quarantined || c.Secret != federation.PusherSecretName("m2") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	other.untilPlaced("m1", "m2")
	s.push()
	s.untilStates("it catches up", bothRealized)
}

// memberCRD is a definition that members serve.
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

// setting changes the agents' configuration in a member, and takes the change back at the end of the test.
func (s *story) setting(member, key, value string) {
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

// While Cilium keeps the class's label out of identities a policy over it matches nothing, so nothing is said to be enforced.
func TestEnforceWaitsForTheLabelsInIdentities(t *testing.T) {
	s := enforced(t, "identities")
	s.setting("m2", "labels", `k8s:com\.trip/appid`)
	s.untilStates("the door stands open, and that is told", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending})
	if m := s.message("m2"); !strings.Contains(m, "com.trip/identities") {
		t.Errorf("%q", m)
	}

	late := begin(t, shared, "late")
	late.protect(v1alpha1.ModeEnforce)
	late.untilPlaced("m1", "m2")
	late.push()
	late.untilStates("Enforce waits everywhere", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberPending})
	if m := late.message("m1"); !strings.Contains(m, "Enforce is delayed") || !strings.Contains(m, "m2 (") || !strings.Contains(m, "com.trip/late") {
		t.Errorf("%q", m)
	}
	if late.closing() {
		t.Error("it closes members already")
	}

	s.setting("m2", "labels", `k8s:app k8s:com\.trip/`)
	s.untilStates("it is closed", bothRealized)
	late.until("Enforce goes on", func() string {
		late.push()
		if !late.closing() {
			return "it is in Audit still"
		}
		return ""
	})
	late.untilStates("both are closed", bothRealized)
}

// closing tells whether the resource's Federated object closes the members.
func (s *story) closing() bool {
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

// A member whose agents ignore what is pushed, or of whose agents nothing is known, is never realized, in Enforce and in Audit.
func TestNoMemberIsRealizedWhoseSettingsVoidPolicies(t *testing.T) {
	s := enforced(t, "settings")
	oneRealized := map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending}
	s.setting("m2", "enable-cilium-clusterwide-network-policy", "false")
	s.untilStates("its agents ignore what is pushed", oneRealized)
	if m := s.message("m2"); !strings.Contains(m, "enable-cilium-clusterwide-network-policy") {
		t.Errorf("%q", m)
	}
	s.setting("m2", "enable-cilium-clusterwide-network-policy", "true")
	s.untilStates("they read it again", bothRealized)

	agents := &appsv1.DaemonSet{}
	if err := s.members["m2"].client.Get(s.ctx, types.NamespacedName{Namespace: "kube-system", Name: "cilium"}, agents); err != nil {
		t.Fatal(err)
	}
	if err := s.members["m2"].client.Delete(s.ctx, agents); err != nil {
		t.Fatal(err)
	}
	s.untilStates("nothing is known of its agents", oneRealized)
	agents.ResourceVersion, agents.UID = "", ""
	if err := s.members["m2"].client.Create(s.ctx, agents); err != nil {
		t.Fatal(err)
	}
	s.untilStates("they are known again", bothRealized)

	change(s, s.host, &v1alpha1.ProtectedResource{}, s.service, func(r *v1alpha1.ProtectedResource) { r.Spec.Mode = v1alpha1.ModeAudit })
	s.untilStates("the members have what Enforce was", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberPending, "m2": v1alpha1.MemberPending})
	s.push()
	s.untilStates("it is audited", bothRealized)
	s.setting("m2", "enable-non-default-deny-policies", "false")
	s.untilStates("an audit that closes is none", oneRealized)
}
