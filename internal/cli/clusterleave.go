package cli

import (
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
		Short: "Remove a member when it has no more objects of ACP",
		Long: `Removes the member from every placement, waits until the adapter and KubeFed have removed their objects from it and the host
has no more records of them, and then removes the registration and the Secrets, with --member-context also the accounts in the
member. Resources that were protected there are open from then on.

If the objects are not removed within --timeout, the member stays registered without placements: repeat the command to
continue, or run cluster join to keep the member. With --force it is unregistered in any case. The remaining objects are
printed, and ACP no longer changes them: grants in the member stay open and cannot be revoked, and resources stay closed.

The exit code is 1 if the member stays registered, or if objects remain in it.`,
		Args: oneArgument("the name of the member"),
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args[0]) },
	}
	l.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&l.memberKubeconfig, "member-kubeconfig", "", "kubeconfig `FILE` with the member's context (default: that of the host)")
	f.StringVar(&l.memberContext, "member-context", "", "`NAME` of the context of the member's administrator, to remove the accounts there")
	f.DurationVar(&l.timeout, "timeout", 10*time.Minute, "`TIME` to wait until no object remains")
	f.BoolVar(&l.force, "force", false, "unregister the member even if objects remain in it")
	f.BoolVar(&l.dryRun, "dry-run", false, "print what remains and what would be removed, without changing it")
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
	case err != nil:
		return withRemedy(name, err)
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
	if left.Works != "" {
		fmt.Fprintf(w, "on the host, and whoever deletes them removes what the member has: %s\n", left.Works)
	}
}
