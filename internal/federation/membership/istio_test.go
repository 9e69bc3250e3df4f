package membership

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/testenv"
)

// TestJoinPreparesAMemberForIstio checks that a member without Istio gets the kind and only the rights to it, because KubeFed reads
// the kind in every member.
func TestJoinPreparesAMemberForIstio(t *testing.T) {
	ctx := t.Context()
	alone, err := testenv.New(testenv.Options{CRDs: []string{"controllers/testdata/member"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := alone.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := configure(alone); err != nil {
		t.Fatal(err)
	}
	var steps []Step
	j := joining(t, "meshed", &steps)
	j.Member, j.Cluster.Endpoint, j.Cluster.CABundle, j.Istio = alone.Config, alone.Config.Host, alone.Config.CAData, true
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	made := map[string]Outcome{}
	for _, s := range steps {
		made[s.Object] = s.Outcome
	}
	const kind = "CustomResourceDefinition authorizationpolicies.security.istio.io"
	if made[kind] != Created || made["Role istio-system/acp-pusher"] != Created {
		t.Errorf("got steps %v", steps)
	}
	steps = nil
	if err := (&Fix{Host: j.Host, Name: "meshed", Member: alone.Config, Istio: true, OnStep: func(s Step) { steps = append(steps, s) }}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if c := counts(steps); c[Unchanged] != len(steps) {
		t.Errorf("second Run: got steps %v, want all unchanged", steps)
	}

	facts, err := j.Host.Facts(ctx, "meshed")
	if err != nil {
		t.Fatal(err)
	}
	if found := preflight.Assess(facts, preflight.Needs{Kinds: objectkind.All()}); !preflight.Passes(found) {
		t.Errorf("got findings %+v", found)
	}

	token, err := j.Host.token(ctx, kubeFedNamespace, federation.PusherSecretName("meshed"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := federation.RESTConfig(j.Cluster, token)
	if err != nil {
		t.Fatal(err)
	}
	pusher := kubernetes.NewForConfigOrDie(config)
	for _, c := range []struct {
		verb, group, resource, namespace string
		may                              bool
	}{
		{"list", "security.istio.io", "authorizationpolicies", "", true},
		{"update", "security.istio.io", "authorizationpolicies", "istio-system", true},
		{"update", "security.istio.io", "authorizationpolicies", "shop", false},
		{"delete", "", "namespaces", "", false},
		{"update", "", "namespaces", "", false},
		{"create", "", "namespaces", "", false},
	} {
		r, err := pusher.AuthorizationV1().
			SelfSubjectAccessReviews().
			Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb:      c.verb,
					Group:     c.group,
					Resource:  c.resource,
					Namespace: c.namespace,
				},
			}}, metav1.CreateOptions{})
		if err != nil || r.Status.Allowed != c.may {
			t.Errorf("%+v: %v, %v", c, r.Status, err)
		}
	}

	// A kind that Istio installed stays unchanged.
	objects, err := dynamic.NewForConfig(alone.Config)
	if err != nil {
		t.Fatal(err)
	}
	crds := objects.Resource(resources["CustomResourceDefinition"])
	crd, err := crds.Get(ctx, "authorizationpolicies.security.istio.io", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	if crd, err = crds.Update(ctx, crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if after, err := crds.Get(ctx, crd.GetName(), metav1.GetOptions{}); err != nil || after.GetResourceVersion() != crd.GetResourceVersion() {
		t.Errorf("Istio's kind was changed: %v", err)
	}
}
