package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portalclient"
)

type replayOptions struct {
	flowSource
	window
	resources []string
	clusters  []string
	lines     int
	ticket    string
}

func newReplay(s Streams) *cobra.Command {
	o := &replayOptions{flowSource: newFlowSource(s)}
	cmd := &cobra.Command{
		Use:   "replay --store STORE [-f OLD] -f NEW | --ticket T-N",
		Short: "Show how a change of policies would have affected the observed connections",
		Long: `Show how a change of policies would have affected the observed connections: every edge of the window is decided by the
policies before and after the change, regardless of the decision at its time.

With two -f, the first is the state before the change and the second the state after it. With one -f, the state before is the
cluster, and the state after is the cluster with the objects of the file or folder applied. What cannot be determined is
listed as uncertain: sources that match several names, times without observation, lost flows. With --ticket, the portal
replays the change of the ticket.

The exit code is 1 if the decision about an observed connection changes or is uncertain.`,
		Example: `  kubectl acp replay --store sqlite:flows.db -f main/ -f branch/
  kubectl acp replay --store sqlite:flows.db -f main/ -f branch/ --since 30d -o json | jq '.newlyDenied[].subject'
  kubectl acp replay --ticket T-42`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flowSource.flags(cmd)
	o.window.flags(cmd, windowPreset)
	f := cmd.Flags()
	f.StringArrayVar(&o.resources, "resource", nil, "only connections to this resource, by `NAME`; repeatable; with --store")
	f.StringSliceVar(&o.clusters, "cluster", nil, clusterUsage)
	f.IntVar(&o.lines, "lines", insight.MaxImpactLines, "maximum number of lines of each kind; with --store")
	f.StringVar(&o.ticket, "ticket", "", "replay this ticket's change, as T-N, in the portal")
	return cmd
}

func (o *replayOptions) run(ctx context.Context) error {
	switch err := o.check(); {
	case err != nil:
		return err
	case (o.store == "") == (o.ticket == ""):
		return usage("give either --store, with the policies before and after, or --ticket")
	case o.lines < 1:
		return usage("--lines %d is below 1", o.lines)
	case o.store == "":
		return remotely(o.ask(ctx))
	}
	return flowsFailed(o.work(ctx))
}

func (o *replayOptions) work(ctx context.Context) error {
	for _, name := range o.resources {
		if err := exactName("--resource", name); err != nil {
			return err
		}
	}
	now, err := o.policies.instant()
	if err != nil {
		return err
	}
	in := insight.ReplayInput{Resources: o.resources, At: now, MaxLines: o.lines}
	if in.Since, in.Until, err = o.bounds(now); err != nil {
		return err
	}
	r, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	before, after, err := o.sides(ctx)
	if err != nil {
		return err
	}
	in.Fleet = fleetOf(after, o.clusters)
	in.Before = policy.NewSnapshot(before.Input)
	in.After = in.Before.Next(after.Input)
	im, err := insight.Replay(ctx, r, in)
	if err != nil {
		return err
	}
	if err := o.printImpact(&im); err != nil {
		return err
	}
	if len(im.NewlyAllowed)+len(im.NewlyDenied)+len(im.ReasonChanged) > 0 {
		return errFindings
	}
	for _, u := range im.Uncertain {
		if u.Count > 0 {
			return errFindings
		}
	}
	return nil
}

func (o *replayOptions) sides(ctx context.Context) (before, after *manifest.Set, err error) {
	d := diffOptions{source: o.policies}
	return d.sides(ctx)
}

func (o *replayOptions) printImpact(im *insight.Impact) error {
	if o.format == asTable {
		fmt.Fprintf(
			o.streams.Err,
			"From %s to %s: %d connections newly allowed, %d newly denied, %d decided otherwise, %d as before.\n",
			moment(im.Since),
			moment(im.Until),
			im.Allowed.Connections,
			im.Denied.Connections,
			im.ReasonChangedTotal.Connections,
			im.Unchanged,
		)
		if im.Truncated {
			fmt.Fprintln(o.streams.Err, "There are more lines: --lines shows them.")
		}
	}
	lines := func(list []insight.ImpactLine) [][]string {
		rows := [][]string{{"CLIENT", "RESOURCE", "ACTION", "PORT", "CLUSTER", "CONNECTIONS", "FIRST", "LAST", "BEFORE", "AFTER", "STATEMENTS"}}
		for _, l := range list {
			rows = append(
				rows,
				[]string{
					cmp.Or(l.Subject, l.Source),
					cmp.Or(l.Resource, l.Destination),
					l.Action,
					portOf(string(l.Protocol), l.Port),
					l.Cluster,
					fmt.Sprint(l.Count),
					moment(l.First),
					moment(l.Last),
					string(l.Before),
					string(l.After),
					joinRefs(l.Statements),
				},
			)
		}
		return rows
	}
	return o.print(
		im,
		section{"Newly denied", lines(im.NewlyDenied)},
		section{"Newly allowed", lines(im.NewlyAllowed)},
		section{"Decided otherwise", lines(im.ReasonChanged)},
		section{"Uncertain", uncertainRows(im.Uncertain)},
	)
}

func uncertainRows(list []insight.Uncertain) [][]string {
	rows := [][]string{{"CLUSTER", "FROM", "TO", "CLIENT", "RESOURCE", "CONNECTIONS", "WHY"}}
	for _, u := range list {
		count := ""
		if u.Count > 0 {
			count = fmt.Sprint(u.Count)
		}
		rows = append(rows, []string{u.Cluster, moment(u.From), moment(u.To), u.Source, u.Resource, count, u.Reason.Render(language())})
	}
	return rows
}

// portOf formats a port; ICMP has none.
func portOf[P int | uint16](protocol string, port P) string {
	if port == 0 {
		return protocol
	}
	return fmt.Sprintf("%s/%d", protocol, port)
}

func (o *replayOptions) ask(ctx context.Context) error {
	if err := checkTicket(o.ticket); err != nil {
		return err
	}
	if len(o.resources) > 0 || o.since != windowPreset || o.until != "" {
		return usage("--resource, --since and --until go with --store: the portal replays its own window")
	}
	c, err := o.portal.connect()
	if err != nil {
		return err
	}
	var im portalclient.Impact
	if err := c.Get(ctx, "/tickets/"+o.ticket+"/impact", nil, &im); err != nil {
		return err
	}
	if !im.Available {
		if im.Message != nil {
			return errors.New(im.Message.Render(language()))
		}
		return errNoFlows
	}
	uncertain := [][]string{{"CLUSTER", "FROM", "TO", "WHY"}}
	for _, u := range im.Uncertain {
		uncertain = append(uncertain, []string{u.Cluster, moment(u.From), moment(u.To), u.Reason.Render(language())})
	}
	lines := func(list []portalclient.ImpactLine) [][]string {
		rows := [][]string{{"CLIENT", "RESOURCE", "ACTION", "PORT", "CLUSTER", "CONNECTIONS", "FIRST", "LAST", "BEFORE", "AFTER"}}
		for _, l := range list {
			rows = append(
				rows,
				[]string{
					l.Subject.Name,
					l.Resource.Name,
					text(l.Action),
					portOf(l.Protocol, l.Port),
					text(l.Cluster),
					fmt.Sprint(l.Count),
					moment(l.FirstSeen),
					moment(l.LastSeen),
					string(l.Before),
					string(l.After),
				},
			)
		}
		return rows
	}
	if err := o.print(
		im,
		section{"Newly denied", lines(im.NewlyDenied)},
		section{"Newly allowed", lines(im.NewlyAllowed)},
		section{"Uncertain", uncertain},
	); err != nil {
		return err
	}
	if len(im.NewlyAllowed)+len(im.NewlyDenied) > 0 {
		return errFindings
	}
	return nil
}
