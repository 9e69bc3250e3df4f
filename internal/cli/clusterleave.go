package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/federation/membership"
)

// leaveFlags are the flags of cluster leave.
type leaveFlags struct {
	hostFlags
	memberKubeconfig, memberContext string
	timeout                         time.Duration
	force, dryRun                   bool
}

func newClusterLeave(s Streams) *cobra.Command {
	l := &leaveFlags{hostFlags: hostFlags{streams: s}}
	cmd := &cobra.Command{
		Use:   "leave NAME",
		Short: "Take a member out, when nothing of ACP is left in it",
		Long: `Takes the member out of every placement, waits until the adapter and KubeFed have removed what they put there and the host
remembers nothing of it, and only then removes the registration and the Secrets; with --member-context also the accounts in the
member. What was protected there is open from then on.

When the time is over the member stays registered and in no placement: run the command again, or cluster join to let it stay.
With --force it is unregistered whatever it has; what stays is printed, and nobody changes it any more: grants in it stay open
and cannot be revoked, resources in it stay closed.

Exit code 1 when the member stays, or something stays in it.`,
		Args: oneArgument("the name of the member"),
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args[0]) },
	}
	l.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&l.memberKubeconfig, "member-kubeconfig", "", "`FILE` with the member's context; empty: that of the host")
	f.StringVar(&l.memberContext, "member-context", "", "`NAME` of the context of the member's administrator, to remove the accounts there")
	f.DurationVar(&l.timeout, "timeout", 10*time.Minute, "`TIME` to wait until nothing is left")
	f.BoolVar(&l.force, "force", false, "unregister the member whatever it still has")
	f.BoolVar(&l.dryRun, "dry-run", false, "print what is left and what would be removed, and change nothing")
	return cmd
}

func (l *leaveFlags) run(cmd *cobra.Command, name string) error {
	host, _, err := l.host()
	if err != nil {
		return err
	}
	leave := &membership.Leave{Host: host, Name: name, Force: l.force, DryRun: l.dryRun, Timeout: l.timeout, Every: 2 * time.Second,
		OnStep: l.streams.step, Waiting: func(left membership.Remaining) {
			fmt.Fprintf(l.streams.Err, "waiting: %s\n", summary(left))
		}}
	if l.memberContext != "" || l.memberKubeconfig != "" {
		if leave.Member, err = l.hostFlags.memberKubeconfig(l.memberKubeconfig, l.memberContext); err != nil {
			return err
		}
	}
	left, err := leave.Run(cmd.Context())
	if !left.IsEmpty() {
		stays(l.streams.Err, left)
	}
	switch {
	case errors.Is(err, membership.ErrNotEmpty):
		return &failure{code: ExitFindings, err: fmt.Errorf("%s: %w", name, err)}
	case err != nil:
		return invalid(err)
	case !left.IsEmpty():
		return errFindings
	}
	return nil
}

func summary(left membership.Remaining) string {
	if left.Unread != "" {
		return "the member cannot be read: " + left.Unread
	}
	return fmt.Sprintf("%d objects in the member, %d federated objects that name it", len(left.Objects), len(left.Federated))
}

// stays prints everything that remains in a member.
func stays(w io.Writer, left membership.Remaining) {
	if left.Unread != "" {
		fmt.Fprintf(w, "the member cannot be read, so it may keep everything that was ever placed there: %s\n", left.Unread)
	}
	for _, o := range left.Objects {
		fmt.Fprintf(w, "in the member: %s\n", o)
	}
	for _, o := range left.Federated {
		fmt.Fprintf(w, "on the host, naming the member: %s\n", o)
	}
}
