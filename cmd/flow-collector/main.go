// Command flow-collector ingests the flows of the member clusters, decides each connection by the policies of the host cluster,
// and stores roll-ups in the flow store. It contains settings, wiring and startup; the logic is in internal/audit.
package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"

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
			return o.explain(unlessStopped(ctx, collect(ctx, o, prometheus.NewRegistry(), stdout, logger(o, stderr))))
		},
	}
}

// unlessStopped returns an error, or nil if it says only that ctx was canceled, which is how the program is told to end, for example while it
// opens the flow store. Another error that is joined to it is returned.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() == nil || !onlyCanceled(err) {
		return err
	}
	return nil
}

func onlyCanceled(err error) bool {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !onlyCanceled(err) })
	}
	return errors.Is(err, context.Canceled)
}

func logger(o options, w io.Writer) *slog.Logger {
	log := configuration.NewLogger(w, o.logFormat, o.logLevel)
	klog.SetSlogLogger(log.With("component", "kubernetes-client"))
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
	return log
}
