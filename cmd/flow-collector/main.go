// Command flow-collector ingests the flows of the member clusters, decides each connection by the policies of the host cluster,
// and stores roll-ups in the flow store. It contains settings, wiring and startup; the logic is in internal/audit.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
