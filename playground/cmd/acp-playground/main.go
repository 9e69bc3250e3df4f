// Command acp-playground runs a whole ACP on one machine: real API servers, the real KubeFed, Cilium's policy engine,
// an OIDC provider, and the programs of ACP.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

type command struct {
	name, args, about string
	run               func(ctx context.Context, flags *flag.FlagSet, args []string) error
}

func commands() []command {
	return []command{
		{"up", "", "start everything and keep it until Ctrl-C", up},
		{"parts", "[NAME...]", "build the parts (without a name: kubernetes, dataplane, kubefed) into the cache and print where they are", printParts},
		{"ctl", "status | stop|kill|start|restart NAME", "look at and steer the processes of a running playground", ctl},
		{"clean", "", "remove the state that runs left", clean},
		{"oidc", "", "serve the OIDC provider (started by up)", serveOIDC},
	}
}

// errUsage means that the command line is wrong. As the error itself, without a text of its own, it means that the user was shown why.
var errUsage = errors.New("usage")

// usageError says what is wrong with a command line. It is an errUsage.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// Is makes errors.Is report true for errUsage.
func (e usageError) Is(target error) bool { return target == errUsage }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	switch err := dispatch(ctx, os.Args[1:]); {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		if text := err.Error(); text != errUsage.Error() {
			fmt.Fprintf(os.Stderr, "acp-playground: %s; see --help\n", text)
		}
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "acp-playground:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		usage()
		return errUsage
	}
	if args[0] == "--help" || args[0] == "-h" || args[0] == "help" {
		usage()
		return nil
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		flags.Usage = func() {
			fmt.Fprintf(flags.Output(), "usage: acp-playground %s [flags] %s\n\n%s\n", c.name, c.args, c.about)
			flags.PrintDefaults()
		}
		return c.run(ctx, flags, args[1:])
	}
	return usageError{fmt.Sprintf("there is no command %q", args[0])}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: acp-playground COMMAND [flags]")
	for _, c := range commands() {
		fmt.Fprintf(os.Stderr, "  %-6s %s\n", c.name, c.about)
	}
	fmt.Fprintln(os.Stderr, "acp-playground COMMAND --help explains a command")
}

// parse reads the flags of a command. Only --help prints all of them.
func parse(flags *flag.FlagSet, args []string) error {
	explain := flags.Usage
	flags.Usage = func() {}
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	flags.SetOutput(os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		explain()
		return err
	case err != nil:
		return usageError{strings.Replace(err.Error(), "flag provided but not defined: -", "unknown flag: --", 1)}
	}
	return nil
}
