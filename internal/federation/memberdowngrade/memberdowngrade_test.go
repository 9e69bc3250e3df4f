package memberdowngrade

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	rbac "github.com/acp-io/acp/deploy/rbac/member"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/testenv"
)

var policies = federation.CiliumPolicy.TargetResource

// newMember starts a member with the accounts' roles, two policies of ACP that close something, one that does not, and
// a policy that is not ACP's.
func newMember(t *testing.T) *rest.Config {
	t.Helper()
	ctx := t.Context()
	config := testenv.Start(t, testenv.Options{CRDs: []string{"controllers/testdata/member"}}).Config
	core := kubernetes.NewForConfigOrDie(config)
	if _, err := core.CoreV1().
		Namespaces().
		Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: guard.Namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	resources := map[string]string{"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "Role": "roles", "RoleBinding": "rolebindings"}
	client := dynamic.NewForConfigOrDie(config)
	for _, file := range []string{"break-glass.yaml", "pusher.yaml"} {
		text, err := rbac.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
				t.Fatal(err)
			}
			gvr := rbacv1.SchemeGroupVersion.WithResource(resources[o.GetKind()])
			if _, err := client.Resource(gvr).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, spec := range map[string]map[string]any{"acp-a": closed(), "acp-b": closed(), "acp-open": cilium.AuditSpec(closed()), "others": closed()} {
		o := policy(name, spec)
		if name == "others" {
			o.SetLabels(nil)
		}
		if _, err := client.Resource(policies).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

func closed() map[string]any {
	from := map[string]any{"matchLabels": map[string]any{"k8s:com.trip/appid": "888"}}
	ports := []any{map[string]any{"ports": []any{map[string]any{"port": "6379", "protocol": "TCP"}}}}
	requests := []any{
		map[string]any{
			"ports": []any{map[string]any{"port": "80", "protocol": "TCP"}},
			"rules": map[string]any{"http": []any{map[string]any{"method": "GET"}}},
		},
	}
	return map[string]any{
		"endpointSelector":  map[string]any{"matchLabels": map[string]any{"k8s:com.trip/redis-cluster": "bobs"}},
		"enableDefaultDeny": map[string]any{"ingress": true, "egress": false},
		"ingress": []any{
			map[string]any{"fromEndpoints": []any{from}, "toPorts": ports},
			map[string]any{"fromEndpoints": []any{from}, "toPorts": requests},
		},
		"ingressDeny": []any{map[string]any{"fromEndpoints": []any{from}, "toPorts": ports}},
	}
}

func policy(name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy", "spec": spec}}
	o.SetName(name)
	o.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelUnit: "u", v1alpha1.LabelRevision: enforcer.Revision(spec)})
	return o
}

func bringGuard(t *testing.T, config *rest.Config) {
	t.Helper()
	all, err := guard.Objects(guard.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(config)
	for _, o := range all {
		gvr := guard.PolicyResource
		if strings.HasSuffix(o.GetKind(), "Binding") {
			gvr = guard.BindingResource
		}
		if _, err := client.Resource(gvr).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// specs returns what the policies enforce now, by name.
func specs(t *testing.T, config *rest.Config) map[string]any {
	t.Helper()
	list, err := dynamic.NewForConfigOrDie(config).Resource(policies).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for i := range list.Items {
		u := &list.Items[i]
		spec, _ := u.Object["spec"].(map[string]any)
		out[u.GetName()] = spec
		if label := u.GetLabels()[v1alpha1.LabelRevision]; label != "" && label != enforcer.Revision(spec) {
			t.Errorf("%s has the revision label %s, but its spec has the revision %s", u.GetName(), label, enforcer.Revision(spec))
		}
	}
	return out
}

func TestDowngradeAndResume(t *testing.T) {
	config := newMember(t)
	bringGuard(t, config)
	ctx := t.Context()
	operator, err := NewOperator(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	extent, err := operator.ReadExtent(ctx)
	if d := cmp.Diff(Extent{Policies: 3, Closing: 2}, extent); d != "" || err != nil {
		t.Fatal(err, d)
	}
	if _, err := operator.Resume(ctx); !errors.Is(err, ErrNotDowngraded) {
		t.Errorf("Resume without a mark: got %v, want ErrNotDowngraded", err)
	}
	opened := 0
	options := Options{Reason: "rehearsal", Now: time.Now, Settling: time.Minute, Opened: func(n int, _ time.Duration) { opened = n }}
	result, err := operator.Downgrade(ctx, options)
	if err != nil || !result.Guarded || result.Written != 2 || opened != 2 {
		t.Fatalf("Downgrade: got error %v, result %+v, and %d opened policies", err, result, opened)
	}
	audited := cilium.AuditSpec(closed())
	if d := cmp.Diff(map[string]any{"acp-a": audited, "acp-b": audited, "acp-open": audited, "others": closed()}, specs(t, config)); d != "" {
		t.Error(d)
	}
	extent, err = operator.ReadExtent(ctx)
	if err != nil || extent.Closing != 0 || extent.Mark == nil || extent.Mark.Reason != "rehearsal" || extent.Mark.By != operator.Name {
		t.Errorf("ReadExtent after the downgrade: got error %v, extent %+v", err, extent)
	}
	// The pusher can close nothing now, and the command can be repeated.
	pusher := dynamic.NewForConfigOrDie(impersonating(config, guard.Pusher)).Resource(policies)
	patch := []byte(`{"spec":{"enableDefaultDeny":{"ingress":true}}}`)
	if _, err := pusher.Patch(ctx, "acp-a", types.MergePatchType, patch, metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("write by the pusher during the downgrade: got %v, want forbidden", err)
	}
	if result, err := operator.Downgrade(ctx, options); err != nil || result.Written != 0 {
		t.Errorf("second Downgrade: got error %v, result %+v", err, result)
	}
	if mark, err := operator.Resume(ctx); err != nil || mark.Reason != "rehearsal" {
		t.Errorf("Resume: got error %v, mark %+v", err, mark)
	}
	if extent, err = operator.ReadExtent(ctx); err != nil || extent.Mark != nil || extent.Closing != 0 {
		t.Errorf("ReadExtent after Resume: got error %v, extent %+v, want the policies still open", err, extent)
	}
}

// TestDowngradeWithoutGuard checks that, without a guard, policies that are closed again are opened again for as long
// as KubeFed may write them.
func TestDowngradeWithoutGuard(t *testing.T) {
	config := newMember(t)
	ctx := t.Context()
	// alice is in the group, has no other rights, and cannot ask the guard.
	operator, err := NewOperator(ctx, impersonating(config, "alice", guard.BreakGlass))
	if err != nil {
		t.Fatal(err)
	}
	interfered := false
	options := Options{Reason: "x", Now: time.Now, Settling: 3 * time.Second, Opened: func(int, time.Duration) {
		admin := dynamic.NewForConfigOrDie(config).Resource(policies)
		if _, err := admin.Patch(
			ctx,
			"acp-a",
			types.MergePatchType,
			[]byte(`{"spec":{"enableDefaultDeny":{"ingress":true}}}`),
			metav1.PatchOptions{},
		); err != nil {
			t.Error(err)
		}
		interfered = true
	}}
	result, err := operator.Downgrade(ctx, options)
	if err != nil || result.Guarded || result.Written != 3 || !interfered {
		t.Fatalf("Downgrade without a guard: got error %v, result %+v", err, result)
	}
	if extent, err := operator.ReadExtent(ctx); err != nil || extent.Closing != 0 {
		t.Errorf("ReadExtent without a guard: got error %v, extent %+v", err, extent)
	}
}

func TestNewOperatorRefusesUsersOutsideTheGroup(t *testing.T) {
	server := testenv.Start(t, testenv.Options{})
	config, err := server.As("mallory")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewOperator(t.Context(), config); !errors.Is(err, ErrNotAdmitted) {
		t.Errorf("NewOperator: got %v, want ErrNotAdmitted", err)
	}
}

func TestOpenIsForEveryRule(t *testing.T) {
	k := kinds()[0]
	strange := policy("acp-x", closed())
	strange.Object["specs"] = []any{closed()}
	next, closing, err := k.open(strange)
	if err != nil || !closing {
		t.Fatal(err)
	}
	audited := cilium.AuditSpec(closed())
	if d := cmp.Diff([]any{audited, []any{audited}}, []any{next.Object["spec"], next.Object["specs"]}); d != "" {
		t.Error(d)
	}
	istio := kinds()[1]
	deny := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"action": "DENY", "rules": []any{map[string]any{}}}}}
	if next, closing, err = istio.open(deny); err != nil || !closing || fmt.Sprint(next.Object["spec"]) != "map[action:AUDIT rules:[map[]]]" {
		t.Errorf("open = %v, %v, want every rule opened", next, err)
	}
	strange.Object["specs"] = []any{"x"}
	if _, _, err := k.open(strange); err == nil {
		t.Error("open of an unreadable object returned no error")
	}
}

func TestNodes(t *testing.T) {
	for v, known := range map[string]bool{"v1.20.2": true, "1.19.0": true, "1.18.4": false, "1.21.0": false, "main": false, "": false} {
		text, err := Nodes(v)
		if (err == nil) != known || known && !strings.Contains(text, `crictl exec "$agent" cilium-dbg config PolicyAuditMode=Enabled`) {
			t.Errorf("Nodes(%q): got error %v and the text\n%s", v, err, text)
		}
	}
}
