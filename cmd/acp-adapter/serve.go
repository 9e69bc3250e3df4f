package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers"
)

// contactTimeout bounds how long the first contact with the host may take, so that a wrong address is told soon.
const contactTimeout = 10 * time.Second

// kinds that the adapter watches; without them it has nothing to do.
var kinds = []string{"AccessControlPolicy", "ProtectedResource", "ResourceClass", "SubjectClass", "ExternalWorkload"}

func serve(ctx context.Context, o options, logs io.Writer) error {
	logger, err := newLogger(o, logs)
	if err != nil {
		return err
	}
	log.SetLogger(logger)
	klog.SetLogger(logger)
	config, err := hostConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	if err := preflight(config); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: logger, HealthProbeBindAddress: o.healthAddress,
		Metrics:        metricsserver.Options{BindAddress: o.metricsAddress},
		LeaderElection: o.leaderElect, LeaderElectionID: "acp-adapter", LeaderElectionNamespace: o.credentialsNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := controllers.Setup(ctx, mgr, controllers.Config{
		KubeFedNamespace: o.kubefedNamespace, CredentialsNamespace: o.credentialsNamespace,
	}); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("listed", listed(ctx, mgr))); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return mgr.Start(ctx)
}

// listed is ready when the host's objects were listed.
func listed(ctx context.Context, mgr ctrl.Manager) healthz.Checker {
	synced := make(chan struct{})
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			close(synced)
		}
	}()
	return func(*http.Request) error {
		select {
		case <-synced:
			return nil
		default:
			return errors.New("the host's objects are being listed")
		}
	}
}

func hostConfig(kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, errors.New("no --kubeconfig is given, and this is not a pod with a service account: give the host cluster's kubeconfig")
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("--kubeconfig %s cannot be used: %w", kubeconfig, err)
	}
	// The host's API server limits fairly by itself; a limit here would only delay revocations.
	config.QPS = -1
	config.UserAgent = "acp-adapter"
	return config, nil
}

// preflight contacts the host once and looks for ACP's kinds, because informers would only wait for them in silence.
func preflight(config *rest.Config) error {
	short := rest.CopyConfig(config)
	short.Timeout = contactTimeout
	client, err := discovery.NewDiscoveryClientForConfig(short)
	if err != nil {
		return fmt.Errorf("the host cluster's kubeconfig cannot be used: %w", err)
	}
	list, err := client.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the host cluster has no %s: run `kubectl apply -f deploy/crds/` there", v1alpha1.GroupVersion)
	case apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err):
		return fmt.Errorf("the host cluster at %s refuses the adapter's credentials: renew them, and apply deploy/rbac/host: %w", config.Host, err)
	case err != nil:
		return fmt.Errorf("the host cluster does not answer at %s: check that it runs and that the kubeconfig names it: %w", config.Host, err)
	}
	served := map[string]bool{}
	for _, r := range list.APIResources {
		served[r.Kind] = true
	}
	var missing []string
	for _, k := range kinds {
		if !served[k] {
			missing = append(missing, k)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the host cluster has no %s %s: run `kubectl apply -f deploy/crds/` there", v1alpha1.GroupVersion, strings.Join(missing, ", "))
	}
	return nil
}

func newLogger(o options, w io.Writer) (logr.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level %q is not debug, info, warn or error", o.logLevel)
	}
	opts := &slog.HandlerOptions{Level: level}
	if o.logFormat == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(w, opts)), nil
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(w, opts)), nil
}
