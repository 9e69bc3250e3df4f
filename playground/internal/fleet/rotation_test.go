package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/internal/federation/tokens"
)

// TestTheRealKubeFedTakesANewToken checks that the adapter makes KubeFed use a new token without a restart, although KubeFed does
// not watch Secrets, so that the old token can be revoked during changes without losing one.
func TestTheRealKubeFedTakesANewToken(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	f, _ := newFleet(t, t.TempDir())
	if err := f.Up(ctx, nil); err != nil {
		t.Fatal(err)
	}
	startAdapter(t, f, "--token-check-interval=2s")
	member := newMember(t, ctx, f, "m2")
	first := member.token(ctx, "first")
	putToken(t, ctx, f, "kubefed-m2", first)
	waitAnnounced(t, ctx, f, "m2", first)
	host := as(t, f, Host).Resource(federatedResource)
	if _, err := host.Create(ctx, federated("1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ctx, f, "m2", "1")

	second := member.token(ctx, "second")
	putToken(t, ctx, f, "kubefed-m2", second)
	began, slowest := time.Now(), time.Duration(0)
	change := func(app int) {
		patch, err := json.Marshal(map[string]any{"spec": federated(strconv.Itoa(app)).Object["spec"]})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := host.Patch(ctx, "carried", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		wrote := time.Now()
		waitFor(t, ctx, f, "m2", strconv.Itoa(app))
		slowest = max(slowest, time.Since(wrote))
	}
	app := 2
	for announcedToken(t, ctx, f, "m2") != tokens.Fingerprint(second) {
		change(app)
		app++
	}
	t.Logf(
		"KubeFed was notified %s after the Secret was replaced; %d changes meanwhile, the slowest %s",
		time.Since(began).Round(time.Millisecond),
		app-2,
		slowest.Round(time.Millisecond),
	)
	slowest = 0
	change(app) // KubeFed may be listing the member again at this time
	member.revoke(ctx, "first")
	for range 10 {
		app++
		change(app)
	}
	t.Logf("with the old token revoked the slowest of 11 changes took %s", slowest.Round(time.Millisecond))
}

// account creates the service account of the pusher in a member, as `kubectl acp cluster join` does. Its token becomes invalid when
// its Secret is deleted.
type account struct {
	t    *testing.T
	core *kubernetes.Clientset
}

func newMember(t *testing.T, ctx context.Context, f *Fleet, name string) account {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.Layout.Kubeconfig(name))
	if err != nil {
		t.Fatal(err)
	}
	a := account{t, kubernetes.NewForConfigOrDie(config)}
	if _, err := a.core.CoreV1().
		ServiceAccounts(tokens.Namespace).
		Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: tokens.Pusher}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// KubeFed reads nodes for its health check.
	if _, err := a.core.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "pusher-as-kubefed"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "playground-kubefed"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: tokens.Pusher, Namespace: tokens.Namespace}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a account) token(ctx context.Context, secret string) string {
	a.t.Helper()
	s, err := a.core.CoreV1().Secrets(tokens.Namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}}, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	hour := int64(time.Hour / time.Second)
	got, err := a.core.CoreV1().ServiceAccounts(tokens.Namespace).CreateToken(ctx, tokens.Pusher, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour, BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: s.Name, UID: s.UID}}}, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return got.Status.Token
}

func (a account) revoke(ctx context.Context, secret string) {
	a.t.Helper()
	if err := a.core.CoreV1().Secrets(tokens.Namespace).Delete(ctx, secret, metav1.DeleteOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

func putToken(t *testing.T, ctx context.Context, f *Fleet, name, token string) {
	t.Helper()
	if err := f.appliers[Host].Apply(ctx, []*unstructured.Unstructured{tokenSecret(KubeFedNamespace, name, token)}); err != nil {
		t.Fatal(err)
	}
}

// announcedToken is the fingerprint of the last token that was announced to KubeFed.
func announcedToken(t *testing.T, ctx context.Context, f *Fleet, member string) string {
	t.Helper()
	u, err := as(t, f, Host).Resource(kubeFedClusterResource).Namespace(KubeFedNamespace).Get(ctx, member, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u.GetAnnotations()["acp.io/token-renewed"]
}

func waitAnnounced(t *testing.T, ctx context.Context, f *Fleet, member, token string) {
	t.Helper()
	if err := poll(ctx, "the token was not announced to KubeFed", func(ctx context.Context) error {
		if announcedToken(t, ctx, f, member) != tokens.Fingerprint(token) {
			return errors.New("not yet")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
