// Command portal serves ACP's web application and API, and writes approved changes to the host cluster.
package main

import (
	"context"
	"io"
	"os"

	"github.com/acp-io/acp/internal/configuration"
)

func main() {
	if len(os.Args) > 1 {
		if c, ok := commands()[os.Args[1]]; ok {
			os.Exit(c.program(os.Args[1]).Main(os.Args[2:]))
		}
	}
	os.Exit(newProgram().Main(os.Args[1:]))
}

func newProgram() configuration.Program[options] {
	return configuration.Program[options]{
		Name:  "portal",
		Parse: parse,
		Serve: func(ctx context.Context, o options, _, stderr io.Writer) error {
			return o.explain(run(ctx, o, configuration.NewLogger(stderr, o.logFormat, o.logLevel)))
		},
	}
}
