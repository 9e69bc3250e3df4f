package istio

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	// istioDirVariable is the environment variable with the folder of istiod and its CRDs: the part "istio" of the playground.
	istioDirVariable = "ACP_ISTIO"
	// ambientNamespace is the namespace of the pods that ztunnel protects.
	ambientNamespace = "ambient"
	startTimeout     = 2 * time.Minute
	// pushTimeout bounds the time until istiod sends what was written.
	pushTimeout = 30 * time.Second
	writers     = 8
	meshConfig  = "defaultConfig: {discoveryAddress: 127.0.0.1:15012}\nrootNamespace: " + rootNamespace + "\ntrustDomain: cluster.local\n"
)

// gatewayAPI contains the kinds of the Gateway API.
const gatewayAPI = "conformance/istio/testdata/gateway-api.yaml"

// controlPlane is a real API server with a real istiod.
type controlPlane struct {
	client client.Client
	// config has the rights of an administrator of the API server.
	config *rest.Config
	istiod *grpc.ClientConn
	// warnings are those of the API server.
	warnings *warnings
	http     string
	pushed   int
	// pid is the process of istiod.
	pid int
	// sharedConfig is the name of the ConfigMap of SHARED_MESH_CONFIG. If it is not "", istiod takes its mesh configuration from ConfigMaps.
	sharedConfig string
}

// startControlPlane starts an API server with Istio's kinds, and those of further files, and istiod as a process. Both stop with the test.
func startControlPlane(t testing.TB, kinds ...string) *controlPlane {
	t.Helper()
	p, start := newControlPlane(t, kinds...)
	start()
	return p
}

// newControlPlane is startControlPlane, and start starts istiod.
func newControlPlane(t testing.TB, kinds ...string) (p *controlPlane, start func()) {
	t.Helper()
	parts := os.Getenv(istioDirVariable)
	if parts == "" {
		t.Fatalf("%s is not set: run `make conformance-istio`", istioDirVariable)
	}
	crds, err := filepath.Rel(testenv.Root(), filepath.Join(parts, "istio-crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	server := testenv.Start(t, testenv.Options{CRDs: append([]string{crds}, kinds...)})
	config, collected := server.Config, &warnings{}
	config.QPS, config.WarningHandler = -1, collected
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{rootNamespace, namespace, ambientNamespace} {
		labels := map[string]string{}
		if name == ambientNamespace {
			labels["istio.io/dataplane-mode"] = "ambient"
		}
		if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	p = &controlPlane{client: c, config: server.Config, warnings: collected}
	return p, func() { p.start(t, filepath.Join(parts, "istiod"), server.Kubeconfig()) }
}

// start starts istiod with the text of a kubeconfig, and waits until it is ready and validates what is written to the API server.
func (p *controlPlane) start(t testing.TB, program string, text []byte) {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, mesh := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "mesh.yaml")
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mesh, []byte(meshConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	httpAddress, httpsAddress, grpcAddress := testenv.FreeAddress(t), testenv.FreeAddress(t), testenv.FreeAddress(t)
	host, _, err := net.SplitHostPort(httpsAddress)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := servingFlags(dir, host)
	if err != nil {
		t.Fatal(err)
	}
	logFile, err := os.Create(filepath.Join(dir, "istiod.log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	arguments := []string{
		"discovery", "--kubeconfig", kubeconfig, "--httpAddr", httpAddress, "--httpsAddr", httpsAddress, "--grpcAddr", grpcAddress,
		"--secureGRPCAddr", "", "--monitoringAddr", testenv.FreeAddress(t), "--ctrlz_port", "0",
	}
	if p.sharedConfig == "" {
		arguments = append(arguments, "--meshConfig", mesh)
	}
	cmd := exec.CommandContext(ctx, program, append(arguments, serving...)...) //nolint:gosec // the program is a part of the tests
	cmd.Env = append(os.Environ(), "ENABLE_CA_SERVER=false", "PILOT_CERT_PROVIDER=none", "POD_NAMESPACE="+rootNamespace, "POD_NAME=istiod",
		"REVISION=default", "CLUSTER_ID=Kubernetes", "PILOT_ENABLE_AMBIENT=true", "VALIDATION_WEBHOOK_CONFIG_NAME=istio-validator-"+rootNamespace,
		"INJECTION_WEBHOOK_CONFIG_NAME=", "ISTIOD_CUSTOM_HOST=",
		// Tests write Gateways, their classes and their addresses themselves.
		"PILOT_ENABLE_GATEWAY_API_STATUS=false", "PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER=false",
		"PILOT_ENABLE_GATEWAY_API_GATEWAYCLASS_CONTROLLER=false", "SHARED_MESH_CONFIG="+p.sharedConfig)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, logFile, logFile
	if err := cmd.Start(); err != nil {
		t.Fatalf("start istiod: %v", err)
	}
	p.pid = cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // The log contains the reason.
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if err := logFile.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			text, _ := os.ReadFile(logFile.Name())
			t.Logf("the end of istiod's log:\n%s", text[max(0, len(text)-4000):])
		}
	})
	p.http = "http://" + httpAddress
	if err := p.untilReady(ended); err != nil {
		t.Fatal(err)
	}
	if p.istiod, err = grpc.NewClient(grpcAddress, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.istiod.Close() })
	p.registerWebhooks(t, httpsAddress)
}

func (p *controlPlane) untilReady(ended <-chan struct{}) error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := p.ready()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("istiod ended")
		case <-time.After(100 * time.Millisecond): // poll interval
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("istiod is not ready: %w", err)
		}
	}
}

// ready returns nil if istiod reports that it is ready.
func (p *controlPlane) ready() error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, p.http+"/ready", nil)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("request the state of istiod: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

func policyObject(o *enforcer.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": (&unstructured.Unstructured{Object: o.Spec}).DeepCopy().Object}}
	u.SetAPIVersion(o.GroupVersion)
	u.SetKind(o.Kind)
	u.SetName(o.Name)
	u.SetNamespace(rootNamespace)
	u.SetLabels(o.Labels)
	return u
}

// write writes policies, which istiod's webhook must accept without a warning, and waits until istiod sends configuration that contains them.
func (p *controlPlane) write(ctx context.Context, objects []enforcer.Object) error {
	g, writing := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i := range objects {
		u := policyObject(&objects[i])
		g.Go(func() error {
			if err := p.client.Create(writing, u, client.FieldValidation("Strict")); err != nil {
				return fmt.Errorf("write the policy %s: %w", u.GetName(), err)
			}
			return nil
		})
	}
	if err := errors.Join(g.Wait(), p.warnings.take()); err != nil {
		return err
	}
	return p.untilPushed(ctx)
}

// untilPushed writes one more policy and waits until istiod sends it. Istiod reads policies in the order in which they were written.
func (p *controlPlane) untilPushed(ctx context.Context) error {
	p.pushed++
	labels := map[string]string{"marker": fmt.Sprint("m", p.pushed)}
	last := enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: fmt.Sprint("marker-", p.pushed), Spec: map[string]any{
		"action": "ALLOW", "selector": map[string]any{"matchLabels": map[string]any{"marker": labels["marker"]}},
	}}
	if err := p.client.Create(ctx, policyObject(&last)); err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	deadline := time.Now().Add(pushTimeout)
	for {
		got, err := sidecarOf(ctx, p.istiod, labels)
		if err == nil && len(got.http) > 0 && len(got.tcp) > 0 {
			return nil
		}
		if err == nil {
			err = errors.New("the rules of the marker are missing")
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("istiod does not send the marker: %w", err)
		}
		time.Sleep(20 * time.Millisecond) // poll interval
	}
}

// clear deletes all policies of the root namespace.
func (p *controlPlane) clear(ctx context.Context) error { return p.clearIn(ctx, rootNamespace) }

// clearIn deletes all policies of some namespaces.
func (p *controlPlane) clearIn(ctx context.Context, namespaces ...string) error {
	for _, in := range namespaces {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("security.istio.io/v1")
		u.SetKind("AuthorizationPolicy")
		if err := p.client.DeleteAllOf(ctx, u, client.InNamespace(in)); err != nil {
			return fmt.Errorf("delete all policies: %w", err)
		}
	}
	return nil
}

// createPods creates running pods in ambient, by name, with their labels.
func (p *controlPlane) createPods(ctx context.Context, pods map[string]map[string]string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ambientNamespace, Name: "default"}}
	if err := client.IgnoreAlreadyExists(p.client.Create(ctx, account)); err != nil {
		return fmt.Errorf("create the service account: %w", err)
	}
	g, writing := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	address := netip.MustParseAddr("10.210.0.0")
	for name, labels := range pods {
		address = address.Next()
		at := address.String()
		g.Go(func() error {
			o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ambientNamespace, Name: name, Labels: labels},
				Spec: corev1.PodSpec{NodeName: "node", ServiceAccountName: "default", Containers: []corev1.Container{{Name: "server", Image: "server"}}}}
			if err := p.client.Create(writing, o); err != nil {
				return fmt.Errorf("create the pod %s: %w", name, err)
			}
			o.Status = runningAt(at)
			if err := p.client.Status().Update(writing, o); err != nil {
				return fmt.Errorf("start the pod %s: %w", name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// runningAt is the status of a pod that is ready at an address.
func runningAt(address string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
}

// deletePods deletes the pods in ambient.
func (p *controlPlane) deletePods(ctx context.Context) error {
	if err := p.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(ambientNamespace), client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete all pods: %w", err)
	}
	return nil
}

// untilAmbient waits until istiod sends ztunnel these numbers of policies for pods.
func (p *controlPlane) untilAmbient(ctx context.Context, policies map[string]int) (map[string]connectionPolicies, error) {
	deadline := time.Now().Add(pushTimeout)
	for {
		state, err := ztunnelState(ctx, p.istiod)
		for pod, n := range policies {
			if err == nil && len(state[pod]) != n {
				err = fmt.Errorf("istiod sends %d of %d policies of %s", len(state[pod]), n, pod)
			}
		}
		if err == nil {
			return state, nil
		}
		if time.Now().After(deadline) {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond) // poll interval
	}
}
