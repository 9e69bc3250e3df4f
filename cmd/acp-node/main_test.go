package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/deploy/node"
	"github.com/acp-io/acp/internal/configuration/configurationtest"
	"github.com/acp-io/acp/internal/metrictest"
	"github.com/acp-io/acp/internal/nodereport"
	"github.com/acp-io/acp/internal/nodereport/reporter"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

func TestPublishedConfiguration(t *testing.T) {
	var o options
	configurationtest.Published(t, "acp-node", settings(&o))
}

func TestSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		bad  string
	}{
		"Least":         {args: []string{"--node=n1"}},
		"NoNode":        {bad: "--node"},
		"NodeIsNoName":  {args: []string{"--node=a/b"}, bad: "--node"},
		"TooOften":      {args: []string{"--node=n1", "--interval=10ms"}, bad: "--interval"},
		"TooSeldom":     {args: []string{"--node=n1", "--heartbeat=10m"}, bad: "--heartbeat"},
		"NoSocket":      {args: []string{"--node=n1", "--cilium-socket="}, bad: "--cilium-socket"},
		"WrongAddress":  {args: []string{"--node=n1", "--health-address=8081"}, bad: "--health-address"},
		"UnknownOption": {args: []string{"--node=n1", "--nodes=2"}, bad: "--nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args, t.Output())
			if (err != nil) != (tc.bad != "") || err != nil && !strings.Contains(err.Error(), tc.bad) {
				t.Errorf("%v, want %q", err, tc.bad)
			}
		})
	}
}

// serveAgent is an agent with one policy of ACP on a socket, and returns the socket.
func serveAgent(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{
		"/v1/healthz":  `{"cilium":{"state":"Ok"}}`,
		"/v1/endpoint": `[{"id":1,"status":{"state":"ready","policy":{"realized":{"policy-revision":3},"spec":{"policy-revision":3}}}}]`,
		"/v1/policy": `{"revision":3,"policy":"[{\"Labels\":[{\"key\":\"io.cilium.k8s.policy.derived-from\",\"value\":\"CiliumClusterwideNetworkPolicy\",` +
			`\"source\":\"k8s\"},{\"key\":\"io.cilium.k8s.policy.name\",\"value\":\"acp-a\",\"source\":\"k8s\"},` +
			`{\"key\":\"acp.io/revision\",\"value\":\"r1\",\"source\":\"acp\"}]}]"}`,
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // a test
		if r.Method != http.MethodGet {
			t.Errorf("acp-node sends %s %s to the agent", r.Method, r.URL.Path)
		}
		_, _ = w.Write([]byte(answers[r.URL.Path]))
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return socket
}

// podOn returns the configuration of acp-node's pod on a node.
func podOn(t *testing.T, config *rest.Config, name string) (*rest.Config, *corev1.Node) {
	t.Helper()
	core := kubernetes.NewForConfigOrDie(config)
	n, err := core.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod, err := core.CoreV1().Pods("acp-system").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "acp-node-" + name},
		Spec: corev1.PodSpec{NodeName: name, ServiceAccountName: "acp-node", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "acp-node", Image: "acp-node"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := core.CoreV1().ServiceAccounts("acp-system").CreateToken(t.Context(), "acp-node", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		},
	},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := rest.AnonymousClientConfig(config)
	out.BearerToken = token.Status.Token
	return out, n
}

// member is an API server with what deploy/node contains.
func member(t *testing.T) *rest.Config {
	t.Helper()
	server := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/node"}})
	admin, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "acp-system"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "acp-system", Name: "acp-node"}},
	}
	text, err := node.Files.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, u)
	}
	for _, o := range objects {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return server.Config
}

// The program reports with the account and the role of deploy/node alone, and cannot report about another node.
func TestReports(t *testing.T) {
	admin := member(t)
	config, n := podOn(t, admin, "n1")
	reports := dynamic.NewForConfigOrDie(admin).Resource(nodereport.Resource)
	ctx, stop := context.WithCancel(t.Context())
	logs, code := &testenv.Output{}, make(chan int, 1)
	args := []string{
		"--node=n1",
		"--kubeconfig=" + testenv.WriteKubeconfig(t, config),
		"--cilium-socket=" + serveAgent(t),
		"--interval=1s",
		"--health-address=127.0.0.1:0",
	}
	go func() {
		code <- newProgram().Run(ctx, args, logs, logs)
	}()
	// The program sets the logger of client-go first; nothing may log meanwhile.
	eventually.True(t, "the program has started", func() bool { return strings.Contains(logs.String(), "Starting") })
	var r nodereport.Report
	eventually.True(t, "the agent counts, and its policy is realized", func() bool {
		u, err := reports.Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			return false
		}
		if owners := u.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != n.UID {
			t.Fatalf("the report belongs to %+v, want node %s", owners, n.UID)
		}
		r, err = nodereport.Parse(u)
		return err == nil && r.StateOf("acp-a", "r1", time.Now()) == nodereport.Realized
	})
	own := dynamic.NewForConfigOrDie(config).Resource(nodereport.Resource)
	eventually.True(t, "a pod cannot report about another node", func() bool {
		other := nodereport.Report{Node: "n2", Time: time.Now()}
		_, err := own.Create(t.Context(), other.Object(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err)
	})
	stop()
	if c := <-code; c != 0 || strings.Contains(logs.String(), "level=ERROR") || strings.Contains(strings.ToLower(logs.String()), "forbidden") {
		t.Errorf("exit code %d:\n%s", c, logs)
	}
}

func TestMetricsAreDocumented(t *testing.T) {
	metrictest.Compare(t, "node", reporter.New(reporter.Config{}))
}
