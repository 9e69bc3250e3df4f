package charts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/testenv"
)

var programs = map[string]string{"portal.yaml": "portal", "acp-adapter.yaml": "acp-adapter", "flow-collector.yaml": "flow-collector"}

// binaries is the folder with ACP's programs, once a test has used one. TestMain removes it.
var binaries string

// build builds ACP's programs from this checkout, once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "acp-charts-")
	if err != nil {
		return "", err
	}
	binaries = dir
	cmd := exec.Command("go", "build", "-o", dir, "./cmd/portal", "./cmd/acp-adapter", "./cmd/flow-collector") //nolint:noctx // a build ends
	cmd.Dir = testenv.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w: %s", err, out)
	}
	return dir, nil
})

func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

var mounted = regexp.MustCompile(`/(etc/acp[a-z-]*|data|flows)\b`)

// settings writes the settings in a ConfigMap to a file in which the folders of the pod are below a folder of the test, and returns the
// program and the file.
func settings(t *testing.T, o *unstructured.Unstructured, folder string) (name, file string) {
	t.Helper()
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	for key, text := range data {
		if programs[key] == "" {
			continue
		}
		text = mounted.ReplaceAllString(text, folder+"/$1")
		file = filepath.Join(folder, key)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return programs[key], file
	}
	return "", ""
}

// TestSettingsAreAccepted: the programs take the settings that each set of values makes.
func TestSettingsAreAccepted(t *testing.T) {
	tried := map[string]int{}
	for _, set := range sets(t, "acp") {
		for _, o := range rendered(t, "acp", values(t, set)) {
			if o.GetKind() != "ConfigMap" || strings.HasSuffix(o.GetName(), "-alerts") { // the alerts have a file portal.yaml, too
				continue
			}
			folder := t.TempDir()
			name, file := settings(t, o, folder)
			if name == "" {
				continue
			}
			text, err := os.ReadFile(file) //nolint:gosec // the test wrote it
			if err != nil {
				t.Fatal(err)
			}
			// Create the files that a program checks at its start, which mounts provide in a pod.
			for _, path := range regexp.MustCompile(regexp.QuoteMeta(folder)+`/etc/[^\s'"]+/[^\s'"]+`).FindAllString(string(text), -1) {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("clickhouse://acp@clickhouse.example.com:9000/flows"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.CommandContext(t.Context(), program(t, name), "--config="+file, "--print-config").CombinedOutput() //nolint:gosec // built here
			if err != nil {
				t.Errorf("%s: %s refuses its settings: %v: %s", set, name, err, out)
			}
			tried[name]++
		}
	}
	for _, name := range programs {
		if tried[name] < 2 {
			t.Errorf("%s was tried %d times", name, tried[name])
		}
	}
}

// account writes a kubeconfig with a token of a service account.
func (c *cluster) account(t *testing.T, namespace, name string) string {
	t.Helper()
	core, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := core.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken = token.Status.Token
	return testenv.WriteKubeconfig(t, config)
}

// process is a program that runs.
type process struct {
	path  string
	cmd   *exec.Cmd
	log   *testenv.Output
	ended chan struct{}
	once  sync.Once
}

// run starts a program until the test ends.
func run(t *testing.T, path string, args ...string) *testenv.Output {
	t.Helper()
	return begin(t, path, args...).log
}

// begin starts a program until stop is called or the test ends.
func begin(t *testing.T, path string, args ...string) *process {
	t.Helper()
	p := &process{path: path, log: &testenv.Output{}, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), path, args...) //nolint:gosec // built here
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			text := p.log.String()
			t.Logf("%s: ... %s", filepath.Base(path), text[max(0, len(text)-4000):])
		}
	})
	return p
}

// stop ends the program as the kubelet does, and waits until it has ended.
func (p *process) stop() {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(30 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	})
}

func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = ok(); err == nil {
			return
		}
	}
	t.Fatalf("waited in vain: %s: %v", what, err)
}

func answers(client *http.Client, url, host string) (int, http.Header, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil) //nolint:noctx // the client has a timeout
	if err != nil {
		return 0, nil, err
	}
	if host != "" {
		r.Host = host
	}
	a, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = a.Body.Close() }()
	_, _ = io.Copy(io.Discard, a.Body)
	return a.StatusCode, a.Header, nil
}

// mount writes what a ConfigMap or Secret holds as files, as the kubelet does.
func (c *cluster) mount(t *testing.T, kind, name, folder string) {
	t.Helper()
	o, ok := c.get(t, "v1", kind, "acp-system", name)
	if !ok {
		t.Fatalf("there is no %s %s", kind, name)
	}
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for key, text := range data {
		if kind == "Secret" {
			plain, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			text = string(plain)
		}
		if err := os.WriteFile(filepath.Join(folder, key), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// trusting returns a client that trusts an authority alone, and follows nothing.
func trusting(t *testing.T, authority []byte, name string) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		t.Fatal("the authority is no PEM")
	}
	return &http.Client{
		Timeout:       5 * time.Second,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// TestDefaultsWork installs acp alone with its defaults, without KubeFed and without an OIDC provider, and runs the real portal and adapter with
// the settings, certificates, accounts and roles that the chart made: both become ready, the portal serves browsers over TLS and says that
// no person can log in yet, and the webhook answers under the registered authority.
func TestDefaultsWork(t *testing.T) {
	portal, adapter := program(t, "portal"), program(t, "acp-adapter")
	c := start(t)
	c.namespace(t, "acp-system", map[string]any{"pod-security.kubernetes.io/enforce": "restricted"})
	c.install(t, "acp", nil)
	folder := t.TempDir()
	for _, d := range []string{"data", "flows"} {
		if err := os.Mkdir(filepath.Join(folder, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c.mount(t, "Secret", "acp-portal-tls", folder+"/etc/acp-tls")
	c.mount(t, "ConfigMap", "acp-portal-catalog", folder+"/etc/acp-catalog")
	c.mount(t, "Secret", "acp-adapter-webhook-tls", folder+"/etc/acp-webhook")
	file := func(name string) string {
		o, ok := c.get(t, "v1", "ConfigMap", "acp-system", name)
		if !ok {
			t.Fatalf("there is no ConfigMap %s", name)
		}
		_, f := settings(t, o, folder)
		return f
	}
	listen, health := testenv.FreeAddress(t), testenv.FreeAddress(t)
	log := run(
		t,
		portal,
		"--config="+file("acp-portal"),
		"--kubeconfig="+c.account(t, "acp-system", "acp-portal"),
		"--listen="+listen,
		"--health-address="+health,
		"--metrics-address="+testenv.FreeAddress(t),
	)
	hook, adapterHealth := testenv.FreeAddress(t), testenv.FreeAddress(t)
	adapterLog := run(
		t,
		adapter,
		"--config="+file("acp-adapter"),
		"--kubeconfig="+c.account(t, "acp-system", "acp-adapter"),
		"--webhook-address="+hook,
		"--health-address="+adapterHealth,
		"--metrics-address="+testenv.FreeAddress(t),
	)
	plain := &http.Client{Timeout: 5 * time.Second}
	for what, url := range map[string]string{
		"the portal is ready": "http://" + health + "/readyz", "the adapter is ready": "http://" + adapterHealth + "/readyz",
	} {
		eventually(t, what, func() error {
			status, _, err := answers(plain, url, "")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("%s answers %d", url, status)
			}
			return err
		})
	}
	ca, ok := c.get(t, "v1", "ConfigMap", "acp-system", "acp-portal-ca")
	if !ok {
		t.Fatal("there is no ConfigMap with the authority")
	}
	authority, _, _ := unstructured.NestedString(ca.Object, "data", "ca.crt")
	browser := trusting(t, []byte(authority), "localhost")
	status, header, err := answers(browser, "https://"+listen+"/auth/login", "localhost:8443")
	if err != nil || status != http.StatusFound || !strings.Contains(header.Get("Location"), "error=provider-unset") {
		t.Errorf("logging in: %d %s, %v", status, header.Get("Location"), err)
	}
	if status, _, err := answers(browser, "https://"+listen+"/api/v1/me", "localhost:8443"); err != nil || status != http.StatusUnauthorized {
		t.Errorf("nobody is logged in: %d, %v", status, err)
	}
	w, _ := c.get(t, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "acp-adapter")
	hooks, _, _ := unstructured.NestedSlice(w.Object, "webhooks")
	bundle, _, _ := unstructured.NestedString(hooks[0].(map[string]any), "clientConfig", "caBundle")
	pem, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := answers(trusting(t, pem, "acp-adapter-webhook.acp-system.svc"), "https://"+hook+"/validate", ""); err != nil {
		t.Errorf("the webhook: %v", err)
	}
	if text := log.String() + adapterLog.String(); strings.Contains(text, "forbidden") {
		t.Errorf("something is forbidden: %s", text)
	}
}

// TestKubeFedWorksWithTheChart runs KubeFed's real controller-manager with the account, roles and KubeFedConfig of acp-kubefed, in a host
// with acp, and a member that joined: an object gets there, is changed there, and goes.
func TestKubeFedWorksWithTheChart(t *testing.T) {
	hyperfed := os.Getenv("HYPERFED")
	if hyperfed == "" {
		t.Fatal("HYPERFED is not set: run make test-charts, or set it to the file hyperfed in the folder that `acp-playground parts kubefed` prints")
	}
	host := start(t)
	host.namespace(t, "acp-system", nil)
	host.install(t, "acp-kubefed", nil)
	host.install(t, "acp", nil)
	joined := start(t, "controllers/testdata/member")
	joinMember(t, host, joined, "", nil)
	log := run(
		t,
		hyperfed,
		"controller-manager",
		"--kubeconfig="+host.account(t, "kube-federation-system", "kubefed-controller"),
		"--kubefed-namespace=kube-federation-system",
		"--healthz-addr="+testenv.FreeAddress(t),
		"--metrics-addr="+testenv.FreeAddress(t),
	)
	eventually(t, "the member is ready", func() error {
		u, _ := host.get(t, "core.kubefed.io/v1beta1", "KubeFedCluster", "kube-federation-system", "m1")
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, x := range conditions {
			if m := x.(map[string]any); m["type"] == "Ready" && m["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", conditions)
	})
	const name = "acp-redis-bobs"
	in := func() (*unstructured.Unstructured, bool) {
		return joined.get(t, "cilium.io/v2", "CiliumClusterwideNetworkPolicy", "", name)
	}
	spec := func(value string) map[string]any {
		return map[string]any{
			"endpointSelector": map[string]any{"matchLabels": map[string]any{"com.trip/redis-cluster": value}},
			"ingress":          []any{map[string]any{}},
		}
	}
	host.create(
		t,
		map[string]any{
			"apiVersion": "types.kubefed.io/v1beta1",
			"kind":       "FederatedCiliumClusterwideNetworkPolicy",
			"metadata":   map[string]any{"name": name},
			"spec": map[string]any{
				"template":  map[string]any{"spec": spec("bobs")},
				"placement": map[string]any{"clusters": []any{map[string]any{"name": "m1"}}},
			},
		},
	)
	selects := func(value string) func() error {
		return func() error {
			u, ok := in()
			if !ok {
				return fmt.Errorf("it is not there")
			}
			if got, _, _ := unstructured.NestedString(u.Object, "spec", "endpointSelector", "matchLabels", "com.trip/redis-cluster"); got != value {
				return fmt.Errorf("it selects %q", got)
			}
			return nil
		}
	}
	eventually(t, "the policy is in the member", selects("bobs"))
	federated := host.resource(t, "types.kubefed.io/v1beta1", "FederatedCiliumClusterwideNetworkPolicy", "")
	eventually(t, "the policy is changed on the host", func() error {
		u, err := federated.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedMap(u.Object, spec("carols"), "spec", "template", "spec"); err != nil {
			return err
		}
		_, err = federated.Update(t.Context(), u, metav1.UpdateOptions{})
		return err
	})
	eventually(t, "the change is in the member", selects("carols"))
	if err := federated.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy is gone from the member", func() error {
		if _, ok := in(); ok {
			return fmt.Errorf("it is still there")
		}
		return nil
	})
	if text := log.String(); strings.Contains(text, "forbidden") {
		at := strings.Index(text, "forbidden")
		t.Errorf("something is forbidden: ... %s", text[max(0, at-400):min(len(text), at+200)])
	}
}
