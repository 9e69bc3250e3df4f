package membership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
	pull "github.com/acp-io/acp/internal/propagation/ocm"
)

// managedCluster creates the namespace of a ManagedCluster on the host.
func managedCluster(t *testing.T, name string) {
	t.Helper()
	core := kubernetes.NewForConfigOrDie(hostServer.Config)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := core.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// answering acts as the work agent of a cluster whose namespace kube-system has a UID, until the test ends: it answers every question.
func answering(t *testing.T, name string, system types.UID) {
	t.Helper()
	works := dynamic.NewForConfigOrDie(hostServer.Config).Resource(pull.WorkResource).Namespace(name)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			list, err := works.List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for i := range list.Items {
				u := &list.Items[i]
				if u.Object["status"] != nil {
					continue
				}
				u.Object["status"] = answer(u, system)
				_, _ = works.UpdateStatus(ctx, u, metav1.UpdateOptions{}) // it is tried again
			}
			time.Sleep(20 * time.Millisecond) // poll interval
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func answer(u *unstructured.Unstructured, system types.UID) map[string]any {
	now := metav1.Now().UTC().Format(time.RFC3339)
	condition := func(kind, message string) any {
		return map[string]any{"type": kind, "status": "True", "reason": "Test", "message": message, "lastTransitionTime": now,
			"observedGeneration": u.GetGeneration()}
	}
	report := strings.Join([]string{u.GetAnnotations()["acp.io/work-nonce"], "true", string(system), "1", "", "", "", ""}, "|")
	return map[string]any{
		"conditions": []any{condition("Applied", "")},
		"resourceStatus": map[string]any{"manifests": []any{map[string]any{
			"resourceMeta": map[string]any{"ordinal": int64(0), "group": "", "version": "v1", "kind": "Namespace", "resource": "namespaces",
				"name": "kube-system"},
			"statusFeedback": map[string]any{},
			"conditions":     []any{condition("Applied", ""), condition("Available", ""), condition("acp.io/Recorded", report)},
		}}},
	}
}

// asks acts as the adapter: it asks the agent of a cluster.
func asks(t *testing.T, name string) {
	t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetAPIVersion(pull.WorkResource.GroupVersion().String())
	u.SetKind("ManifestWork")
	u.SetName("acp-heartbeat")
	u.SetAnnotations(map[string]string{"acp.io/work-nonce": "n", "acp.io/work-asked": now, "acp.io/work-unanswered-since": now})
	works := dynamic.NewForConfigOrDie(hostServer.Config).Resource(pull.WorkResource).Namespace(name)
	if _, err := works.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func systemUID(t *testing.T) types.UID {
	t.Helper()
	ns, err := kubernetes.NewForConfigOrDie(memberServer.Config).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ns.UID
}

// TestJoinWithAnEngineThatPulls checks that a cluster is registered only under the name of its own ManagedCluster, without a token that may
// write, and that the adapter can do nothing else with the agent than distribute ACP's objects.
func TestJoinWithAnEngineThatPulls(t *testing.T) {
	var steps []Step
	j := joining(t, "pulls", &steps)
	j.Cluster.Engine = federation.EngineOCM
	if _, err := j.Run(t.Context()); !errors.Is(err, pull.ErrUnknownCluster) {
		t.Fatalf("without a ManagedCluster: %v", err)
	}
	if u, _, err := j.Host.registration(t.Context(), "pulls"); err != nil || u != nil {
		t.Errorf("it was registered: %v, %v", u, err)
	}
	managedCluster(t, "pulls")
	limited, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := pull.Probe(limited, j.Host.dynamic, "pulls"); !errors.Is(err, pull.ErrNoAnswer) {
		t.Errorf("without an agent: %v", err)
	}
	answering(t, "pulls", systemUID(t))
	steps = nil
	// No adapter runs that would ask the agent.
	if findings, err := j.Run(t.Context()); err != nil || len(findings) != 1 || findings[0].Code != preflight.AgentUnread {
		t.Fatalf("join: %v, findings %+v", err, findings)
	}
	_, c, err := j.Host.registration(t.Context(), "pulls")
	if err != nil || c.Engine != federation.EngineOCM || !c.KubeFedLocked() || c.AnnouncedToken != "" {
		t.Errorf("the registration is %+v, %v", c, err)
	}
	for _, s := range []struct{ namespace, name string }{{kubeFedNamespace, "acp-pusher-pulls"}, {acpNamespace, "acp-direct-pulls"}} {
		if token, err := j.Host.token(t.Context(), s.namespace, s.name); err != nil || token != "" {
			t.Errorf("the host has a token in %s: %v", s.name, err)
		}
	}
	if token, err := j.Host.token(t.Context(), acpNamespace, federation.SecretName("pulls")); err != nil || token == "" {
		t.Errorf("the host has no token for reading: %v", err)
	}
	facts, err := j.Host.Facts(t.Context(), "pulls")
	if err != nil {
		t.Fatal(err)
	}
	if facts.Unreachable != "" || facts.Agent.Silent || facts.Agent.NoReader {
		t.Errorf("the facts are %+v", facts)
	}
	ended, end := context.WithTimeout(t.Context(), 2*time.Second)
	defer end()
	if _, err := j.Run(ended); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the command was repeated while no adapter uses the agent: %v", err)
	}
	asks(t, "pulls")
	steps = nil
	if _, err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := counts(steps)[Created]; n > 0 {
		t.Errorf("the second command created %d objects: %v", n, steps)
	}
	if n, err := pull.Remaining(t.Context(), j.Host.dynamic, "pulls"); err != nil || n != 0 {
		t.Errorf("%d ManifestWorks remain: %v", n, err)
	}
	j.WithoutReader = true
	if _, err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if token, err := j.Host.token(t.Context(), acpNamespace, federation.SecretName("pulls")); err != nil || token != "" {
		t.Errorf("the token for reading remains: %v", err)
	}
	if facts, err := j.Host.Facts(t.Context(), "pulls"); err != nil || !facts.Agent.NoReader || facts.ConfigRead() {
		t.Errorf("the facts are %+v, %v", facts, err)
	}
}

// TestJoinRefusesAnotherClustersAgent checks that the name of the ManagedCluster of another cluster is refused.
func TestJoinRefusesAnotherClustersAgent(t *testing.T) {
	var steps []Step
	j := joining(t, "otheragent", &steps)
	j.Cluster.Engine = federation.EngineOCM
	managedCluster(t, "otheragent")
	answering(t, "otheragent", "another")
	if _, err := j.Run(t.Context()); !errors.Is(err, ErrOtherAgent) {
		t.Fatalf("got %v", err)
	}
	if u, _, err := j.Host.registration(t.Context(), "otheragent"); err != nil || u != nil {
		t.Errorf("it was registered: %v, %v", u, err)
	}
}

// TestTheAdapterDistributesOnlyItsOwnObjects checks the policy for the adapter's ManifestWorks on a real API server.
func TestTheAdapterDistributesOnlyItsOwnObjects(t *testing.T) {
	managedCluster(t, "restricted")
	var steps []Step
	j := joining(t, "restricted", &steps)
	j.Cluster.Engine = federation.EngineOCM
	answering(t, "restricted", systemUID(t))
	if _, err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	as := rest.CopyConfig(hostServer.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + acpNamespace + ":" + DefaultAdapter}
	works := dynamic.NewForConfigOrDie(as).Resource(pull.WorkResource)
	work := func(strategy string, manifests ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"workload": map[string]any{"manifests": manifests}}}}
		if strategy != "" {
			u.Object["spec"].(map[string]any)["manifestConfigs"] = []any{map[string]any{"updateStrategy": map[string]any{"type": strategy},
				"resourceIdentifier": map[string]any{"group": "", "resource": "namespaces", "name": "kube-system"}}}
		}
		u.SetAPIVersion(pull.WorkResource.GroupVersion().String())
		u.SetKind("ManifestWork")
		u.SetGenerateName("acp-test-")
		return u
	}
	manifest := func(apiVersion, kind, namespace, name string) any {
		m := map[string]any{"name": name}
		if namespace != "" {
			m["namespace"] = namespace
		}
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": m}
	}
	policy := manifest("cilium.io/v2", "CiliumClusterwideNetworkPolicy", "", "acp-x")
	executor := work("", policy)
	executor.Object["spec"].(map[string]any)["executor"] = map[string]any{"subject": map[string]any{"type": "ServiceAccount",
		"serviceAccount": map[string]any{"namespace": "a", "name": "b"}}}
	identified := func(field, value string) *unstructured.Unstructured {
		u := work("ReadOnly", manifest("v1", "Namespace", "", "kube-system"))
		config := u.Object["spec"].(map[string]any)["manifestConfigs"].([]any)[0].(map[string]any)
		config["resourceIdentifier"].(map[string]any)[field] = value
		return u
	}
	foreign := work("", policy)
	foreign.SetGenerateName("theirs-")
	pod := manifest("v1", "Pod", "default", "acp-x")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) { // the API server takes a moment to use a new policy
		_, err := works.Namespace("restricted").Create(t.Context(), work("", pod), metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a workload can be distributed: %v", err)
		}
	}
	for _, c := range []struct {
		reason, namespace string
		work              *unstructured.Unstructured
		want              bool
	}{
		{"a policy of ACP's", "restricted", work("", policy), true},
		{"a policy of Istio's", "restricted", work("", manifest("security.istio.io/v1", "AuthorizationPolicy", "istio-system", "acp-x")), true},
		{"the heartbeat", "restricted", work("ReadOnly", manifest("v1", "Namespace", "", "kube-system")), true},
		{"a change of the namespace", "restricted", work("Update", manifest("v1", "Namespace", "", "kube-system")), false},
		{"the namespace with the default strategy", "restricted", work("", manifest("v1", "Namespace", "", "kube-system")), false},
		{"a policy of somebody else's name", "restricted", work("", manifest("cilium.io/v2", "CiliumClusterwideNetworkPolicy", "", "theirs")), false},
		{"a policy of Istio's in another namespace", "restricted", work("", manifest("security.istio.io/v1", "AuthorizationPolicy", "default", "acp-x")),
			false},
		{"a workload", "restricted", work("", pod), false},
		{"a right", "restricted", work("", manifest("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "acp-x")), false},
		{"a workload beside a policy", "restricted", work("", policy, pod), false},
		{"another account of the agent's", "restricted", executor, false},
		{"a strategy for another group", "restricted", identified("group", "x"), false},
		{"a strategy for another namespace", "restricted", identified("namespace", "x"), false},
		{"a ManifestWork of another name", "restricted", foreign, false},
		{"another cluster", "otherns", work("", policy), false},
	} {
		_, err := works.Namespace(c.namespace).Create(t.Context(), c.work, metav1.CreateOptions{})
		if (err == nil) != c.want || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	theirs, err := j.Host.dynamic.Resource(pull.WorkResource).Namespace("restricted").Create(t.Context(), foreign, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := works.Namespace("restricted").Delete(t.Context(), theirs.GetName(), metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the adapter deletes a ManifestWork of others: %v", err)
	}
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	_, err = works.Namespace("restricted").Patch(t.Context(), theirs.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("the adapter changes a ManifestWork of others: %v", err)
	}
}

// TestFormerEngines checks which engines a member may have to be taken from, also when an earlier command was interrupted.
func TestFormerEngines(t *testing.T) {
	const kubeFed, direct, agent = federation.EngineKubeFed, federation.EngineDirect, federation.EngineOCM
	for _, c := range []struct {
		reason     string
		engine     federation.Engine
		present    bool
		registered federation.Cluster
		want       []federation.Engine
	}{
		{"a new member", agent, false, federation.Cluster{}, nil},
		{"it stays", kubeFed, true, federation.Cluster{Engine: kubeFed}, nil},
		{"to the direct engine", direct, true, federation.Cluster{Engine: kubeFed}, []federation.Engine{kubeFed}},
		{"to the agent", agent, true, federation.Cluster{Engine: direct}, []federation.Engine{kubeFed, direct}},
		{"from the agent", kubeFed, true, federation.Cluster{Engine: agent}, []federation.Engine{agent}},
		{"from the agent to the direct engine", direct, true, federation.Cluster{Engine: agent}, []federation.Engine{kubeFed, agent}},
		{"an interrupted move from the agent", kubeFed, true, federation.Cluster{Engine: kubeFed, FormerEngine: agent}, []federation.Engine{agent}},
		{"an interrupted leave", kubeFed, true, federation.Cluster{Engine: federation.EngineNone, FormerEngine: agent}, []federation.Engine{agent}},
		{"an interrupted leave, with the agent again", agent, true, federation.Cluster{Engine: federation.EngineNone, FormerEngine: agent},
			[]federation.Engine{kubeFed, direct}},
		{"a member that left by force, with ManifestWorks", kubeFed, true, federation.Cluster{FormerEngine: agent}, []federation.Engine{agent}},
	} {
		j := &Join{Cluster: federation.Cluster{Name: "m", Engine: c.engine}}
		if got := j.formerEngines(c.present, c.registered); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
		}
	}
}
