package configuration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of the programs.
const (
	// ExitOK is the code after success.
	ExitOK = iota
	// ExitError is the code after an error.
	ExitError
	// ExitUsage is the code after a wrong command line, environment or configuration file.
	ExitUsage
)

// Program is a program, or a command of one, whose settings have the type O.
type Program[O any] struct {
	// Name begins each error message, for example "portal backup".
	Name string
	// Parse parses the settings. It returns ErrAnswered if it answered a question of the command line on stdout.
	Parse func(args []string, stdout io.Writer) (O, error)
	// Serve does the program's work until it is done or ctx ends.
	Serve func(ctx context.Context, o O, stdout, stderr io.Writer) error
}

// Run parses the arguments, serves, writes an error to stderr, and returns the exit code.
func (p Program[O]) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := p.Parse(args, stdout)
	switch {
	case errors.Is(err, ErrAnswered):
		return ExitOK
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "%s: %s; see --help\n", p.Name, err)
		return ExitUsage
	}
	if err := p.Serve(ctx, o, stdout, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %s\n", p.Name, err)
		return ExitError
	}
	return ExitOK
}

// Main runs the program with the arguments of the process, and returns the exit code. SIGINT and SIGTERM end the context of Serve.
func (p Program[O]) Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return p.Run(ctx, args, os.Stdout, os.Stderr)
}
