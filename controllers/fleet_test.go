package controllers_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/go-logr/logr"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/propagation/ocm"
	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/tracing"
)

const (
	adapterUser = "system:serviceaccount:acp-system:acp-adapter"
	readerToken = "a-token-for-tests"
	pusherUser  = "system:serviceaccount:acp-system:acp-pusher"
	pusherToken = "another-token-for-tests"
	directToken = "one-more-token-for-tests"
	agentToken  = "the-token-of-the-work-agent"
	fedNS       = "kube-federation-system"
	acpNS       = "acp-system"
)

// fleet is a host with a running adapter, and members behind proxies that can be disconnected.
type fleet struct {
	scheme *runtime.Scheme
	host   client.Client
	// hostConfig has the rights of the host's administrator.
	hostConfig *rest.Config
	members    map[string]*memberServer
	clock      *clocktesting.FakeClock
	// stopAdapter stops the running adapter. adapterConfig has its rights.
	stopAdapter   func() error
	adapterConfig *rest.Config
	// writeLimits apply to adapters that are started from now on.
	writeLimits writequeue.Limits
	// metrics is the registry of the running adapter.
	metrics *prometheus.Registry
	// stopFinalizers ends the removal of KubeFed's finalizers, as if KubeFed did not run.
	stopFinalizers func() error
	// tracer is used by adapters that are started from now on.
	tracer *tracing.Tracer
}

type memberServer struct {
	client client.Client
	server *testenv.Server
	proxy  *testenv.Proxy
}

// memberCRDs are the kinds of the members that are started from now on.
var memberCRDs = []string{"controllers/testdata/member"}

// shared is used by all tests that leave its members intact, because starting API servers is slow.
var shared *fleet

func TestMain(m *testing.M) {
	flag.Parse()
	logger := logr.Discard()
	if testing.Verbose() {
		logger = logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	}
	log.SetLogger(logger)
	f, stop, err := newFleet([]string{"deploy/crds", "deploy/kubefed", "controllers/testdata/host"}, "m1", "m2")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = f
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func newFleet(hostCRDs []string, names ...string) (f *fleet, stop func() error, err error) {
	f = &fleet{scheme: runtime.NewScheme(), members: map[string]*memberServer{},
		// The tests act as KubeFed, and not for the objects that earlier tests left.
		writeLimits: writequeue.Limits{MaxPending: 1 << 20, PendingTimeout: time.Hour},
		clock:       clocktesting.NewFakeClock(time.Now().Truncate(time.Second))}
	var stops []func() error
	stop = func() error {
		var errs []error
		for i := len(stops) - 1; i >= 0; i-- {
			errs = append(errs, stops[i]())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	if err := errors.Join(clientgoscheme.AddToScheme(f.scheme), v1alpha1.AddToScheme(f.scheme)); err != nil {
		return nil, stop, err
	}
	// Started one after another, the servers leave processors idle.
	var host *testenv.Server
	members := make([]*memberServer, len(names))
	var servers errgroup.Group
	servers.Go(func() (err error) {
		host, err = testenv.New(testenv.Options{CRDs: hostCRDs})
		return err
	})
	for i := range names {
		servers.Go(func() (err error) {
			members[i], err = f.startMember()
			return err
		})
	}
	err = servers.Wait()
	if host != nil {
		stops = append(stops, host.Stop)
	}
	for _, m := range members {
		if m != nil {
			stops = append(stops, m.stop)
		}
	}
	if err != nil {
		return nil, stop, err
	}
	f.hostConfig = host.Config
	if f.host, err = client.New(host.Config, client.Options{Scheme: f.scheme}); err != nil {
		return nil, stop, err
	}
	if err := f.prepareHost(); err != nil {
		return nil, stop, err
	}
	stopRemoving, err := removeFinalizers(host.Config)
	if err != nil {
		return nil, stop, err
	}
	f.stopFinalizers = stopRemoving
	stops = append(stops, stopRemoving)
	for i, n := range names {
		if err := f.register(n, members[i]); err != nil {
			return nil, stop, err
		}
		f.members[n] = members[i]
	}
	if f.adapterConfig, err = host.As(adapterUser); err != nil {
		return nil, stop, err
	}
	if f.stopAdapter, err = f.startAdapter(f.adapterConfig); err != nil {
		return nil, stop, err
	}
	stops = append(stops, func() error { return f.stopAdapter() })
	return f, stop, nil
}

// restart stops the adapter and starts another one, which has read nothing yet.
func (f *fleet) restart() error {
	if err := f.stopAdapter(); err != nil {
		return err
	}
	f.stopAdapter = func() error { return nil }
	stop, err := f.startAdapter(f.adapterConfig)
	if err == nil {
		f.stopAdapter = stop
	}
	return err
}

func (f *fleet) prepareHost() error {
	for _, n := range []string{fedNS, acpNS} {
		if err := f.host.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}); err != nil {
			return err
		}
	}
	return apply(f.host, "deploy/rbac/host")
}

// startMember starts a member that the host does not know. If it returns one together with an error, the caller has to stop it as well.
func (f *fleet) startMember() (m *memberServer, err error) {
	server, err := testenv.New(
		testenv.Options{CRDs: memberCRDs, Tokens: map[string]string{readerToken: adapterUser, pusherToken: pusherUser,
			directToken: guard.DirectWriter, agentToken: guard.WorkAgent}},
	)
	if err != nil {
		return nil, err
	}
	m = &memberServer{server: server}
	if m.client, err = client.New(server.Config, client.Options{Scheme: f.scheme}); err != nil {
		return m, err
	}
	// The members' rights are partly in ACP's namespace there.
	if err := m.client.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: acpNS}}); err != nil {
		return m, err
	}
	if err := errors.Join(apply(m.client, "deploy/rbac/member"), applyFile(m.client, repositoryFile("deploy/rbac/direct/roles.yaml"))); err != nil {
		return m, err
	}
	if err := configureCilium(m.client); err != nil {
		return m, err
	}
	m.proxy, err = testenv.NewProxy(server)
	return m, err
}

func (m *memberServer) stop() error {
	var errs []error
	if m.proxy != nil {
		errs = append(errs, m.proxy.Close())
	}
	return errors.Join(append(errs, m.server.Stop())...)
}

// configureCilium creates the objects that the adapter reads of a member's dataplane: agents with default settings.
func configureCilium(c client.Client) error {
	labels := map[string]string{"k8s-app": "cilium"}
	agents := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.20.2"}}}}}}
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium-config"},
		Data:       map[string]string{"enable-policy": "default"},
	}
	return errors.Join(c.Create(context.Background(), agents), c.Create(context.Background(), config))
}

// register creates the objects that joining KubeFed creates. KubeFed need not be installed.
func (f *fleet) register(name string, m *memberServer) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: acpNS, Name: federation.SecretName(name)},
		StringData: map[string]string{"token": readerToken}}
	if err := f.host.Create(context.Background(), secret); err != nil {
		return err
	}
	direct := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: acpNS, Name: federation.DirectSecretName(name)},
		StringData: map[string]string{"token": directToken}}
	if err := f.host.Create(context.Background(), direct); err != nil {
		return err
	}
	pusher := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: fedNS, Name: federation.PusherSecretName(name)},
		StringData: map[string]string{"token": pusherToken}}
	if err := f.host.Create(context.Background(), pusher); err != nil {
		return err
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
		"metadata": map[string]any{"name": name, "namespace": fedNS, "labels": map[string]any{"name": name}},
		"spec": map[string]any{"apiEndpoint": "https://" + m.proxy.Address(), "caBundle": encode(m.server.Config.CAData),
			"secretRef": map[string]any{"name": federation.PusherSecretName(name)}},
	}}
	return f.host.Create(context.Background(), cluster)
}

func (f *fleet) startAdapter(as *rest.Config) (stop func() error, err error) {
	as.QPS = -1
	skip := true
	mgr, err := ctrl.NewManager(as, ctrl.Options{Scheme: f.scheme, Logger: log.Log, HealthProbeBindAddress: "0",
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip}})
	if err != nil {
		return nil, err
	}
	f.metrics = prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(context.Background())
	if err := controllers.Setup(
		ctx,
		mgr,
		controllers.Config{KubeFedNamespace: fedNS, CredentialsNamespace: acpNS, Clock: f.clock,
			WriteLimits: f.writeLimits, Metrics: f.metrics, Tracer: f.tracer,
			Probing:        federation.Probing{Interval: 100 * time.Millisecond, Timeout: 5 * time.Second, Failures: 2},
			Checks:         memberhealth.Timing{Interval: 600 * time.Millisecond, RetryInterval: 100 * time.Millisecond},
			Heartbeats:     ocm.Heartbeats{Interval: 300 * time.Millisecond, Timeout: 5 * time.Second},
			StatusInterval: 200 * time.Millisecond, FirstStatusDelay: 300 * time.Millisecond},
	); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// apply creates every object of the YAML files in a folder, whose path is relative to the repository's root.
func apply(c client.Client, dir string) error {
	files, err := filepath.Glob(filepath.Join(testenv.Root(), dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no YAML in %s: %w", dir, err)
	}
	for _, file := range files {
		if err := applyFile(c, file); err != nil {
			return err
		}
	}
	return nil
}

// applyFile creates every object of a YAML file.
func applyFile(c client.Client, file string) error {
	docs, err := documents(file)
	if err != nil {
		return err
	}
	for _, u := range docs {
		if err := c.Create(context.Background(), u); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// documents returns the objects of a YAML file.
func documents(file string) ([]*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(string(raw), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
	return out, nil
}
