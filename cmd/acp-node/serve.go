package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/dynamic"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/health"
	"github.com/acp-io/acp/internal/nodereport/ciliumagent"
	"github.com/acp-io/acp/internal/nodereport/reporter"
	"github.com/acp-io/acp/internal/serving"
	"github.com/acp-io/acp/internal/version"
)

// contactTimeout bounds the first request to the API server.
const contactTimeout = 10 * time.Second

func serve(ctx context.Context, o options, logs io.Writer) error {
	log := newLogger(o, logs)
	log.Info("Starting", "node", o.node, "version", version.String())
	config, err := memberConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	writer, err := newWriter(ctx, config, log)
	if err != nil {
		return err
	}
	agent := ciliumagent.New(o.socket)
	defer agent.Close()
	r := reporter.New(reporter.Config{Node: o.node, Agent: agent, Writer: writer, Log: log, Interval: o.interval, Heartbeat: o.heartbeat, Now: time.Now})
	endpoints := serving.NewGroup()
	defer func() { _ = endpoints.Close() }() // closing the probes loses no data
	if err := serveBeside(ctx, endpoints, o, r); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	select {
	case <-ctx.Done():
	case err = <-endpoints.Failed():
	}
	stop()
	<-done
	return err
}

func newLogger(o options, w io.Writer) *slog.Logger {
	log := configuration.NewLogger(w, o.logFormat, o.logLevel)
	klog.SetSlogLogger(log.With("component", "kubernetes-client"))
	return log
}

func memberConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("find the API server of the member; --kubeconfig is needed outside of a pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig: %w", err)
	}
	return config, nil
}

// newWriter returns a writer of reports that belong to the node of the pod, so that they are deleted with the node.
func newWriter(ctx context.Context, config *rest.Config, log *slog.Logger) (reporter.Writer, error) {
	config.UserAgent = "acp-node/" + version.String()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	reviews, err := authentication.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, contactTimeout)
	defer cancel()
	uid, err := reporter.NodeUID(ctx, reviews.SelfSubjectReviews())
	if err != nil {
		return nil, err
	}
	if uid == "" {
		log.Warn("The token does not name a node, so the report is not deleted with the node")
	}
	return reporter.ObjectWriter{Client: client, NodeUID: uid}, nil
}

// errNotReported is the state of the program until it has written its first report.
var errNotReported = errors.New("no report was written yet")

// serveBeside serves the probes and the metrics.
func serveBeside(ctx context.Context, g *serving.Group, o options, r *reporter.Reporter) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(r); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	probes := health.New()
	probes.Started() // it can be given no work, so that there is nothing to wait for
	probes.Require("report", func(ctx context.Context) error {
		if !r.Reported() {
			return errNotReported
		}
		return r.Ready(ctx)
	})
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	mux := http.NewServeMux()
	mux.Handle("/", probes.Handler())
	if o.metricsAddress == "" {
		mux.Handle("GET /metrics", metrics)
	}
	if _, err := g.Serve(ctx, serving.Config{Setting: "health-address", Address: o.healthAddress, Server: health.Server(mux)}); err != nil {
		return err
	}
	if o.metricsAddress == "" {
		return nil
	}
	separate := http.NewServeMux()
	separate.Handle("GET /metrics", metrics)
	_, err := g.Serve(ctx, serving.Config{Setting: "metrics-address", Address: o.metricsAddress, Server: health.Server(separate)})
	return err
}
