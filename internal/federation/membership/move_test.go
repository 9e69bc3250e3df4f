package membership

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/tokens"
	"github.com/acp-io/acp/internal/testenv"
)

// movingMember is a member with an API server of its own, in a fleet of its own.
type movingMember struct {
	*testing.T
	host   *Host
	server *testenv.Server
}

func newMovingMember(t *testing.T) *movingMember {
	t.Helper()
	m := &movingMember{T: t, server: testenv.Start(t, testenv.Options{CRDs: []string{"controllers/testdata/member"}})}
	if err := configure(m.server); err != nil {
		t.Fatal(err)
	}
	fleet := strings.ToLower(t.Name())
	core := kubernetes.NewForConfigOrDie(hostServer.Config)
	for _, n := range []string{fleet, fleet + "-acp"} {
		if _, err := core.CoreV1().
			Namespaces().
			Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if m.host, err = NewHost(hostServer.Config, fleet, fleet+"-acp"); err != nil {
		t.Fatal(err)
	}
	return m
}

// join joins the member with an engine. until, if not nil, is called with every step, and ends the command when it returns true.
// KubeFed finds the member ready when it is registered with KubeFed's Secret, and not ready otherwise.
func (m *movingMember) join(engine federation.Engine, until func(Step) bool) error {
	m.Helper()
	ctx, cancel := context.WithCancel(m.Context())
	defer cancel()
	j := &Join{Host: m.host, Member: m.server.Config, Lifetime: 24 * time.Hour, Now: time.Now,
		Cluster: federation.Cluster{Name: "m", Endpoint: m.server.Config.Host, CABundle: m.server.Config.CAData, Engine: engine},
		OnStep: func(s Step) {
			if strings.HasPrefix(s.Object, "KubeFedCluster ") {
				m.probed()
			}
			if until != nil && until(s) {
				cancel()
			}
		}}
	_, err := j.Run(ctx)
	return err
}

// probed writes KubeFed's status of the member.
func (m *movingMember) probed() {
	m.Helper()
	_, c, err := m.host.registration(m.Context(), "m")
	if err != nil {
		m.Fatal(err)
	}
	ready := "False"
	if !c.KubeFedLocked() {
		ready = "True"
	}
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q,"lastProbeTime":"2026-01-01T00:00:00Z"}]}}`, ready)
	if _, err := m.host.registrations().Patch(m.Context(), "m", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		m.Fatal(err)
	}
}

// has checks that the member and the host have the account and the token of one engine alone; of none for "".
func (m *movingMember) has(what string, engine federation.Engine) {
	m.Helper()
	objects := dynamic.NewForConfigOrDie(m.server.Config)
	for _, e := range federation.Engines() {
		if e.Pulls() {
			continue // its account is not ACP's
		}
		_, account := objects.Resource(resources["ServiceAccount"]).Namespace(tokens.Namespace).Get(m.Context(), e.Account(), metav1.GetOptions{})
		_, role := objects.Resource(resources["ClusterRoleBinding"]).Get(m.Context(), e.Account(), metav1.GetOptions{})
		namespace, name := federation.Cluster{Name: "m", Engine: e, Secret: federation.PusherSecretName("m")}.
			WriterSecret(m.host.KubeFedNamespace, m.host.CredentialsNamespace)
		_, secret := m.host.core.CoreV1().Secrets(namespace).Get(m.Context(), name, metav1.GetOptions{})
		for object, err := range map[string]error{"account": account, "role binding": role, "Secret": secret} {
			if there := err == nil; there != (e == engine) || !there && !apierrors.IsNotFound(err) {
				m.Errorf("%s: the %s of %s exists: %v (%v)", what, object, e, there, err)
			}
		}
	}
}

func (m *movingMember) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// after returns a function that reports a step about an object of a kind, once it has happened for the nth time.
func after(kind string, nth int) func(Step) bool {
	return func(s Step) bool {
		if strings.HasPrefix(s.Object, kind+" ") {
			nth--
		}
		return nth == 0
	}
}

// TestMoveLeavesNothingBehind checks that a member that moves has nothing of the former engine afterwards, wherever the command was
// interrupted before it was repeated, or before the move was given up.
func TestMoveLeavesNothingBehind(t *testing.T) {
	m := newMovingMember(t)
	m.must(m.join(federation.EngineKubeFed, nil))
	m.has("joined", federation.EngineKubeFed)
	m.must(m.join(federation.EngineDirect, nil))
	m.has("moved to the direct engine", federation.EngineDirect)
	m.must(m.join(federation.EngineKubeFed, nil))
	m.has("moved back", federation.EngineKubeFed)
	removed := func(s Step) bool { return s.Outcome == Removed }
	for _, c := range []struct {
		reason      string
		interrupted federation.Engine
		at          func(Step) bool
		then        federation.Engine
	}{
		{"given up before the registration", federation.EngineDirect, after("ValidatingAdmissionPolicyBinding", 1), federation.EngineKubeFed},
		{"given up after the registration", federation.EngineDirect, after("KubeFedCluster", 1), federation.EngineKubeFed},
		{"interrupted while the former account was removed", federation.EngineDirect, removed, federation.EngineDirect},
		{"interrupted when KubeFed was about to take over", federation.EngineKubeFed, after("KubeFedCluster", 1), federation.EngineKubeFed},
		{"back", federation.EngineDirect, func(Step) bool { return false }, federation.EngineDirect},
		{"interrupted when KubeFed had taken over", federation.EngineKubeFed, after("ValidatingAdmissionPolicyBinding", 2), federation.EngineKubeFed},
		{"back again", federation.EngineDirect, func(Step) bool { return false }, federation.EngineDirect},
		{"interrupted while the direct engine's account was removed", federation.EngineKubeFed, removed, federation.EngineKubeFed},
	} {
		_ = m.join(c.interrupted, c.at) // interrupted, if it did not end before
		if err := m.join(c.then, nil); err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}
		m.has(c.reason, c.then)
	}
}

// TestLeaveOfADirectMember checks that a member of the direct engine leaves a fleet that KubeFed left, although KubeFed's last status of a
// record, which nothing updates any more, still names the member, and that an interrupted leave can be repeated.
func TestLeaveOfADirectMember(t *testing.T) {
	m := newMovingMember(t)
	m.must(m.join(federation.EngineDirect, nil))
	records := m.host.dynamic.Resource(federation.CiliumPolicy.FederatedResource)
	record, err := (&federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-left-kubefed"},
		TemplateSpec: map[string]any{}}).Unstructured()
	m.must(err)
	if record, err = records.Create(t.Context(), record, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		m.must(records.Delete(context.WithoutCancel(t.Context()), record.GetName(), metav1.DeleteOptions{}))
	}()
	m.must(unstructured.SetNestedSlice(record.Object, []any{map[string]any{"name": "m", "status": "ClusterNotReady"}}, "status", "clusters"))
	if _, err = records.UpdateStatus(t.Context(), record, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l := &Leave{Host: m.host, Name: "m", Member: m.server.Config, Timeout: time.Second, Every: 10 * time.Millisecond, OnStep: func(s Step) {
		if strings.HasPrefix(s.Object, "KubeFedCluster ") {
			cancel()
		}
	}}
	if left, err := l.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: got %v, left %+v", err, left)
	}
	l.OnStep = nil
	if left, err := l.Run(t.Context()); err != nil || !left.IsEmpty() {
		t.Fatalf("got %v, left %+v", err, left)
	}
	m.has("left", "")
}
