package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/testenv"
)

// waitTimeout is the timeout for actions of other processes.
const waitTimeout = 90 * time.Second

// ca signs serving certificates for 127.0.0.1.
type ca struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
	next int64
}

func newCA(t *testing.T) *ca {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &ca{key: key, cert: cert, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), next: 2}
}

// issue writes a new certificate into dir and returns its serial number.
func (c *ca) issue(t *testing.T, dir string) int64 {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial := c.next
	c.next++
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().
			Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, c.cert, &key.PublicKey, c.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return serial
}

// warnings collects the warnings that the API server passes on.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(w.all, "\n")
	w.all = nil
	return out
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// configuration is the configuration of deploy/webhook with the address of the test's server.
func configuration(t *testing.T, address string, caBundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "deploy/webhook/validating.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	parts := bytes.Split(text, []byte("\n---\n"))
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(parts[len(parts)-1], &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Webhooks) != 1 || *c.Webhooks[0].FailurePolicy != admissionregistrationv1.Ignore || *c.Webhooks[0].ClientConfig.Service.Path != Path {
		t.Fatalf("configuration %+v: want one webhook that fails open, at %s", c, Path)
	}
	url := "https://" + address + Path
	c.Webhooks[0].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: caBundle}
	return &c
}

// serve starts a webhook that stops with the test, and returns its address.
func serve(t *testing.T, dir string, h *Handler) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := New(ctx, "127.0.0.1:0", filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), h)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
	return s.Address()
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(
		context.Background(),
		20*time.Millisecond,
		waitTimeout,
		true,
		func(context.Context) (bool, error) { return done(), nil },
	)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	dir, authority := t.TempDir(), newCA(t)
	authority.issue(t, dir)
	address := serve(t, dir, &Handler{Now: time.Now})
	roots := x509.NewCertPool()
	roots.AddCert(authority.cert)
	served := func() int64 {
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots})
		if err != nil {
			return 0
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	until(t, "the first certificate is served", func() bool { return served() == 2 })
	renewed := authority.issue(t, dir)
	until(t, "the renewed certificate is served", func() bool { return served() == renewed })
}

func TestNewExplainsWhatIsWrong(t *testing.T) {
	dir, authority := t.TempDir(), newCA(t)
	if _, err := New(
		context.Background(), "127.0.0.1:0", filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), &Handler{},
	); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without certificate: %v, want an error about it", err)
	}
	authority.issue(t, dir)
	if _, err := New(context.Background(), "127.0.0.1:99999", filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), &Handler{}); err == nil {
		t.Error("New accepted an invalid port")
	}
}

func TestAgainstAnAPIServer(t *testing.T) {
	server := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/crds"}})
	heard := &warnings{}
	config := rest.CopyConfig(server.Config)
	config.WarningHandlerWithContext = heard
	c, err := client.New(config, client.Options{Scheme: testScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	dir, authority := t.TempDir(), newCA(t)
	authority.issue(t, dir)
	address := serve(t, dir, &Handler{Cached: c, Live: c, Now: time.Now})
	ctx := context.Background()
	if err := c.Create(ctx, configuration(t, address, authority.pem)); err != nil {
		t.Fatal(err)
	}
	until(t, "the API server asks the webhook", func() bool {
		err := c.Create(ctx, grant("probe", allow("s", app888, bobs)), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "validate.acp.io")
	})

	resourceClass := &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: "trnv1:rsc:trip-com:redis:clusters:*", LabelKey: "com.trip/redis-cluster",
		Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}},
		Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}}}
	subjectClass := &v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{
		Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"}}
	enforced := &v1alpha1.ProtectedResource{
		ObjectMeta: metav1.ObjectMeta{Name: "bobs"},
		Spec:       v1alpha1.ProtectedResourceSpec{Resource: bobs, Mode: v1alpha1.ModeEnforce},
	}
	overlapping := resourceClass.DeepCopy()
	overlapping.Name, overlapping.Spec.Pattern, overlapping.Spec.LabelKey = "orders", "trnv1:rsc:trip-com:redis:clusters:orders-*", "com.trip/orders"

	bad := allow("bad", app888, bobs)
	bad.Actions = []v1alpha1.Action{"redis:fly"}
	policy := grant("grants", allow("good", app888, bobs))
	anyone := allow("anyone", "*", bobs)

	// Each step continues from the previous one.
	steps := []struct {
		reason string
		do     func() error
		denied string
		warned string
	}{
		{"a class", func() error { return c.Create(ctx, resourceClass.DeepCopy()) }, "", ""},
		{"a policy before the class of its subjects", func() error { return c.Create(ctx, policy.DeepCopy()) }, "no SubjectClass covers it", ""},
		{"the class of the subjects", func() error { return c.Create(ctx, subjectClass.DeepCopy()) }, "", ""},
		{"a class with overlapping pattern", func() error { return c.Create(ctx, overlapping.DeepCopy()) }, "overlaps with", ""},
		{"the policy, now that both classes are there", func() error { return c.Create(ctx, policy.DeepCopy()) }, "", ""},
		{"an unknown action", func() error { return c.Create(ctx, grant("flying", bad)) }, "redis:fly", ""},
		{"a resource that no client may reach is accepted with a warning", func() error { return c.Create(ctx, enforced.DeepCopy()) }, "", ""},
		{"a second object for the resource", func() error {
			second := enforced.DeepCopy()
			second.Name = "bobs-again"
			return c.Create(ctx, second, client.DryRunAll)
		}, "", "the strictest mode counts"},
		{"a resource in no class", func() error {
			other := enforced.DeepCopy()
			other.Name, other.Spec.Resource = "kafka", "trnv1:rsc:trip-com:kafka:clusters:a"
			return c.Create(ctx, other)
		}, "no ResourceClass covers", ""},
		{"an allow of anyone is odd", func() error { return c.Create(ctx, grant("open", anyone), client.DryRunAll) }, "", "it allows anyone"},
		{"a class in use stays", func() error { return c.Delete(ctx, resourceClass.DeepCopy()) }, "in use by ProtectedResource bobs", ""},
		{"so does that of subjects", func() error { return c.Delete(ctx, subjectClass.DeepCopy()) }, "in use by statement grants/good", ""},
		{"a closed resource is not deleted", func() error { return c.Delete(ctx, enforced.DeepCopy()) }, "set spec.mode to Observe", ""},
		{"it is released first", func() error {
			return c.Patch(ctx, enforced.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"mode":"Observe"}}`)))
		}, "", ""},
		{"and then deleted", func() error { return c.Delete(ctx, enforced.DeepCopy()) }, "", ""},
		{"a workload of an unknown subject", func() error {
			return c.Create(ctx, &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: "vm"}, Spec: v1alpha1.ExternalWorkloadSpec{
				Subject: "trnv1:rsc:trip-com:iam:vm:a", Addresses: []string{"10.5.0.7"}}})
		}, "no SubjectClass covers", ""},
		{"revoking is never in the way", func() error { return c.Delete(ctx, policy.DeepCopy()) }, "", ""},
		{"nothing uses the class any more", func() error { return c.Delete(ctx, resourceClass.DeepCopy()) }, "", ""},
	}
	for _, step := range steps {
		heard.take()
		err := step.do()
		if step.denied == "" && err != nil || step.denied != "" && (err == nil || !strings.Contains(err.Error(), step.denied)) {
			t.Errorf("%s: error %v, want %q", step.reason, err, step.denied)
		}
		if got := heard.take(); !strings.Contains(got, step.warned) {
			t.Errorf("%s: warnings %q, want %q", step.reason, got, step.warned)
		}
	}
}

const (
	app888 = "trnv1:rsc:trip-com:iam:sa:app/888"
	bobs   = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster"
)

func allow(sid, subject, resource string) v1alpha1.Statement {
	return v1alpha1.Statement{SID: sid, Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{v1alpha1.Subject(subject)},
		Actions: []v1alpha1.Action{"redis:connect"}, Resources: []v1alpha1.ResourceName{v1alpha1.ResourceName(resource)}}
}

func grant(name string, statements ...v1alpha1.Statement) *v1alpha1.AccessControlPolicy {
	return &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AccessControlPolicySpec{Statements: statements}}
}
