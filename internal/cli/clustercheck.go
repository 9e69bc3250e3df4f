package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/federation/membership"
	"github.com/acp-io/acp/internal/federation/preflight"
)

const guardClassLabels = "require a right to set the classes' labels on pods (verb set on classlabels.acp.io) and to use the classes' service " +
	"accounts (verb use on classserviceaccounts.acp.io); grant the rights first"

const bringIstio = "bring the kind of Istio's policies and the rights to it, before the host carries them (deploy/kubefed/istio); " +
	"once it does, they are brought anyway"

// checkFlags are the flags of cluster check.
type checkFlags struct {
	hostFlags
	output
	memberKubeconfig, memberContext string
	fix, istio, classLabels, dryRun bool
}

func newClusterCheck(s Streams) *cobra.Command {
	c := &checkFlags{hostFlags: hostFlags{streams: s}}
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Report the findings about a registered member",
		Long: `Reads the member with the tokens that KubeFed and the adapter use, and reports what would stop KubeFed for every member
(Stops), what would not be enforced there (Fails), and other findings (Warns). Without --fix it changes nothing. With --fix it
first corrects the accounts' roles and the guard of the managed objects in the member.

The exit code is 1 if there is a finding of severity Stops or Fails.`,
		Args: oneArgument("the name of the member"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&c.fix, "fix", false, "correct the roles and the guard in the member; needs --member-context or --member-kubeconfig")
	f.StringVar(&c.memberKubeconfig, "member-kubeconfig", "", "kubeconfig `FILE` with the member's context (default: that of the host)")
	f.StringVar(&c.memberContext, "member-context", "", "`NAME` of the context of the member's administrator")
	f.BoolVar(&c.classLabels, "guard-class-labels", false, guardClassLabels)
	f.BoolVar(&c.istio, "istio", false, bringIstio)
	f.BoolVar(&c.dryRun, "dry-run", false, "with --fix: print what would be written, without writing it")
	c.flag(cmd, asTable)
	return cmd
}

func (c *checkFlags) run(cmd *cobra.Command, name string) error {
	if err := c.check(); err != nil {
		return err
	}
	member := c.memberContext != "" || c.memberKubeconfig != ""
	switch {
	case c.fix && !member:
		return usage("which cluster should be fixed? Give --member-context, --member-kubeconfig, or both")
	case !c.fix && (member || c.classLabels || c.istio || c.dryRun):
		return usage("--member-context, --member-kubeconfig, --guard-class-labels, --istio and --dry-run go with --fix")
	}
	host, config, err := c.host()
	if err != nil {
		return err
	}
	labels, err := keys(cmd, config)
	if err != nil {
		return err
	}
	if c.fix {
		if err := c.repair(cmd, host, name, labels); err != nil {
			return err
		}
	}
	facts, err := host.Facts(cmd.Context(), name)
	if err != nil {
		return invalid(err)
	}
	others, err := host.Others(cmd.Context(), name)
	if err != nil {
		return invalid(err)
	}
	kinds, err := host.Needed(cmd.Context())
	if err != nil {
		return invalid(err)
	}
	found := preflight.Assess(facts, preflight.Needs{Kinds: kinds, Keys: labels, Others: others})
	if err := c.findings(c.streams.Out, found); err != nil {
		return err
	}
	if !preflight.Passes(found) {
		return errFindings
	}
	return nil
}

// repair creates what the member lacks and prints each step to stderr, because programs read the findings from stdout.
func (c *checkFlags) repair(cmd *cobra.Command, host *membership.Host, name string, labels []preflight.Key) error {
	member, err := c.hostFlags.memberKubeconfig(c.memberKubeconfig, c.memberContext)
	if err != nil {
		return err
	}
	fix := &membership.Fix{Host: host, Name: name, Member: member, Keys: labels, ClassLabels: c.classLabels, Istio: c.istio, DryRun: c.dryRun,
		OnStep: func(x membership.Step) { fmt.Fprintf(c.streams.Err, "%s: %s %s\n", x.In, x.Object, x.Outcome) }}
	if err := fix.Run(cmd.Context()); err != nil {
		return withRemedy(fix.Name, err)
	}
	return nil
}
