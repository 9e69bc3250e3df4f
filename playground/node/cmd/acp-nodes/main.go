// Command acp-nodes runs real Kubernetes clusters on this machine, each with one node and Cilium as its network. It installs nothing.
// It needs root on Linux.
package main

import (
	"archive/tar"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/acp-io/acp/playground/internal/run"
	"github.com/acp-io/acp/playground/node/internal/cluster"
	"github.com/acp-io/acp/playground/node/internal/sandbox"
)

type command struct {
	name, args, about string
	run               func(ctx context.Context, flags *flag.FlagSet, args []string) error
}

func commands() []command {
	return []command{
		{"up", "", "start clusters and keep them until Ctrl-C", up},
		{"down", "", "end the clusters of another process, and remove what a killed one left", down},
		{"exec", "CLUSTER PROGRAM [ARGUMENT...]", "run a program in a node, such as kubectl, cilium-dbg, ctr or ip", execIn},
		{"load", "CLUSTER FILE...", "import container images, from files or from folders of OCI layouts, into a node", load},
		{"check", "", "find out whether this machine can run a node", check},
	}
}

// errUsage reports a wrong call whose explanation was printed already.
var errUsage = errors.New("usage")

// exitError is the exit status of a program that was run in a node.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func main() {
	if len(os.Args) > 1 {
		if status, ok := Inside(os.Args[1:]); ok {
			os.Exit(status)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var exit exitError
	switch err := dispatch(ctx, os.Args[1:]); {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case errors.As(err, &exit):
		os.Exit(int(exit))
	default:
		fmt.Fprintln(os.Stderr, "acp-nodes:", err)
		os.Exit(1)
	}
}

// Inside runs the part of this program that runs in a sandbox, if the arguments select it. ok reports whether they do.
func Inside(args []string) (status int, ok bool) {
	switch {
	case len(args) == 2 && args[0] == sandbox.InitCommand:
		status, err := sandbox.Init(args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, "acp-nodes init:", err)
			return 1, true
		}
		return status, true
	case len(args) == 2 && args[0] == cluster.ManageCommand:
		if err := manage(args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "acp-nodes manage:", err)
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// manage runs cluster.Manage with the file descriptors that cluster.Up passes: the lifeline, the pipe for events, and a number of
// listeners.
func manage(listening string) error {
	count, err := strconv.Atoi(listening)
	if err != nil {
		return err
	}
	const first = 3
	for fd := range 2 + count {
		syscall.CloseOnExec(first + fd)
	}
	lifeline, events := os.NewFile(first, "lifeline"), os.NewFile(first+1, "events")
	var listeners []net.Listener
	for n := range count {
		file := os.NewFile(uintptr(first+2+n), "listener")
		listener, err := net.FileListener(file)
		if err != nil {
			return fmt.Errorf("take over an address of the machine: %w", err)
		}
		file.Close()
		listeners = append(listeners, listener)
	}
	return cluster.Manage(lifeline, events, listeners)
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
			fmt.Fprintf(flags.Output(), "usage: acp-nodes %s [flags] %s\n\n%s\n", c.name, c.args, c.about)
			flags.PrintDefaults()
		}
		return c.run(ctx, flags, args[1:])
	}
	fmt.Fprintf(os.Stderr, "acp-nodes: there is no command %q\n", args[0])
	usage()
	return errUsage
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: acp-nodes COMMAND [flags]")
	for _, c := range commands() {
		fmt.Fprintf(os.Stderr, "  %-6s %s\n", c.name, c.about)
	}
	fmt.Fprintln(os.Stderr, "acp-nodes COMMAND --help explains a command")
}

// parse returns errUsage for a wrong flag, because the flag set has printed the error already.
func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return errUsage
}

// folders contains the flags with the paths of the repository and of the state.
type folders struct{ repo, state *string }

func folderFlags(flags *flag.FlagSet) folders {
	return folders{
		repo:  flags.String("repo", ".", "the ACP repository, or a folder in it"),
		state: flags.String("state-dir", "", "folder of the nodes' disks and logs while they run (default: .nodes of the repository)"),
	}
}

func (f folders) resolve() (repo, state string, err error) {
	if repo, err = run.FindRepo(*f.repo); err != nil && *f.state == "" {
		return "", "", err
	}
	if *f.state == "" {
		return repo, filepath.Join(repo, ".nodes"), nil
	}
	state, err = filepath.Abs(*f.state)
	return repo, state, err
}

func check(_ context.Context, flags *flag.FlagSet, args []string) error {
	f := folderFlags(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	_, state, err := f.resolve()
	if err != nil {
		return err
	}
	if err := sandbox.Check(existing(state)); err != nil {
		return err
	}
	fmt.Println("this machine can run a node, as far as can be found out without starting one")
	return nil
}

// existing returns the nearest folder above a path that exists.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

func execIn(_ context.Context, flags *flag.FlagSet, args []string) error {
	f := folderFlags(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		flags.Usage()
		return errUsage
	}
	return inNode(f, flags.Arg(0), flags.Args()[1:])
}

func inNode(f folders, name string, args []string) error {
	_, state, err := f.resolve()
	if err != nil {
		return err
	}
	status, err := cluster.RunIn(filepath.Join(state, name), args)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if status != 0 {
		return exitError(status)
	}
	return nil
}

func load(_ context.Context, flags *flag.FlagSet, args []string) error {
	f := folderFlags(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		flags.Usage()
		return errUsage
	}
	for _, path := range flags.Args()[1:] {
		if err := loadImage(f, flags.Arg(0), path); err != nil {
			return err
		}
	}
	return nil
}

// loadImage imports an image from a tar file or from the folder of an OCI layout. It passes the image through the standard input
// of the importing program, because the node does not see the machine's files.
func loadImage(f folders, name, path string) error {
	input, err := os.Open(path)
	if err != nil {
		return err
	}
	defer input.Close()
	info, err := input.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		read, write, err := os.Pipe()
		if err != nil {
			return err
		}
		defer read.Close()
		go func() {
			defer write.Close()
			w := tar.NewWriter(write)
			// The import refuses an archive that is incomplete because of an error.
			if err := w.AddFS(os.DirFS(path)); err != nil {
				fmt.Fprintln(os.Stderr, "acp-nodes: read the layout:", err)
				return
			}
			if err := w.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "acp-nodes: read the layout:", err)
			}
		}()
		input = read
	}
	if err := syscall.Dup2(int(input.Fd()), 0); err != nil {
		return err
	}
	return inNode(f, name, []string{"ctr", "images", "import", "-"})
}
