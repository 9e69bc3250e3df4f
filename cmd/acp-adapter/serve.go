package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers"
	"github.com/acp-io/acp/internal/admission/webhook"
	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/health"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/serving"
	"github.com/acp-io/acp/internal/tracing/otlp"
	"github.com/acp-io/acp/internal/version"
	"github.com/acp-io/acp/internal/wallclock"
)

// contactTimeout bounds the first request to the host, so that a wrong address is reported soon.
const contactTimeout = 10 * time.Second

func serve(ctx context.Context, o options, logs io.Writer) error {
	logger := logr.FromSlogHandler(configuration.NewLogger(logs, o.logFormat, o.logLevel).Handler())
	log.SetLogger(logger)
	klog.SetLogger(logger)
	probes, beside := health.New(), serving.NewGroup()
	defer func() { _ = beside.Close() }() // closing the probes loses no data
	ends := &serving.CertificateEnds{}
	if err := metrics.Registry.Register(ends); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer metrics.Registry.Unregister(ends)
	if err := serveBeside(ctx, beside, o, probes, ends); err != nil {
		return err
	}
	config, err := hostConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	probes.Starting("contacting the host cluster")
	now := newClock(config, logger)
	if err := preflight(ctx, config); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	patient, err := hostcluster.NewRetryingClient(config, func(problem error) {
		if problem != nil {
			logger.Error(problem, "The host cluster does not answer; it is tried again")
			return
		}
		logger.Info("The host cluster answers again")
	})
	if err != nil {
		return err
	}
	pprofAddress := o.pprofAddress
	if pprofAddress == off {
		pprofAddress = ""
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Cache:  cache.Options{HTTPClient: patient, DefaultTransform: cache.TransformStripManagedFields()},
		Scheme: scheme, Logger: logger, HealthProbeBindAddress: off, Metrics: metricsserver.Options{BindAddress: off}, // see serveBeside
		PprofBindAddress:        pprofAddress,
		GracefulShutdownTimeout: &o.shutdownGrace,
		LeaderElection:          o.leaderElect, LeaderElectionID: "acp-adapter", LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true, LeaseDuration: &o.lease.duration, RenewDeadline: &o.lease.deadline, RetryPeriod: &o.lease.retry,
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	traces, err := otlp.Open(
		ctx,
		otlp.Config{
			Settings: o.tracing,
			Service:  "acp-adapter",
			Version:  version.String(),
			Log:      slog.New(logr.ToSlogHandler(logger)),
			Metrics:  metrics.Registry,
		},
	)
	if err != nil {
		return err
	}
	if err := controllers.Setup(ctx, mgr, controllers.Config{
		KubeFedNamespace:       o.kubefedNamespace,
		CredentialsNamespace:   o.namespace,
		TokenChecks:            o.tokenChecks,
		WriteLimits:            o.push,
		ConcurrentDirectWrites: o.directWrites,
		Workers:                o.workers,
		Metrics:                metrics.Registry,
		Clock:                  now,
		ClockLag:               now.Behind,
		Tracer:                 traces.Tracer(),
	}); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if o.webhookAddress != "" {
		instance, err := os.Hostname()
		if err != nil {
			instance = "acp-adapter"
		}
		reporter, err := webhook.NewReporter(config, o.namespace, instance)
		if err != nil {
			return fmt.Errorf("start: %w", err)
		}
		hook, err := webhook.New(
			ctx,
			o.webhookAddress,
			o.webhookCertificate.CertFile,
			o.webhookCertificate.KeyFile,
			&webhook.Handler{
				Cached: mgr.GetCache(),
				Live:   mgr.GetAPIReader(),
				Now:    now.Now,
				Report: reporter.Report,
				Own:    []string{webhook.User(o.namespace, o.portal), webhook.User(o.namespace, o.account)},
			},
		)
		if err != nil {
			return fmt.Errorf("start: %w", err)
		}
		ends.Add("webhook-address", hook.GetCertificate)
		if err := errors.Join(mgr.Add(reporter), mgr.Add(hook)); err != nil {
			return fmt.Errorf("start: %w", err)
		}
	}
	probes.Starting("listing the host's objects")
	probes.Require("host cache", listed(ctx, mgr, probes))
	context.AfterFunc(ctx, probes.Stopping)
	err = start(ctx, mgr, beside)
	traces.Close(context.WithoutCancel(ctx))
	return err
}

// serveBeside serves the probes and the metrics. It is called before the host cluster is contacted.
func serveBeside(ctx context.Context, g *serving.Group, o options, probes *health.Probes, ends *serving.CertificateEnds) error {
	if o.healthAddress != off {
		if _, err := g.Serve(ctx, serving.Config{Setting: "health-address", Address: o.healthAddress, Server: health.Server(probes.Handler())}); err != nil {
			return err
		}
	}
	if o.metricsAddress == off {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	_, err := g.Serve(ctx, serving.Config{
		Setting: "metrics-address", Address: o.metricsAddress, Certificate: o.metricsCertificate, Ends: ends, Server: health.Server(mux),
	})
	return err
}

// start runs the manager until the context ends or one of the endpoints fails.
func start(ctx context.Context, mgr ctrl.Manager, beside *serving.Group) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-beside.Failed():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	err := mgr.Start(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return err
}

// newClock returns the clock by which grants begin and end. It compares its time with the responses to clients of the config.
func newClock(config *rest.Config, logger logr.Logger) *hostcluster.Clock {
	c := &hostcluster.Clock{WithTicker: wallclock.Clock(), OnChange: func(behind time.Duration) {
		if behind == 0 {
			logger.Info("This machine's clock is right again")
			return
		}
		logger.Error(nil, "This machine's clock is behind the host cluster's, whose time is taken: synchronise both", "behind", behind)
	}}
	config.Wrap(c.Wrap)
	return c
}

// listed returns a readiness check that succeeds after the host's objects were listed, and then marks the program as started.
func listed(ctx context.Context, mgr ctrl.Manager, probes *health.Probes) health.Check {
	synced := make(chan struct{})
	go func() {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			probes.Started()
			close(synced)
		}
	}()
	return func(context.Context) error {
		select {
		case <-synced:
			return nil
		default:
			return errors.New("the host's objects are being listed")
		}
	}
}

func hostConfig(kubeconfig string) (*rest.Config, error) {
	config, err := hostcluster.Config(kubeconfig)
	if err != nil {
		return nil, err
	}
	// The API server of the host has its own fair limits; a limit in the client would only delay revocations.
	config.QPS = -1
	config.UserAgent = "acp-adapter"
	return config, nil
}

// preflight contacts the host once and checks that ACP's kinds are installed.
func preflight(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, contactTimeout)
	defer cancel()
	missing, err := hostcluster.Unserved(ctx, config, hostcluster.AllKinds())
	switch {
	case apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err):
		return fmt.Errorf("the host cluster at %s refuses the adapter's credentials: renew them, and apply deploy/rbac/host: %w", config.Host, err)
	case err != nil:
		return fmt.Errorf("the host cluster does not answer at %s: check that it runs and that the kubeconfig names it: %w", config.Host, err)
	case len(missing) > 0:
		names := make([]string, 0, len(missing))
		for _, k := range missing {
			names = append(names, k.Name)
		}
		return fmt.Errorf("the host cluster has no %s %s: run `kubectl apply -f deploy/crds/` there", v1alpha1.GroupVersion, strings.Join(names, ", "))
	}
	return statusesAreKept(ctx, config)
}

// statusesAreKept checks that the host's CRDs have all fields of the statuses that the adapter writes. The API server would drop
// unknown fields, and a reader would then take the remaining members for all members. An adapter therefore does not start with
// older CRDs; with leader election, the replica of the previous version continues.
func statusesAreKept(ctx context.Context, config *rest.Config) error {
	dropped, err := hostcluster.UnservedFields(ctx, config, hostcluster.AllKinds())
	if err != nil {
		return fmt.Errorf("whether the host cluster at %s keeps what the adapter writes is unknown: %w", config.Host, err)
	}
	if len(dropped) > 0 {
		const shown = 5
		text := strings.Join(dropped[:min(len(dropped), shown)], ", ")
		if more := len(dropped) - shown; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		return fmt.Errorf(
			"the host cluster's definitions of %s are older than this adapter, which would lose parts of statuses (%s): "+
				"run `kubectl apply -f deploy/crds/` there",
			v1alpha1.GroupVersion,
			text,
		)
	}
	return nil
}
