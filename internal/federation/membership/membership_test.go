package membership

import (
	"context"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/federation/tokens"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	kubeFedNamespace = "kube-federation-system"
	acpNamespace     = "acp-system"
)

// The servers are shared; each test registers members with its own names on them.
var hostServer, memberServer *testenv.Server

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	start := func(crds ...string) *testenv.Server {
		s, err := testenv.New(testenv.Options{CRDs: crds})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return nil
		}
		return s
	}
	stop := func(s *testenv.Server) {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	hostServer = start("controllers/testdata/host", "controllers/testdata/inventory", "deploy/kubefed", "internal/propagation/ocm/testdata/host")
	if hostServer == nil {
		return 1
	}
	defer stop(hostServer)
	if memberServer = start("controllers/testdata/member"); memberServer == nil {
		return 1
	}
	defer stop(memberServer)
	core := kubernetes.NewForConfigOrDie(hostServer.Config)
	for _, n := range []string{kubeFedNamespace, acpNamespace} {
		if _, err := core.CoreV1().
			Namespaces().
			Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if err := configure(memberServer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// configure creates the parts of Cilium that the preflight reads, as a default installation has them. Every test joins
// the cluster under other names, as if there were several clusters.
func configure(s *testenv.Server) error {
	core, labels := kubernetes.NewForConfigOrDie(s.Config), map[string]string{"k8s-app": "cilium"}
	if _, err := core.CoreV1().ConfigMaps("kube-system").Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cilium-config"},
		Data: map[string]string{"cluster-name": "default", "cluster-id": "0"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := core.AppsV1().
		DaemonSets("kube-system").
		Create(context.Background(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "cilium"}, Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.20.2"}}}}}}, metav1.CreateOptions{})
	return err
}

func host(t *testing.T) *Host {
	t.Helper()
	h, err := NewHost(hostServer.Config, kubeFedNamespace, acpNamespace)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// now is the time of the API servers, which determines the validity of tokens.
func joining(t *testing.T, name string, told *[]Step) *Join {
	t.Helper()
	return &Join{Host: host(t), Cluster: federation.Cluster{Name: name, Endpoint: memberServer.Config.Host, CABundle: memberServer.Config.CAData,
		Labels: map[string]string{"region": "sha"}}, Member: memberServer.Config, Lifetime: 365 * 24 * time.Hour, Now: time.Now,
		OnStep: func(s Step) { *told = append(*told, s) }}
}

func counts(steps []Step) map[Outcome]int {
	out := map[Outcome]int{}
	for _, s := range steps {
		out[s.Outcome]++
	}
	return out
}

func TestJoinIsRepeatableAndLeastPrivileged(t *testing.T) {
	ctx := t.Context()
	var steps []Step
	j := joining(t, "joins", &steps)
	j.DryRun = true
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if c := counts(steps); c[WouldWrite] != len(steps) || len(steps) < 10 {
		t.Errorf("dry run: got steps %v", steps)
	}
	if u, _, err := j.Host.registration(ctx, "joins"); err != nil || u != nil {
		t.Fatalf("the dry run registered the member: %v", err)
	}

	j.DryRun, steps = false, nil
	findings, err := j.Run(ctx)
	if err != nil {
		t.Fatalf("Run: got error %v, findings %v", err, findings)
	}
	registered := slices.IndexFunc(steps, func(s Step) bool {
		return s.Object == "KubeFedCluster "+kubeFedNamespace+"/joins" && s.Outcome == Created
	})
	for i, s := range steps {
		// The tests share the member. If a test with another engine ran before, the join also removes the account of that engine, as its
		// last steps.
		late := strings.HasPrefix(s.Object, "ValidatingAdmissionPolicy") || s.Outcome == Removed
		if registered < 0 || late != (i > registered) {
			t.Errorf("got steps %v, want the registration after everything that it needs and before the guard", steps)
			break
		}
	}
	if len(findings) != 0 {
		t.Errorf("got findings %+v", findings)
	}
	facts, err := j.Host.Facts(ctx, "joins")
	if err != nil {
		t.Fatal(err)
	}
	needed, err := j.Host.Needed(ctx)
	if err != nil || !preflight.Passes(preflight.Assess(facts, preflight.Needs{Kinds: needed})) || slices.Contains(needed, federation.IstioPolicy) {
		t.Errorf("got error %v, facts %+v, needed %v", err, facts, needed)
	}

	token, err := j.Host.token(ctx, kubeFedNamespace, "acp-pusher-joins")
	if err != nil {
		t.Fatal(err)
	}
	config, err := federation.RESTConfig(j.Cluster, token)
	if err != nil {
		t.Fatal(err)
	}
	pusher := kubernetes.NewForConfigOrDie(config)
	if _, err := pusher.CoreV1().Secrets("").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the pusher reads Secrets: got %v, want forbidden", err)
	}
	if body, err := pusher.RESTClient().Get().AbsPath("/healthz").DoRaw(ctx); err != nil || string(body) != "ok" {
		t.Errorf("KubeFed's health check: got %s, %v", body, err)
	}

	steps = nil
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if c := counts(steps); c[Unchanged] != len(steps) {
		t.Errorf("second Run: got steps %v, want all unchanged", steps)
	}

	steps = nil
	real := j.Now
	j.Now = func() time.Time { return real().Add(350 * 24 * time.Hour) }
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if renewed, err := j.Host.token(ctx, kubeFedNamespace, "acp-pusher-joins"); err != nil || renewed == token {
		t.Errorf("a token that expires soon was kept: %v", err)
	}
	if _, c, _ := j.Host.registration(ctx, "joins"); c.AnnouncedToken == "" || c.AnnouncedToken == tokens.Fingerprint(token) {
		t.Error("KubeFed is not notified of the new token")
	}
}

func TestJoinRefuses(t *testing.T) {
	empty := testenv.Start(t, testenv.Options{})
	var steps []Step
	for _, c := range []struct {
		reason string
		change func(*Join)
		want   error
		text   string
	}{
		{"a cluster without the kinds", func(j *Join) { j.Member = empty.Config }, ErrRefused, ""},
		{"labels of classes that are not in identities", func(j *Join) { j.Keys = []preflight.Key{{Class: "redis", Label: "k8s.io/redis"}} }, ErrRefused, ""},
		{"a configuration that is not where it is looked for", func(j *Join) {
			j.Cluster.Locations = federation.ParseLocations(map[string]string{federation.AnnotationCiliumConfig: "cilium/settings"})
		}, ErrRefused, ""},
		{"an address without https", func(j *Join) { j.Cluster.Endpoint = "http://127.0.0.1:1" }, nil, "https"},
		{"a cluster that is not there", func(j *Join) { j.Member = &rest.Config{Host: "https://127.0.0.1:1"} }, ErrRefused, ""},
		{"a member whose address KubeFed cannot use", func(j *Join) { j.Cluster.Endpoint = "https://127.0.0.1:1" }, ErrRefused, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			name := "refused-" + strings.ToLower(strings.ReplaceAll(c.reason, " ", "-"))
			j := joining(t, name, &steps)
			c.change(j)
			ctx, cancel := context.WithTimeout(t.Context(), 2*preflight.Timeout)
			defer cancel()
			_, err := j.Run(ctx)
			switch {
			case c.want != nil && !errors.Is(err, c.want), c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)):
				t.Errorf("Run: got error %v", err)
			}
			if u, _, err := j.Host.registration(t.Context(), name); err != nil || u != nil {
				t.Errorf("the refused cluster was registered: %v", err)
			}
		})
	}
}

// TestTwoOfTheUsualInstallationJoin checks that two clusters of the default installation, with the same name and
// number, can join one fleet and are registered as in no mesh, and that the first declaration stays.
func TestTwoOfTheUsualInstallationJoin(t *testing.T) {
	var steps []Step
	for _, name := range []string{"usual-1", "usual-2", "usual-1"} {
		if findings, err := joining(t, name, &steps).Run(t.Context()); err != nil || len(findings) != 0 {
			t.Fatalf("%s: got error %v, findings %+v", name, err, findings)
		}
	}
	_, c, err := host(t).registration(t.Context(), "usual-1")
	if err != nil || c.Mesh != federation.NoMesh || c.SameMesh(federation.Cluster{Name: "usual-2", Mesh: federation.NoMesh}) {
		t.Errorf("got registration %+v, error %v", c, err)
	}
	meshed := joining(t, "usual-3", &steps)
	meshed.Cluster.Mesh = "east"
	if _, err := meshed.Run(t.Context()); err != nil {
		t.Error(err)
	}
	meshed = joining(t, "usual-4", &steps)
	meshed.Cluster.Mesh = "east"
	if findings, err := meshed.Run(
		t.Context(),
	); !errors.Is(err, ErrRefused) || !slices.ContainsFunc(findings, func(f preflight.Finding) bool { return f.Code == preflight.SameClusterID }) {
		t.Errorf("two clusters of one mesh with the same number: got error %v, findings %+v", err, findings)
	}
}

func TestJoinKeepsANameToItsCluster(t *testing.T) {
	var steps []Step
	j := joining(t, "taken", &steps)
	if _, err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	same := *j
	same.Cluster.Endpoint = strings.Trim(strings.TrimPrefix(j.Cluster.Endpoint, "https://"), "/")
	if _, err := same.Run(t.Context()); err != nil {
		t.Errorf("the same address in another form: %v", err)
	}
	j.Cluster.Endpoint = "https://other.example"
	if _, err := j.Run(t.Context()); !errors.Is(err, ErrNameTaken) {
		t.Errorf("Run: got %v, want ErrNameTaken", err)
	}
}

// TestFixRefusesAnotherPusher checks that a guard that would refuse KubeFed is not installed.
func TestFixRefusesAnotherPusher(t *testing.T) {
	ctx := t.Context()
	var steps []Step
	j := joining(t, "byhand", &steps)
	if _, err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	f := &Fix{Host: j.Host, Name: "byhand", Member: memberServer.Config, OnStep: func(s Step) { steps = append(steps, s) }}
	steps = nil
	if err := f.Run(ctx); err != nil || counts(steps)[Unchanged] != len(steps) || len(steps) < 15 {
		t.Errorf("Run with nothing to fix: got error %v, steps %v", err, steps)
	}
	reading, err := j.Host.token(ctx, acpNamespace, federation.SecretName("byhand"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := toUnstructured(secret(kubeFedNamespace, "acp-pusher-byhand", reading))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := applyObject(ctx, j.Host.dynamic, "host", other, false); err != nil {
		t.Fatal(err)
	}
	steps = nil
	if err := f.Run(ctx); !errors.Is(err, ErrOtherPusher) || !strings.Contains(err.Error(), "acp-system:acp-adapter") {
		t.Errorf("Run: got %v, want ErrOtherPusher", err)
	}
	if slices.ContainsFunc(steps, func(s Step) bool { return strings.HasPrefix(s.Object, "Validating") }) {
		t.Errorf("got steps %v, want no step about the guard", steps)
	}
	f.Name = "nobody"
	if err := f.Run(ctx); !errors.Is(err, ErrUnregistered) {
		t.Errorf("Run for an unregistered member: got %v, want ErrUnregistered", err)
	}
}

func TestFactsReportAMissingSecret(t *testing.T) {
	facts := (&Host{core: fake.NewClientset()}).FactsOf(t.Context(), federation.Cluster{Name: "m1"})
	if facts.Member != "m1" || !strings.Contains(facts.Unreachable, "names no Secret") {
		t.Errorf("facts about a member without secretRef: got %+v", facts)
	}
}

// TestFactsWithoutTheEnginesToken checks that the configuration of a member is read with the adapter's token if KubeFed has none.
func TestFactsWithoutTheEnginesToken(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer reads" || r.URL.Path != "/version" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
	}))
	t.Cleanup(server.Close)
	reader := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: acpNamespace, Name: federation.SecretName("m1")},
		Data:       map[string][]byte{tokenKey: []byte("reads")},
	}
	h := &Host{KubeFedNamespace: kubeFedNamespace, CredentialsNamespace: acpNamespace, core: fake.NewClientset(reader)}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	facts := h.FactsOf(t.Context(), federation.Cluster{Name: "m1", Endpoint: server.URL, CABundle: ca, Secret: "of-kubefed"})
	if !strings.Contains(facts.Unreachable, "of-kubefed") || !facts.ConfigRead() || facts.Version != "v1.36.3" || facts.Cilium.Unread.IsZero() {
		t.Errorf("got %+v", facts)
	}
}
