package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/testenv"
)

func TestDowngradeAsksAndResumeEndsIt(t *testing.T) {
	ctx := t.Context()
	member := testenv.Start(t, testenv.Options{CRDs: []string{"controllers/testdata/member"}})
	core, client := kubernetes.NewForConfigOrDie(member.Config), dynamic.NewForConfigOrDie(member.Config)
	if _, err := core.CoreV1().
		Namespaces().
		Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: guard.Namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The pusher needs its rights, so that only the guard can refuse it.
	if _, err := core.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "pusher"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: guard.Pusher}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	all, err := guard.Objects(guard.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	closed := &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "cilium.io/v2",
			"kind":       "CiliumClusterwideNetworkPolicy",
			"metadata":   map[string]any{"name": "acp-a"},
			"spec": map[string]any{
				"endpointSelector":  map[string]any{},
				"enableDefaultDeny": map[string]any{"ingress": true},
				"ingress":           []any{map[string]any{}},
			},
		},
	}
	if _, err := client.Resource(federation.CiliumPolicy.TargetResource).Create(ctx, closed, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		gvr := guard.PolicyResource
		if strings.HasSuffix(o.GetKind(), "Binding") {
			gvr = guard.BindingResource
		}
		if _, err := client.Resource(gvr).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	at := []string{"--kubeconfig", writeKubeconfig(t, member.Config), "--context", "x"}
	with := func(in string, args ...string) (int, string, string) { return run(t, in, append(args, at...)...) }

	if code, out, errs := with("", "downgrade", "--dry-run"); code != ExitFine || !strings.Contains(out, "x has 1 policies of ACP, and 1 of them refuse") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	for _, answer := range []string{"", "y\n", "yes\n"} {
		if code, out, errs := with(answer, "downgrade", "--reason", "r"); code != ExitFindings || !strings.Contains(errs, "nothing was changed") {
			t.Errorf("the answer %q: code %d\n%s%s", answer, code, out, errs)
		}
	}
	if code, out, errs := with(
		"x\n", "downgrade", "--reason", "the control plane is gone",
	); code != ExitFine || !strings.Contains(out, "1 policies were opened") || !strings.Contains(out, "refuses KubeFed") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, out, errs := with(
		"", "downgrade", "--reason", "again", "--yes",
	); code != ExitFine || !strings.Contains(out, "(the control plane is gone) already") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, out, errs := with("", "resume"); code != ExitFine || !strings.Contains(out, "(the control plane is gone)") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, out, errs := with("", "resume"); code != ExitFine || out != "x is not downgraded\n" {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, _, errs := with("", "downgrade", "--nodes"); code != ExitInvalid || !strings.Contains(errs, "give --cilium-version") {
		t.Errorf("code %d\n%s", code, errs)
	}
}

func TestDowngradeWithoutACluster(t *testing.T) {
	for _, c := range []struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		{"no reason", []string{"downgrade", "--context", "x"}, ExitUsage, "why?"},
		{"a current context is nobody's intention", []string{"downgrade", "--reason", "r"}, ExitUsage, "which member?"},
		{"nor for resume", []string{"resume"}, ExitUsage, "which member?"},
		{"the procedure for nodes needs no cluster", []string{"downgrade", "--nodes", "--cilium-version", "1.20.2"}, ExitFine, "PolicyAuditMode=Enabled"},
		{"but a version", []string{"downgrade", "--nodes"}, ExitUsage, "which Cilium"},
		{"that somebody looked at", []string{"downgrade", "--nodes", "--cilium-version", "1.12.0"}, ExitInvalid, "1.19 and 1.20"},
	} {
		if code, out, errs := run(t, "", c.args...); code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: code %d\n%s%s", c.reason, code, out, errs)
		}
	}
}
