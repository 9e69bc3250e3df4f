package controllers_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	if !c.Held || c.Secret != federation.PusherSecretName("m2") || s.registration("m1").Held {
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
		} else if err != nil && s.registration("m2").Held {
			return "the one before is still going, or the adapter has not seen it"
		}
		return ""
	})
	s.until("KubeFed has it again", func() string {
		if c := s.registration("m2"); c.Held || c.Secret != federation.PusherSecretName("m2") {
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

// While Cilium keeps the class's label out of identities a policy over it matches nothing, so nothing is said to be enforced.
func TestEnforceWaitsForTheLabelsInIdentities(t *testing.T) {
	s := enforced(t, "identities")
	cilium := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium-config"}, Data: map[string]string{"labels": "k8s:app"}}
	if err := s.members["m2"].client.Create(s.ctx, cilium); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.members["m2"].client.Delete(s.ctx, cilium); err != nil {
			t.Error(err)
		}
	}()
	s.untilStates("the door stands open, and that is told", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending})
	if m := s.message("m2"); !strings.Contains(m, "com.trip/identities") {
		t.Errorf("%q", m)
	}
	cilium.Data["labels"] = `k8s:app k8s:com\.trip/`
	if err := s.members["m2"].client.Update(s.ctx, cilium); err != nil {
		t.Fatal(err)
	}
	s.untilStates("it is closed", bothRealized)
}
