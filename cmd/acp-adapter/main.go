// Command acp-adapter compiles access control policies, writes them as federated objects that KubeFed propagates to the
// member clusters, reads the members back, and reports in the objects' statuses what is in force in which member.
package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"

	"github.com/acp-io/acp/internal/configuration"
)

func main() { os.Exit(newProgram().Main(os.Args[1:])) }

func newProgram() configuration.Program[options] {
	return configuration.Program[options]{
		Name:  "acp-adapter",
		Parse: parse,
		Serve: func(ctx context.Context, o options, _, stderr io.Writer) error {
			// Most of the heap is long-lived copies of API objects. A GC percentage of 50 limits memory at little CPU cost. The
			// environment variable GOGC overrides it.
			if os.Getenv("GOGC") == "" {
				debug.SetGCPercent(50)
			}
			return o.explain(serve(ctx, o, stderr))
		},
	}
}
