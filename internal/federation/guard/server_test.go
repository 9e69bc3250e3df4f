package guard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/testenv"
)

var (
	policies       = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumclusterwidenetworkpolicies"}
	groups         = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumcidrgroups"}
	authorizations = schema.GroupVersionResource{Group: "security.istio.io", Version: "v1", Resource: "authorizationpolicies"}
	configMaps     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	pods           = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deployments    = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	cronJobs       = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
)

var kinds = map[schema.GroupVersionResource]string{policies: "CiliumClusterwideNetworkPolicy", groups: "CiliumCIDRGroup", authorizations: "AuthorizationPolicy",
	configMaps: "ConfigMap", pods: "Pod", deployments: "Deployment", cronJobs: "CronJob"}

// member is a cluster in which everybody has all rights on the guarded kinds, so that only the guard refuses requests.
type member struct {
	t      *testing.T
	config *rest.Config
	admin  dynamic.Interface
}

func newMember(t *testing.T) *member {
	t.Helper()
	crds := t.TempDir()
	if err := os.WriteFile(filepath.Join(crds, "authorizationpolicies.yaml"), []byte(authorizationCRD), 0o600); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(testenv.Root(), crds)
	if err != nil {
		t.Fatal(err)
	}
	server := testenv.Start(t, testenv.Options{CRDs: []string{"controllers/testdata/member", relative}})
	core := kubernetes.NewForConfigOrDie(server.Config)
	for _, n := range []string{Namespace, IstioRoot, "shop"} {
		if _, err := core.CoreV1().
			Namespaces().
			Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"*"}
	m := &member{t: t, config: server.Config, admin: dynamic.NewForConfigOrDie(server.Config)}
	m.grant(rbacv1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "system:authenticated"}, "everybody",
		rbacv1.PolicyRule{APIGroups: []string{"cilium.io", "security.istio.io", "", "apps", "batch"}, Resources: all, Verbs: all})
	return m
}

func (m *member) grant(to rbacv1.Subject, role string, rules ...rbacv1.PolicyRule) {
	m.t.Helper()
	core := kubernetes.NewForConfigOrDie(m.config).RbacV1()
	if _, err := core.ClusterRoles().
		Create(m.t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules}, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
	if _, err := core.ClusterRoleBindings().Create(m.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName,
			Kind:     "ClusterRole",
			Name:     role,
		},
		Subjects: []rbacv1.Subject{to},
	}, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
}

// as returns a client of another user.
func (m *member) as(user string, groups ...string) dynamic.Interface {
	c := rest.CopyConfig(m.config)
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return dynamic.NewForConfigOrDie(c)
}

// guard installs the policies, and waits until the API server applies them.
func (m *member) guard(c Credentials, refused func(context.Context) error) {
	m.t.Helper()
	objects, err := Objects(c)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, o := range objects {
		gvr := PolicyResource
		if o.GetKind() == kindBinding {
			gvr = BindingResource
		}
		got, err := m.admin.Resource(gvr).Apply(m.t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true})
		if err != nil {
			m.t.Fatal(err)
		}
		if !sameSpec(got, o) {
			m.t.Errorf("the API server makes something else of %s %s: %v\nnot %v", o.GetKind(), o.GetName(), got.Object["spec"], o.Object["spec"])
		}
	}
	m.until("the guard refuses", func(ctx context.Context) bool { return apierrors.IsForbidden(refused(ctx)) })
}

func (m *member) until(what string, ok func(context.Context) bool) {
	m.t.Helper()
	err := wait.PollUntilContextTimeout(
		m.t.Context(),
		100*time.Millisecond,
		30*time.Second,
		true,
		func(ctx context.Context) (bool, error) { return ok(ctx), nil },
	)
	if err != nil {
		m.t.Fatalf("never: %s", what)
	}
}

// object returns an object of a kind; labels are "key=value".
func object(gvr schema.GroupVersionResource, namespace, name string, spec map[string]any, labels ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gvr.GroupVersion().String(), "kind": kinds[gvr]}}
	u.SetName(name)
	u.SetNamespace(namespace)
	set := map[string]string{}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		set[k] = v
	}
	u.SetLabels(set)
	if spec != nil {
		u.Object["spec"] = spec
	}
	return u
}

var open = map[string]any{"endpointSelector": map[string]any{}, "ingress": []any{map[string]any{}}}

const (
	nobody = "refused"
	fine   = ""
)

func TestWritersAreRefused(t *testing.T) {
	m := newMember(t)
	ctx := t.Context()
	pusher := m.as(Pusher, "system:serviceaccounts", "system:serviceaccounts:acp-system")
	breakGlass := m.as("alice", BreakGlass)
	subjects := map[string]dynamic.Interface{"pusher": pusher, "break-glass": breakGlass, "human": m.as("mallory", "acp:break-glas"), "admin": m.admin,
		"like-pusher": m.as("system:serviceaccount:acp-system:acp-adapter", "system:serviceaccounts:acp-system")}
	// These objects exist before the guard.
	seeded := []*unstructured.Unstructured{
		object(policies, "", "acp-old", open),
		object(policies, "", "marked", open, "acp.io/managed-by=acp-adapter"),
		object(policies, "", "free", open),
	}
	for _, o := range seeded {
		if _, err := m.admin.Resource(policies).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	probe := func(ctx context.Context) error {
		_, err := m.as("mallory").
			Resource(policies).
			Create(ctx, object(policies, "", "acp-probe", open), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	if err := probe(ctx); err != nil {
		t.Fatalf("without a guard: %v", err)
	}
	m.guard(Credentials{}, probe)

	create := func(gvr schema.GroupVersionResource, namespace string, o *unstructured.Unstructured) func(context.Context, dynamic.Interface) error {
		return func(ctx context.Context, c dynamic.Interface) error {
			_, err := c.Resource(gvr).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
	}
	generated := object(policies, "", "", open)
	generated.SetGenerateName("acp-")
	patch := func(name, text string) func(context.Context, dynamic.Interface) error {
		return func(ctx context.Context, c dynamic.Interface) error {
			_, err := c.Resource(policies).Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
	}
	remove := func(name string) func(context.Context, dynamic.Interface) error {
		return func(ctx context.Context, c dynamic.Interface) error {
			return c.Resource(policies).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}
	}
	allowed := func(who ...string) map[string]string {
		out := map[string]string{"pusher": nobody, "break-glass": nobody, "human": nobody, "admin": nobody, "like-pusher": nobody}
		for _, w := range who {
			out[w] = fine
		}
		return out
	}
	anyone, ours := allowed("pusher", "break-glass", "human", "admin", "like-pusher"), allowed("pusher", "break-glass")
	for _, c := range []struct {
		reason string
		do     func(context.Context, dynamic.Interface) error
		want   map[string]string
	}{
		{"create under the reserved name", create(policies, "", object(policies, "", "acp-new", open)), ours},
		{"create by a generated reserved name", create(policies, "", generated), ours},
		{"create with a label of ACP's", create(policies, "", object(policies, "", "new", open, "acp.io/unit=x")), ours},
		{"create a group", create(groups, "", object(groups, "", "acp-new", map[string]any{"externalCIDRs": []any{}})), ours},
		{
			"create a group that policies select",
			create(groups, "", object(groups, "", "sly", map[string]any{"externalCIDRs": []any{}}, "class.acp.io/app=")), ours,
		},
		{"create in Istio's root namespace", create(authorizations, IstioRoot, object(authorizations, IstioRoot, "acp-new", map[string]any{})), ours},
		{"a tenant's namespace is its own", create(authorizations, "shop", object(authorizations, "shop", "acp-new", map[string]any{})), anyone},
		{"create something else", create(policies, "", object(policies, "", "others", open)), anyone},
		{"change what has the reserved name", patch("acp-old", `{"spec":{"ingress":[{"fromEntities":["all"]}]}}`), ours},
		{"change what has only the label", patch("marked", `{"spec":{"ingress":[{"fromEntities":["all"]}]}}`), ours},
		{"take the label away", patch("marked", `{"metadata":{"labels":null}}`), ours},
		{"put the label on", patch("free", `{"metadata":{"labels":{"acp.io/managed-by":"acp-adapter"}}}`), ours},
		{"change something else", patch("free", `{"metadata":{"labels":{"a":"b"}}}`), anyone},
		{"delete what has the reserved name", remove("acp-old"), ours},
		{"delete what has only the label", remove("marked"), ours},
		{"delete something else", remove("free"), anyone},
		{"delete all at once", func(ctx context.Context, c dynamic.Interface) error {
			return c.Resource(policies).DeleteCollection(ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{})
		}, ours},
		{"mark the cluster", create(configMaps, Namespace, object(configMaps, Namespace, DowngradeMarkName, nil)), allowed("break-glass")},
		{"a map of that name elsewhere", create(configMaps, "shop", object(configMaps, "shop", DowngradeMarkName, nil)), anyone},
		{"another map", create(configMaps, Namespace, object(configMaps, Namespace, "other", nil)), anyone},
	} {
		for who, client := range subjects {
			t.Run(c.reason+" as "+who, func(t *testing.T) {
				err := c.do(ctx, client)
				if got := err != nil; got != (c.want[who] == nobody) || got && !apierrors.IsForbidden(err) {
					t.Errorf("%v, want %q", err, c.want[who])
				}
			})
		}
	}
	t.Run("agents write the status of a policy", func(t *testing.T) {
		o, err := m.admin.Resource(policies).Get(ctx, "acp-old", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Valid", "status": "True"}}}
		if _, err := m.as("system:serviceaccount:kube-system:cilium").Resource(policies).UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	})

	// The mark refuses only the pusher; without the mark, no user is refused.
	mark := object(configMaps, Namespace, DowngradeMarkName, nil)
	mark.Object["data"] = map[string]any{"reason": "the shop is closed"}
	write := patch("acp-old", `{"metadata":{"labels":{"a":"b"}}}`)
	for round := range 2 {
		if _, err := breakGlass.Resource(configMaps).Namespace(Namespace).Create(ctx, mark, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		m.until("the pusher is refused", func(ctx context.Context) bool {
			err := write(ctx, pusher)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "the shop is closed")
		})
		for reason, do := range map[string]func(context.Context, dynamic.Interface) error{"change": write, "delete": remove("acp-old"),
			"create": create(policies, "", object(policies, "", "acp-new", open))} {
			if err := do(ctx, pusher); !apierrors.IsForbidden(err) {
				t.Errorf("round %d, %s as the pusher: %v", round, reason, err)
			}
			if err := do(ctx, breakGlass); err != nil {
				t.Errorf("round %d, %s as break-glass: %v", round, reason, err)
			}
			if err := do(ctx, m.admin); !apierrors.IsForbidden(err) {
				t.Errorf("round %d, %s as an administrator: %v", round, reason, err)
			}
		}
		if err := pusher.Resource(configMaps).Namespace(Namespace).Delete(ctx, DowngradeMarkName, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("the pusher takes the mark away: %v", err)
		}
		// A request to delete a collection names no object.
		if err := m.admin.Resource(configMaps).
			Namespace(Namespace).
			DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); !apierrors.IsForbidden(
			err,
		) {
			t.Errorf("an administrator takes the mark away with everything else: %v", err)
		}
		if err := breakGlass.Resource(configMaps).Namespace(Namespace).Delete(ctx, DowngradeMarkName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		m.until("the pusher writes again", func(ctx context.Context) bool { return write(ctx, pusher) == nil })
	}
}

const authorizationCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: authorizationpolicies.security.istio.io
spec:
  group: security.istio.io
  names: {kind: AuthorizationPolicy, listKind: AuthorizationPolicyList, plural: authorizationpolicies, singular: authorizationpolicy}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func template(labels map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": labels},
		"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "i"}}}}
}

func TestClassLabelsNeedARight(t *testing.T) {
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
	pod := func(labels ...string) *unstructured.Unstructured {
		return object(pods, "shop", "p", template(nil)["spec"].(map[string]any), labels...)
	}
	for _, o := range []*unstructured.Unstructured{object(pods, "shop", "mine", template(nil)["spec"].(map[string]any), key+"=888"),
		object(pods, "shop", "theirs", template(nil)["spec"].(map[string]any), key+"=999"),
		object(pods, "shop", "plain", template(nil)["spec"].(map[string]any))} {
		if _, err := m.admin.Resource(pods).Namespace("shop").Create(ctx, o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	m.guard(Credentials{Labels: []string{key, "com.trip/redis-cluster"}}, func(ctx context.Context) error {
		_, err := m.as("mallory").Resource(pods).Namespace("shop").Create(ctx, pod(key+"=888"), dry)
		return err
	})
	subjects := map[string]dynamic.Interface{
		"deployer": m.as("deployer"),
		"human":    m.as("mallory"),
		"admin":    m.admin,
		"controller": m.as(
			"system:serviceaccount:kube-system:replicaset-controller",
			"system:serviceaccounts:kube-system",
		),
		"node": m.as("system:node:n1", "system:nodes"),
	}
	create := func(gvr schema.GroupVersionResource, o *unstructured.Unstructured) func(dynamic.Interface) error {
		return func(c dynamic.Interface) error {
			_, err := c.Resource(gvr).Namespace("shop").Create(ctx, o, dry)
			return err
		}
	}
	patch := func(name, labels string) func(dynamic.Interface) error {
		return func(c dynamic.Interface) error {
			_, err := c.Resource(pods).Namespace("shop").Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":%s}}`, labels),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
	}
	deployment := func(labels map[string]any) *unstructured.Unstructured {
		labels["app"] = "x"
		tpl := template(labels)
		tpl["spec"].(map[string]any)["restartPolicy"] = "Always"
		return object(deployments, "shop", "d", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "x"}}, "template": tpl})
	}
	cron := object(cronJobs, "shop", "c", map[string]any{"schedule": "0 0 * * *",
		"jobTemplate": map[string]any{"spec": map[string]any{"template": template(map[string]any{key: "888"})}}})
	for _, c := range []struct {
		reason  string
		do      func(dynamic.Interface) error
		refused []string
	}{
		{"a pod without such a label", create(pods, pod("app=x")), nil},
		{"a pod with one", create(pods, pod(key+"=888")), []string{"human", "node"}},
		{"a pod with another's", create(pods, pod(key+"=999")), []string{"human", "node", "deployer"}},
		{"a pod with the label of another class", create(pods, pod("com.trip/redis-cluster=888")), []string{"human", "node", "deployer"}},
		{"a workload without", create(deployments, deployment(map[string]any{})), nil},
		{"a workload whose pods have it", create(deployments, deployment(map[string]any{key: "888"})), []string{"human", "node"}},
		{"a cron job whose pods have it", create(cronJobs, cron), []string{"human", "node"}},
		{"put it on a pod", patch("plain", `{"com.trip/appid":"888"}`), []string{"human", "node"}},
		{"take one's own away", patch("mine", `{"com.trip/appid":null}`), []string{"human", "node"}},
		{"take another's", patch("theirs", `{"com.trip/appid":"888"}`), []string{"human", "node", "deployer"}},
		{"another label of such a pod", patch("theirs", `{"a":"b"}`), nil},
	} {
		for who, client := range subjects {
			t.Run(c.reason+" as "+who, func(t *testing.T) {
				refused := false
				for _, r := range c.refused {
					refused = refused || r == who
				}
				if err := c.do(client); (err != nil) != refused || refused && !apierrors.IsForbidden(err) {
					t.Errorf("%v, refused should be %v", err, refused)
				}
			})
		}
	}
}
