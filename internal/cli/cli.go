package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/version"
)

// Exit codes. They are documented in docs/cli.md and are stable.
const (
	// ExitFine means success without findings.
	ExitFine = 0
	// ExitFindings means success with findings: refused statements, findings, changes, or decisions that differ from
	// the expected ones.
	ExitFindings = 1
	// ExitUsage means that the command line is invalid.
	ExitUsage = 2
	// ExitInvalid means that the input cannot be read, or is invalid.
	ExitInvalid = 3
)

// Streams are the streams of the process, and its clock.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Now      func() time.Time
}

// failure ends a command with an exit code. If err is nil, the failure was reported already.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

var errFindings = &failure{code: ExitFindings}

func usage(format string, args ...any) error {
	return &failure{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

func invalid(err error) error { return &failure{code: ExitInvalid, err: err} }

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, args []string, s Streams) int {
	s.Err = plainWriter{s.Err}
	root := newRoot(s) //nolint:contextcheck // the commands are given ctx by cobra
	root.SetArgs(args)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// cobra parses the flags first, so that the flag of a command that does not exist would be reported in place of the command.
		if _, rest, _ := root.Find(args); cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			return unknownCommand(cmd, rest[0])
		}
		return err
	})
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitFine
	}
	code := ExitUsage // errors of cobra itself are about the command line
	var f *failure
	if errors.As(err, &f) {
		code = f.code
	}
	if text := explain(err); text != "" {
		hint := ""
		if code == ExitUsage {
			hint = "; see --help"
		}
		fmt.Fprintf(s.Err, "error: %s%s\n", text, hint)
	}
	return code
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-acp",
		Short: "Render, evaluate, check and compare access control policies, analyze flows, and request access",
		Long: `kubectl acp evaluates access control policies that are read from files (-f), such as those of a Git repository, or from the
host cluster of the current kubeconfig. It analyzes observed connections from a flow store or the portal. It requests access
and decides about requests in the portal.

Exit codes: 0 success without findings, 1 findings, changes or a refused request, 2 wrong usage, 3 input that cannot be read
or is invalid, 4 the portal refused the call or could not be reached, 130 and 143 ended by a signal.`,
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl acp"},
		CompletionOptions: cobra.CompletionOptions{
			HiddenDefaultCmd: true,
		},
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.AddGroup(&cobra.Group{ID: "policies", Title: "Policies, from files or the cluster; nothing is changed:"},
		&cobra.Group{ID: "rollouts", Title: "Rollouts in waves, in the host cluster:"},
		&cobra.Group{ID: "members", Title: "Member clusters, as their administrator:"},
		&cobra.Group{ID: "flows", Title: "Flows, from a store or the portal; nothing is changed:"},
		&cobra.Group{ID: "portal", Title: "Requests and the ledger, in the portal:"})
	for _, c := range []*cobra.Command{newRender(s), newDecide(s), newLint(s), newDiff(s)} {
		c.GroupID = "policies"
		root.AddCommand(c)
	}
	rollout := newRollout(s)
	rollout.GroupID = "rollouts"
	root.AddCommand(rollout)
	for _, c := range []*cobra.Command{newCluster(s), newDowngrade(s), newResume(s)} {
		c.GroupID = "members"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{newFlows(s), newPropose(s), newReplay(s), newEvidence(s), newUnused(s)} {
		c.GroupID = "flows"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{
		newLogin(s), newLogout(s), newWhoami(s), newRequest(s), newTickets(s),
		newApprove(s), newReject(s), newExtend(s), newRevoke(s), newLedger(s),
	} {
		c.GroupID = "portal"
		root.AddCommand(c)
	}
	return root
}
