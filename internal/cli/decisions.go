package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/portalclient"
)

type decisionOptions struct {
	remote
	approve bool
	item    int
	comment string
	yes     bool
}

func newApprove(s Streams) *cobra.Command {
	return newDecision(s, &decisionOptions{remote: remote{streams: s}, approve: true}, &cobra.Command{
		Use:   "approve T-N...",
		Short: "Approve requests that wait for you",
		Long: `Approve the steps that wait for you. Each ticket is shown before you confirm; --yes skips the confirmation. You approve
the version that was shown: the portal refuses the approval of a ticket that changed in the meantime.`,
		Example: "  kubectl acp approve T-42 --comment 'as agreed in the review'",
	})
}

func newReject(s Streams) *cobra.Command {
	return newDecision(s, &decisionOptions{remote: remote{streams: s}}, &cobra.Command{
		Use:     "reject T-N... --comment TEXT",
		Short:   "Reject requests that wait for you",
		Example: "  kubectl acp reject T-42 --comment 'use the replica instead'",
	})
}

func newDecision(_ Streams, o *decisionOptions, cmd *cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return remotely(o.run(cmd.Context(), args)) }
	o.flags(cmd)
	cmd.Flags().IntVar(&o.item, "item", -1, "only this item of the ticket, by its position from 0")
	cmd.Flags().StringVar(&o.comment, "comment", "", "add `TEXT` as a comment")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (o *decisionOptions) run(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return usage("name the tickets, such as T-42; kubectl acp tickets --view approvals lists what waits for you")
	}
	for _, id := range ids {
		if err := checkTicket(id); err != nil {
			return err
		}
	}
	if !o.approve && strings.TrimSpace(o.comment) == "" {
		return usage("--comment is needed: say why you reject")
	}
	if o.item >= 0 && len(ids) > 1 {
		return usage("--item goes with one ticket")
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	in := bufio.NewReader(o.streams.In)
	var failed error
	for _, id := range ids {
		if err := o.decide(ctx, c, in, id); err != nil {
			fmt.Fprintf(o.streams.Err, "%s: %v\n", id, err)
			failed = &failure{code: ExitFailed}
		}
	}
	return failed
}

func (o *decisionOptions) decide(ctx context.Context, c *portalclient.Client, in *bufio.Reader, id string) error {
	var t portalclient.Ticket
	if err := c.Get(ctx, "/tickets/"+id, nil, &t); err != nil {
		return err
	}
	verb := map[bool]string{true: "approve", false: "reject"}[o.approve]
	if !o.yes {
		t.Events = nil
		printTicket(o.streams.Err, t)
		fmt.Fprintf(o.streams.Err, "\n%s? [y/N] ", strings.ToUpper(verb[:1])+verb[1:])
		line, err := in.ReadString('\n')
		if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
			if err != nil {
				fmt.Fprintln(o.streams.Err)
			}
			fmt.Fprintf(o.streams.Err, "%s is left as it is.\n", id)
			return nil
		}
	}
	body := portalclient.NewDecision{Decision: portalclient.NewDecisionDecision(verb), Version: t.Version, Comment: optional(o.comment)}
	if o.item >= 0 {
		body.Item = &o.item
	}
	var after portalclient.Ticket
	if err := c.Post(ctx, "/tickets/"+id+"/decision", "", body, &after); err != nil {
		return err
	}
	fmt.Fprintf(o.streams.Out, "%s is %s", id, after.State)
	if w := waitsFor(after); w != "" {
		fmt.Fprintf(o.streams.Out, ", waits for %s", w)
	}
	fmt.Fprintln(o.streams.Out, ".")
	return nil
}

type revokeOptions struct {
	remote
	item   int
	reason string
}

func newRevoke(s Streams) *cobra.Command {
	o := &revokeOptions{remote: remote{streams: s}}
	cmd := &cobra.Command{
		Use:     "revoke T-N --reason TEXT",
		Short:   "End the access that a ticket granted",
		Long:    "End the access that a ticket granted, and its extensions. Owners of the application or the resource and the security team may do so.",
		Example: "  kubectl acp revoke T-42 --reason 'the application is gone'",
		Args:    oneArgument("the ticket, such as T-42,"),
		RunE:    func(cmd *cobra.Command, args []string) error { return remotely(o.run(cmd.Context(), args[0])) },
	}
	o.flags(cmd)
	cmd.Flags().IntVar(&o.item, "item", -1, "only this item of the ticket, by its position from 0")
	cmd.Flags().StringVar(&o.reason, "reason", "", "the reason (required)")
	return cmd
}

func (o *revokeOptions) run(ctx context.Context, id string) error {
	if err := checkTicket(id); err != nil {
		return err
	}
	if strings.TrimSpace(o.reason) == "" {
		return usage("--reason is needed: say why the access ends")
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	body := portalclient.ReasonBody{Reason: o.reason}
	if o.item >= 0 {
		body.Item = &o.item
	}
	var after portalclient.Ticket
	if err := c.Post(ctx, "/tickets/"+id+"/revoke", "", body, &after); err != nil {
		return err
	}
	fmt.Fprintf(o.streams.Out, "%s is %s.\n", id, after.State)
	return nil
}
