package rotation

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/tokens"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	kubeFed = "kube-federation-system"
	week    = 7 * 24 * time.Hour
)

// registrations records the announced tokens, and returns the configured error.
type registrations struct {
	prints []string
	err    error
}

func (r *registrations) AnnounceToken(_ context.Context, _, print string) error {
	if r.err != nil {
		return r.err
	}
	r.prints = append(r.prints, print)
	return nil
}

// world is one API server that serves as host and member.
type world struct {
	*Rotator
	t         *testing.T
	core      *kubernetes.Clientset
	clock     *clocktesting.FakeClock
	announced *registrations
	cluster   federation.Cluster
}

// server is shared; the tests run one after the other.
var server *testenv.Server

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if server, err = testenv.New(testenv.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	return m.Run()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, core: kubernetes.NewForConfigOrDie(server.Config), clock: clocktesting.NewFakeClock(time.Now()), announced: &registrations{}}
	w.cluster = federation.Cluster{Name: "m1", Endpoint: server.Config.Host, CABundle: server.Config.CAData, Secret: "acp-pusher-m1"}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.Rotator = &Rotator{
		Clusters: func() []federation.Cluster { return []federation.Cluster{w.cluster} }, Secrets: w.core.CoreV1(),
		KubeFedNamespace: kubeFed, CredentialsNamespace: tokens.Namespace, Registrations: w.announced,
		Clock: w.clock, Log: testr.New(t), Metrics: metrics,
	}
	if err := w.Prepare(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, n := range []string{kubeFed, tokens.Namespace} {
		w.make(w.core.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{}))
	}
	for _, a := range []string{tokens.Pusher, tokens.Reader} {
		w.make(
			w.core.CoreV1().
				ServiceAccounts(tokens.Namespace).
				Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: a}}, metav1.CreateOptions{}),
		)
		w.allow(a)
	}
	w.put(kubeFed, "acp-pusher-m1", w.issue(tokens.Pusher))
	w.put(tokens.Namespace, "acp-reader-m1", w.issue(tokens.Reader))
	return w
}

// make checks the result of a creation; an object of an earlier test is accepted.
func (w *world) make(_ any, err error) {
	w.t.Helper()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
}

// allow lets an account create tokens for itself, as deploy/rbac/member does.
func (w *world) allow(account string) {
	w.t.Helper()
	r := w.core.RbacV1()
	meta := metav1.ObjectMeta{Name: account}
	w.make(r.Roles(tokens.Namespace).Create(w.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""},
		Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"}}}}, metav1.CreateOptions{}))
	w.make(r.RoleBindings(tokens.Namespace).Create(w.t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: tokens.Namespace}}}, metav1.CreateOptions{}))
}

func (w *world) issue(account string) string {
	w.t.Helper()
	got, err := w.core.CoreV1().ServiceAccounts(tokens.Namespace).CreateToken(w.t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(week / time.Second))}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return got.Status.Token
}

func (w *world) put(namespace, name, token string) {
	w.t.Helper()
	secrets := w.core.CoreV1().Secrets(namespace)
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{tokenKey: []byte(token)}}
	if _, err := secrets.Create(w.t.Context(), s, metav1.CreateOptions{}); err != nil {
		w.make(secrets.Update(w.t.Context(), s, metav1.UpdateOptions{}))
	}
}

func (w *world) get(namespace, name string) string {
	w.t.Helper()
	s, err := w.core.CoreV1().Secrets(namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(s.Data[tokenKey])
}

// until repeats the check: the expiry of tokens has whole seconds, and new roles take effect with a delay.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), 200*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		w.checkAll(ctx)
		return is(), nil
	})
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func TestTokensAreRenewedAutomatically(t *testing.T) {
	w := newWorld(t)
	pusher, reader := w.get(kubeFed, "acp-pusher-m1"), w.get(tokens.Namespace, "acp-reader-m1")
	w.checkAll(t.Context())
	if w.get(kubeFed, "acp-pusher-m1") != pusher || w.get(tokens.Namespace, "acp-reader-m1") != reader {
		t.Fatal("new tokens were renewed")
	}
	if len(w.announced.prints) != 1 || w.announced.prints[0] != tokens.Fingerprint(pusher) {
		t.Fatalf("KubeFed was notified of %v", w.announced.prints)
	}
	w.cluster.AnnouncedToken = w.announced.prints[0]

	w.clock.Step(week/2 + time.Hour)
	w.until("both are renewed", func() bool {
		return w.get(kubeFed, "acp-pusher-m1") != pusher && w.get(tokens.Namespace, "acp-reader-m1") != reader
	})
	next := w.get(kubeFed, "acp-pusher-m1")
	if last := w.announced.prints[len(w.announced.prints)-1]; last != tokens.Fingerprint(next) {
		t.Errorf("the last notification of KubeFed was %s", last)
	}
	if strings.Contains(strings.Join(w.announced.prints, " "), next[:20]) {
		t.Error("the registration contains the token")
	}
	if got := tokens.SpanOf(next).Lifetime(); got != week {
		t.Errorf("the new token is valid for %s", got)
	}
}

// TestAnnouncementWaitsWhileKubeFedIsBusy checks that the notification of a renewed token can wait, because the earlier token is
// still valid, and that of a token that another program wrote cannot.
func TestAnnouncementWaitsWhileKubeFedIsBusy(t *testing.T) {
	w := newWorld(t)
	busy := true
	w.Busy = func() bool { return busy }
	w.checkAll(t.Context())
	first := w.get(kubeFed, "acp-pusher-m1")
	if len(w.announced.prints) != 1 {
		t.Fatalf("after somebody else wrote the token, KubeFed was notified of %v", w.announced.prints)
	}
	w.cluster.AnnouncedToken = tokens.Fingerprint(first)

	w.clock.Step(week/2 + time.Hour)
	w.until("it is renewed", func() bool { return w.get(kubeFed, "acp-pusher-m1") != first })
	second := tokens.Fingerprint(w.get(kubeFed, "acp-pusher-m1"))
	w.clock.Step(maxBusyDelay - time.Second)
	w.checkAll(t.Context())
	if len(w.announced.prints) != 1 {
		t.Fatalf("while KubeFed is busy, it was notified of %v", w.announced.prints)
	}
	w.clock.Step(time.Second)
	w.checkAll(t.Context())
	if len(w.announced.prints) != 2 || w.announced.prints[1] != second {
		t.Fatalf("after maxBusyDelay, KubeFed was notified of %v", w.announced.prints)
	}
	w.cluster.AnnouncedToken = second

	w.put(kubeFed, "acp-pusher-m1", "a-static-token")
	w.checkAll(t.Context())
	if len(w.announced.prints) != 3 {
		t.Errorf("after somebody else wrote the token, KubeFed was notified of %v", w.announced.prints)
	}
}

func TestTokenIsAnnouncedAfterACrash(t *testing.T) {
	w := newWorld(t)
	w.announced.err = context.DeadlineExceeded // The process ends between the Secret and the registration.
	w.checkAll(t.Context())
	w.announced.err = nil
	w.checkAll(t.Context())
	if want := tokens.Fingerprint(w.get(kubeFed, "acp-pusher-m1")); len(w.announced.prints) != 1 || w.announced.prints[0] != want {
		t.Errorf("KubeFed was notified of %v, want %s", w.announced.prints, want)
	}
}

func TestReplacedTokenIsAnnounced(t *testing.T) {
	w := newWorld(t)
	w.put(kubeFed, "acp-pusher-m1", "a-static-token")
	w.checkAll(t.Context())
	if len(w.announced.prints) != 1 || w.announced.prints[0] != tokens.Fingerprint("a-static-token") {
		t.Errorf("KubeFed was notified of %v", w.announced.prints)
	}
	if w.get(kubeFed, "acp-pusher-m1") != "a-static-token" {
		t.Error("a token that does not expire was replaced")
	}
}

func TestAnAccountRenewsOnlyItself(t *testing.T) {
	w := newWorld(t)
	w.make(
		w.core.CoreV1().
			ServiceAccounts(tokens.Namespace).
			Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}),
	)
	other := w.issue("other")
	w.put(kubeFed, "acp-pusher-m1", other)
	w.clock.Step(week/2 + time.Hour)
	w.checkAll(t.Context())
	if w.get(kubeFed, "acp-pusher-m1") != other {
		t.Error("an account without the right was given another account's token")
	}
}

func TestMemberWithoutSecretIsNoFailure(t *testing.T) {
	w := newWorld(t)
	w.cluster.Secret = ""
	if err := w.pusher(t.Context(), w.cluster); err != nil {
		t.Errorf("a member without a Secret: got %v, want no error", err)
	}
	if len(w.announced.prints) > 0 {
		t.Error("KubeFed was notified although there is no token")
	}
}
