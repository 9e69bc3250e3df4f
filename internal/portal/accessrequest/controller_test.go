package accessrequest

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/deploy"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

// TestControllerFollowsTheHostCluster: with the role of deploy/access-requests alone, the controller notices objects, labels of
// namespaces, decisions and tickets whose objects do not exist; and the admission policies hold for people.
func TestControllerFollowsTheHostCluster(t *testing.T) {
	config, scheme := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/crds"}}).Config, newScheme()
	admin, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	text, err := deploy.Render("access-requests", deploy.Names{})
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(text, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			if err := admin.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := newWorldOn(t, admin, "")
	as := func(user string) *rest.Config {
		c := rest.CopyConfig(config)
		c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
		return c
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "eve"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "acp-portal-access-requests-edit"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "eve"}}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "namespace-editor"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "patch", "update"}}}}
	editor := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "namespace-editor"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
		Kind: "ClusterRole", Name: "namespace-editor"}, Subjects: binding.Subjects}
	for _, o := range []client.Object{binding, role, editor} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	eve, err := client.New(as("eve"), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	object := func(by string) *v1alpha1.AccessRequest {
		return &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "carts"}, Spec: v1alpha1.AccessRequestSpec{Reason: "carts",
			RequestedBy: by, Access: []v1alpha1.RequestedAccess{{Resource: redis, Actions: []v1alpha1.Action{"redis:connect"}}}}}
	}
	for _, by := range []string{"", "bob"} {
		eventually.True(t, "the admission policy is in force", func() bool {
			err := eve.Create(t.Context(), object(by), client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), "spec.requestedBy must be")
		})
	}
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"acp.io/app-id":"bank"}}}`))
	eventually.True(t, "a user without the right cannot label the namespace", func() bool {
		err := eve.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, label, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "verb assign")
	})

	// The ticket of an object that does not exist was submitted by a portal that ended at once.
	orphan := approval.Request{Kind: approval.KindGrant, Reason: "queue", IdempotencyKey: "uid-of-before/1",
		Items: []approval.RequestItem{{Application: "shop", Resource: "queue", Actions: []string{"redis:connect"}}}}
	if _, err := w.svc.Submit(t.Context(), approval.Program(approval.AccessRequester(w.namespace, "queue"), "shop", ""), orphan); err != nil {
		t.Fatal(err)
	}
	controller, err := NewController(as("system:serviceaccount:acp-system:acp-portal"), w.r.Config)
	if err != nil {
		t.Fatal(err)
	}
	w.changed = controller.Notice
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { controller.Run(ctx, w.svc); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	if err := eve.Create(t.Context(), object("eve")); err != nil {
		t.Fatal(err)
	}
	has := func(kind, status, reason string) func() bool {
		return func() bool {
			c := meta.FindStatusCondition(w.get("carts").Status.Conditions, kind)
			return c != nil && string(c.Status) == status && c.Reason == reason
		}
	}
	eventually.True(t, "the refusal is reported", has("Accepted", "False", v1alpha1.ReasonNoApplication))
	w.label(`"shop"`)
	eventually.True(t, "the label is read", has("Accepted", "True", v1alpha1.ReasonSubmitted))
	eventually.True(t, "the ticket without an object is withdrawn", func() bool { return w.states() == "withdrawn pending" })
	w.decide(2, true, "alice", "bob")
	eventually.True(t, "the approval is read", has("Approved", "True", v1alpha1.ReasonApproved))
	if err := eve.Delete(t.Context(), object("eve")); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the object is released", func() bool {
		return apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(object("")), object("")))
	})
	if w.states() != "withdrawn revoking" {
		t.Errorf("tickets %s", w.states())
	}
}
