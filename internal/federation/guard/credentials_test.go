package guard

import (
	"context"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	bindings        = schema.GroupVersionResource{Version: "v1", Resource: "bindings"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	revisions       = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
)

// TestClassLabelsAreGuardedInEverySubresource checks that labels of a pod are guarded in all requests that can write
// them.
func TestClassLabelsAreGuardedInEverySubresource(t *testing.T) {
	m := newMember(t)
	ctx := t.Context()
	const key = "com.trip/appid"
	m.grant(
		rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "deployer"},
		"app-888",
		rbacv1.PolicyRule{
			APIGroups:     []string{LabelGroup},
			Resources:     []string{LabelResource},
			Verbs:         []string{LabelVerb},
			ResourceNames: []string{key + "=888"},
		},
	)
	spec := template(nil)["spec"].(map[string]any)
	for _, name := range []string{"plain", "mallory", "deployer", "other", "kubelet"} {
		if _, err := m.admin.Resource(pods).Namespace("shop").Create(ctx, object(pods, "shop", name, spec), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	binding := func(pod, value string) *unstructured.Unstructured {
		b := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Binding", "target": map[string]any{"kind": "Node", "name": "n1"}}}
		b.SetName(pod)
		if value != "" {
			b.SetLabels(map[string]string{key: value})
		}
		return b
	}
	status := func(pod, value string) func(context.Context, dynamic.Interface) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}},"status":{"message":"x"}}`, key, value)
		if value == "" {
			patch = []byte(`{"status":{"message":"x"}}`)
		}
		return func(ctx context.Context, c dynamic.Interface) error {
			_, err := c.Resource(pods).Namespace("shop").Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			return err
		}
	}
	bind := func(pod, value string) func(context.Context, dynamic.Interface) error {
		return func(ctx context.Context, c dynamic.Interface) error {
			_, err := c.Resource(pods).Namespace("shop").Create(ctx, binding(pod, value), metav1.CreateOptions{}, "binding")
			return err
		}
	}
	bindAtOnce := func(pod, value string) func(context.Context, dynamic.Interface) error {
		return func(ctx context.Context, c dynamic.Interface) error {
			_, err := c.Resource(bindings).Namespace("shop").Create(ctx, binding(pod, value), metav1.CreateOptions{})
			return err
		}
	}
	revise := func(name, value string) func(context.Context, dynamic.Interface) error {
		r := &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": map[string]any{"name": name}, "revision": int64(7),
				"data": map[string]any{"spec": map[string]any{"template": template(map[string]any{key: value})}}},
		}
		return func(ctx context.Context, c dynamic.Interface) error {
			_, err := c.Resource(revisions).Namespace("shop").Create(ctx, r, metav1.CreateOptions{})
			return err
		}
	}
	m.guard(Credentials{Labels: []string{key}}, func(ctx context.Context) error {
		_, err := m.as("mallory").
			Resource(pods).
			Namespace("shop").
			Create(ctx, object(pods, "shop", "p", spec, key+"=888"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	mallory, deployer := m.as("mallory"), m.as("deployer")
	controller := m.as("system:serviceaccount:kube-system:statefulset-controller", "system:serviceaccounts:kube-system")
	for _, c := range []struct {
		reason string
		who    dynamic.Interface
		do     func(context.Context, dynamic.Interface) error
		want   bool
	}{
		{"by status without the right", mallory, status("mallory", "888"), false},
		{"by binding without the right", mallory, bind("mallory", "888"), false},
		{"by the older binding without the right", mallory, bindAtOnce("mallory", "888"), false},
		{"by a revision without the right", mallory, revise("r1", "888"), false},
		{"by status with the right", deployer, status("deployer", "888"), true},
		{"by status with the right to another value", deployer, status("other", "999"), false},
		{"by a revision with the right", deployer, revise("r2", "888"), true},
		{"the controllers write revisions", controller, revise("r3", "999"), true},
		{"a kubelet reports a status", m.as("system:node:n1", "system:nodes"), status("kubelet", ""), true},
		{"a scheduler binds", m.as("system:kube-scheduler"), bind("kubelet", ""), true},
		{"the older binding without labels", m.as("system:kube-scheduler"), bindAtOnce("plain", ""), true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if err := c.do(ctx, c.who); (err == nil) != c.want || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("%v, want allowed: %v", err, c.want)
			}
		})
	}
	for name, want := range map[string]string{"mallory": "", "other": "", "deployer": "888"} {
		got, err := m.admin.Resource(pods).Namespace("shop").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.GetLabels()[key] != want {
			t.Errorf("pod %s has the label %q, want %q", name, got.GetLabels()[key], want)
		}
	}
}

// TestClassServiceAccountsNeedARight checks service accounts: Istio identifies a client by the account's name in every
// namespace.
func TestClassServiceAccountsNeedARight(t *testing.T) {
	m := newMember(t)
	ctx := t.Context()
	m.grant(
		rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "deployer"},
		"app-888",
		rbacv1.PolicyRule{
			APIGroups:     []string{LabelGroup},
			Resources:     []string{AccountResource},
			Verbs:         []string{AccountVerb},
			ResourceNames: []string{"app-888"},
		},
	)
	account := func(name, generate string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}}
		u.SetName(name)
		u.SetGenerateName(generate)
		u.SetNamespace("shop")
		return u
	}
	for _, name := range []string{"app-888", "app-999", "default", "web"} {
		if _, err := m.admin.Resource(serviceAccounts).Namespace("shop").Create(ctx, account(name, ""), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	running := func(name string) map[string]any {
		spec := template(nil)["spec"].(map[string]any)
		if name != "" {
			spec["serviceAccountName"] = name
		}
		return spec
	}
	for _, name := range []string{"app-999"} {
		if _, err := m.admin.Resource(pods).
			Namespace("shop").
			Create(ctx, object(pods, "shop", "runs-as-"+name, running(name)), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	create := func(gvr schema.GroupVersionResource, o *unstructured.Unstructured, sub ...string) func(dynamic.Interface) error {
		return func(c dynamic.Interface) error {
			_, err := c.Resource(gvr).Namespace("shop").Create(ctx, o, dry, sub...)
			return err
		}
	}
	workload := func(spec map[string]any) *unstructured.Unstructured {
		spec["restartPolicy"] = "Always"
		return object(deployments, "shop", "d", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x"}}, "spec": spec}})
	}
	older := running("")
	older["serviceAccount"] = "app-888"
	token := func(name string) func(dynamic.Interface) error {
		request := &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": map[string]any{"audiences": []any{"istio-ca"}}},
		}
		request.SetName(name)
		return func(c dynamic.Interface) error {
			_, err := c.Resource(serviceAccounts).Namespace("shop").Create(ctx, request, metav1.CreateOptions{}, "token")
			return err
		}
	}
	label := func(c dynamic.Interface) error {
		_, err := c.Resource(pods).
			Namespace("shop").
			Patch(ctx, "runs-as-app-999", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		return err
	}
	m.guard(Credentials{Labels: []string{"com.trip/appid"}, ServiceAccounts: []string{"app-{id}"}}, func(context.Context) error {
		return create(serviceAccounts, account("app-1", ""))(m.as("mallory"))
	})
	who := map[string]dynamic.Interface{"mallory": m.as("mallory"), "deployer": m.as("deployer"),
		"controller": m.as("system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccounts:kube-system")}
	for _, c := range []struct {
		reason  string
		do      func(dynamic.Interface) error
		refused []string
	}{
		{"an account that is no client's", create(serviceAccounts, account("builder", "")), nil},
		{"an account of a client", create(serviceAccounts, account("app-777", "")), []string{"mallory", "deployer"}},
		{"a generated name", create(serviceAccounts, account("", "app-")), []string{"mallory", "deployer"}},
		{"a pod as nobody in particular", create(pods, object(pods, "shop", "p", running(""))), nil},
		{"a pod as another account", create(pods, object(pods, "shop", "p", running("web"))), nil},
		{"a pod as a client", create(pods, object(pods, "shop", "p", running("app-888"))), []string{"mallory"}},
		{"a pod as another client", create(pods, object(pods, "shop", "p", running("app-999"))), []string{"mallory", "deployer"}},
		{"a workload as a client", create(deployments, workload(running("app-888"))), []string{"mallory"}},
		{"a workload by the older field", create(deployments, workload(older)), []string{"mallory"}},
		{"a cron job as a client", create(cronJobs, object(cronJobs, "shop", "c", map[string]any{"schedule": "0 0 * * *",
			"jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": running("app-888")}}}})), []string{"mallory"}},
		{"a token of a client", token("app-888"), []string{"mallory"}},
		{"a token of another account", token("web"), nil},
		{"another label of a client's pod", label, nil},
	} {
		for name, client := range who {
			t.Run(c.reason+" as "+name, func(t *testing.T) {
				refused := slices.Contains(c.refused, name)
				if err := c.do(client); (err != nil) != refused || refused && !apierrors.IsForbidden(err) {
					t.Errorf("%v, refused should be %v", err, refused)
				}
			})
		}
	}
	// A kubelet requests the tokens of its pods. (The API server's own restriction of nodes is off here.)
	if err := token("app-888")(m.as("system:node:n1", "system:nodes")); err != nil {
		t.Errorf("a kubelet's request for a token: %v", err)
	}
}
