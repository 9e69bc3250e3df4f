// Command flow-collector takes in the flows of the member clusters, decides each connection with the policies of the host
// cluster, and keeps roll-ups in the flow store. It holds flags, wiring and start; what it does is in internal/audit.
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
