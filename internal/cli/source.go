package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/policy"
)

// source contains the flags that select the objects, and the instant of the queries.
type source struct {
	streams    Streams
	paths      []string
	strict     bool
	kubeconfig string
	context    string
	at         string
	known      string
}

func (o *source) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&o.paths, "filename", "f", nil, "`FILE|DIR` with objects, or - for standard input; repeatable; none: the cluster")
	f.BoolVar(&o.strict, "strict", false, "refuse kinds that are not ACP's instead of ignoring them with a warning")
	hostClusterFlags(cmd, &o.kubeconfig, &o.context)
	f.StringVar(&o.known, "known-names", "", "`FILE` with the names that exist in the members, one per line, for prefixes such as app/team-*")
	f.StringVar(&o.at, "at", "", "`INSTANT` at which statements are evaluated, such as 2026-01-31T12:00:00Z (default: now)")
}

// instant returns the instant of the query.
func (o *source) instant() (time.Time, error) {
	if o.at == "" {
		return o.streams.Now(), nil
	}
	t, err := time.Parse(time.RFC3339, o.at)
	if err != nil {
		return time.Time{}, usage("--at %q is not an instant such as 2026-01-31T12:00:00Z", o.at)
	}
	return t, nil
}

// load reads the objects. args are more paths, so that -f works with a shell's wildcards. Warnings are printed; errors
// are printed completely and end the command.
func (o *source) load(ctx context.Context, args []string) (*manifest.Set, error) {
	set, err := o.read(ctx, args)
	if err != nil {
		return nil, err
	}
	for _, i := range set.Issues {
		fmt.Fprintln(o.streams.Err, i.Render(language()))
	}
	if set.Failed() {
		return nil, &failure{code: ExitInvalid}
	}
	return set, nil
}

// read is load without validation.
func (o *source) read(ctx context.Context, args []string) (*manifest.Set, error) {
	if len(o.paths) == 0 {
		if len(args) > 0 {
			return nil, usage("unexpected argument %q: name files with -f", args[0])
		}
		set, err := o.cluster(ctx)
		return o.completed(set, err)
	}
	set, err := o.files(ctx, slices.Concat(o.paths, args)...)
	return o.completed(set, err)
}

// completed adds what is not in the objects: the existing names, and the members.
func (o *source) completed(set *manifest.Set, err error) (*manifest.Set, error) {
	if err != nil {
		return nil, err
	}
	fleet := set.Fleet()
	if o.known == "" {
		set.Input = policy.NewInput(set.Input.Objects(), fleet)
		return set, nil
	}
	text, err := os.ReadFile(o.known)
	if err != nil {
		return nil, invalid(fmt.Errorf("read the known names: %w", err))
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		name := strings.TrimSpace(line)
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if _, err := policy.ParseName(name); err != nil {
			return nil, invalid(fmt.Errorf("%s:%d: %w", o.known, number, err))
		}
		fleet.KnownNames = append(fleet.KnownNames, name)
	}
	set.Input = policy.NewInput(set.Input.Objects(), fleet)
	return set, nil
}

func (o *source) files(ctx context.Context, paths ...string) (*manifest.Set, error) {
	r := &manifest.Reader{Strict: o.strict, Stdin: o.streams.In}
	set, err := r.Read(ctx, paths...)
	if err != nil {
		return nil, invalid(err)
	}
	return set, nil
}

func (o *source) cluster(ctx context.Context) (*manifest.Set, error) {
	config, err := hostKubeconfig(o.kubeconfig, o.context)
	if err != nil {
		return nil, fmt.Errorf("no files are named with -f, and the cluster cannot be used: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, invalid(fmt.Errorf("the cluster's configuration cannot be used: %w", err))
	}
	set, err := manifest.FromCluster(ctx, client)
	if err != nil {
		return nil, invalid(err)
	}
	return set, nil
}
