package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/memberdowngrade"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// downgradeFlags are the flags of downgrade and resume.
type downgradeFlags struct {
	streams             Streams
	kubeconfig, context string
	reason              string
	yes, dryRun         bool
	nodes               bool
	cilium              string
}

func (d *downgradeFlags) member(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&d.kubeconfig, "kubeconfig", "", "kubeconfig `FILE` with the member's context (default: that of kubectl)")
	f.StringVar(&d.context, "context", "", "`NAME` of the member's context")
}

func newDowngrade(s Streams) *cobra.Command {
	d := &downgradeFlags{streams: s}
	cmd := &cobra.Command{
		Use:   "downgrade --context MEMBER --reason REASON",
		Short: "Open everything that ACP closes in one member, without the control plane",
		Long: `Use this in an emergency in which the control plane is unavailable or wrong. It changes every policy that ACP manages in the
member to its form in Audit: without default deny, denies and rules about requests, so that every client is let in. First it
writes a mark. While the mark exists, the member's guard refuses writes of KubeFed, and the adapter writes nothing to the
member and reports the downgrade. It lasts until kubectl acp resume.

You need the rights of the group acp:break-glass: as a member of the group, or as a user who may impersonate it, such as an
administrator. If the control plane works, use the portal instead: there a downgrade has an end and is visible to others.

With --nodes the command prints what to do on each node if the member's API server is unavailable as well, for the version of
Cilium that runs there or that --cilium-version names. It changes nothing.

The exit code is 1 if you did not confirm, or if a policy stays closed.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.nodes {
				return d.procedure(cmd)
			}
			return d.run(cmd)
		},
	}
	d.member(cmd)
	f := cmd.Flags()
	f.StringVar(&d.reason, "reason", "", "`TEXT` with the reason; it is stored in the mark, for everybody who reads it")
	f.BoolVar(&d.yes, "yes", false, "do not ask for confirmation")
	f.BoolVar(&d.dryRun, "dry-run", false, "print what would be opened, without changing it")
	f.BoolVar(&d.nodes, "nodes", false, "print what to do on each node instead")
	f.StringVar(&d.cilium, "cilium-version", "", "with --nodes: `VERSION` of the agents (default: read from the member)")
	return cmd
}

// contact prints which user acts in which member, because the current context may not be intended.
func (d *downgradeFlags) contact(ctx context.Context) (*memberdowngrade.Operator, error) {
	if d.context == "" && d.kubeconfig == "" {
		return nil, usage("which member? Give --context, --kubeconfig, or both")
	}
	config, err := kubeconfig(d.kubeconfig, d.context)
	if err != nil {
		return nil, err
	}
	operator, err := memberdowngrade.NewOperator(ctx, config)
	switch {
	case errors.Is(err, memberdowngrade.ErrNotAdmitted):
		return nil, invalid(err)
	case err != nil:
		return nil, invalid(fmt.Errorf("%w\nif the member's API server is gone, too: kubectl acp downgrade --nodes", err))
	}
	return operator, nil
}

func (d *downgradeFlags) title() string { return either(d.context, "the member") }

func (d *downgradeFlags) run(cmd *cobra.Command) error {
	if strings.TrimSpace(d.reason) == "" && !d.dryRun {
		return usage("why? Give --reason")
	}
	ctx := cmd.Context()
	operator, err := d.contact(ctx)
	if err != nil {
		return err
	}
	extent, err := operator.ReadExtent(ctx)
	if err != nil {
		return invalid(err)
	}
	out := d.streams.Out
	fmt.Fprintf(
		out,
		"%s has %d policies of ACP, and %d of them refuse clients or requests; all of these would be opened for everyone\n",
		d.title(),
		extent.Policies,
		extent.Closing,
	)
	if extent.Mark != nil {
		fmt.Fprintf(out, "it is %s already; that mark stays\n", extent.Mark)
	}
	if d.dryRun {
		return nil
	}
	if !d.yes && !d.confirmed() {
		fmt.Fprintln(d.streams.Err, "nothing was changed")
		return errFindings
	}
	result, err := operator.Downgrade(ctx, memberdowngrade.Options{Reason: d.reason, Now: d.streams.Now, Opened: func(written int, took time.Duration) {
		fmt.Fprintf(out, "%s: %d policies were opened in %.1f s; looking whether that stays\n", d.title(), written, took.Seconds())
	}})
	if err != nil {
		return &failure{code: ExitFindings, err: fmt.Errorf("%w\nthe mark is there; run the command again", err)}
	}
	if result.Guarded {
		fmt.Fprintln(out, "the guard there refuses KubeFed: it stays so until kubectl acp resume")
	} else {
		fmt.Fprintln(
			out,
			"it was not observed that the guard refuses KubeFed; nothing was closed again meanwhile, and the adapter, if it runs, "+
				"writes nothing to the member until kubectl acp resume",
		)
	}
	return nil
}

// confirmed prompts the user for the member's name, and reports whether they typed it, so that nothing is opened by accident.
func (d *downgradeFlags) confirmed() bool {
	word := either(d.context, "yes")
	fmt.Fprintf(d.streams.Err, "type %s to go on: ", word)
	line, err := bufio.NewReader(d.streams.In).ReadString('\n')
	return strings.TrimSpace(line) == word && (err == nil || line != "")
}

func (d *downgradeFlags) procedure(cmd *cobra.Command) error {
	version := d.cilium
	if version == "" {
		if d.context == "" && d.kubeconfig == "" {
			return usage("which Cilium runs there? Give --cilium-version, or --context to ask")
		}
		config, err := kubeconfig(d.kubeconfig, d.context)
		if err != nil {
			return err
		}
		if version, err = installed(cmd.Context(), config); err != nil {
			return invalid(fmt.Errorf("%w: give --cilium-version", err))
		}
	}
	text, err := memberdowngrade.Nodes(version)
	if err != nil {
		return invalid(err)
	}
	return write(d.streams.Out, []byte(text))
}

// installed returns the version of Cilium in the member.
func installed(ctx context.Context, config *rest.Config) (string, error) {
	config = rest.CopyConfig(config)
	config.Timeout = preflight.Timeout
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	return preflight.CiliumVersion(ctx, clients, federation.DefaultLocations())
}

func newResume(s Streams) *cobra.Command {
	d := &downgradeFlags{streams: s}
	cmd := &cobra.Command{
		Use:   "resume --context MEMBER",
		Short: "End a downgrade, so that the control plane enforces the policies again",
		Long: `Removes the mark that kubectl acp downgrade wrote. The adapter then lets KubeFed write to the member again, which restores the
current policies. Until then everything stays open. Without a control plane, no policy is restored.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			operator, err := d.contact(cmd.Context())
			if err != nil {
				return err
			}
			mark, err := operator.Resume(cmd.Context())
			if errors.Is(err, memberdowngrade.ErrNotDowngraded) {
				fmt.Fprintf(s.Out, "%s is not downgraded\n", d.title())
				return nil
			}
			if err != nil {
				return invalid(err)
			}
			fmt.Fprintf(
				s.Out,
				"%s was %s; the control plane enforces the policies there again: kubectl get protectedresources on the host shows the progress\n",
				d.title(),
				mark,
			)
			return nil
		},
	}
	d.member(cmd)
	return cmd
}
