// Command flow-collector ingests the flows of the member clusters, decides each connection by the policies of the host cluster,
// and stores roll-ups in the flow store. It contains settings, wiring and startup; the logic is in internal/audit.
package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/internal/configuration"
)

func main() { os.Exit(newProgram().Main(os.Args[1:])) }

func newProgram() configuration.Program[options] {
	return configuration.Program[options]{
		Name:  "flow-collector",
		Parse: parse,
		Serve: func(ctx context.Context, o options, stdout, stderr io.Writer) error {
			return o.explain(collect(ctx, o, prometheus.NewRegistry(), stdout, logger(o, stderr)))
		},
	}
}

func logger(o options, w io.Writer) *slog.Logger {
	log := configuration.NewLogger(w, o.logFormat, o.logLevel)
	klog.SetSlogLogger(log.With("component", "kubernetes-client"))
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
	return log
}
