// Command acp-node runs on each node of a member. It reads from the node's Cilium agent which revision of ACP's policies it has and
// whether every endpoint enforces it, and writes the answer to the member's API server, where the adapter reads it. It
// contains settings, wiring and startup; the logic is in internal/nodereport.
package main

import (
	"context"
	"io"
	"os"

	"github.com/acp-io/acp/internal/configuration"
)

func main() { os.Exit(newProgram().Main(os.Args[1:])) }

func newProgram() configuration.Program[options] {
	return configuration.Program[options]{
		Name:  "acp-node",
		Parse: parse,
		Serve: func(ctx context.Context, o options, _, stderr io.Writer) error {
			return o.explain(serve(ctx, o, stderr))
		},
	}
}
