package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/portalclient"
)

// Headings of the tables, offline and from the portal.
const (
	unnamedTitle    = "Without a name"
	otherPortsTitle = "At ports that no action has"
)

var seenColumns = []string{"CONNECTIONS", "FIRST", "LAST", "DAYS", "CLUSTERS"}

type proposeOptions struct {
	flowSource
	window
	resource string
	reviewed string
	least    int64
}

func newPropose(s Streams) *cobra.Command {
	o := &proposeOptions{flowSource: newFlowSource(s)}
	cmd := &cobra.Command{
		Use:   "propose --resource NAME [--store STORE [-f FILE|DIR...]]",
		Short: "Propose a policy for a resource from its observed clients",
		Long: `Propose a policy for a resource from its observed clients, each with its evidence. Nothing is added automatically.

The states are covered (a statement allows the client), new (no statement matches it), audited (it passes only because of
Audit), and denied (it is refused, or a deny matches it). The policy of -o yaml contains the clients that are new or audited.
Sources without a name and ports that belong to no action are listed separately, because a person has to identify them.

With --store the flows are read from the store, and the policies from files or the cluster; without it the portal makes the
proposal, and NAME is a catalog id. The exit code is 1 if there are clients to add, or sources without a name.`,
		Example: `  kubectl acp propose --store sqlite:flows.db -f policies/ --resource trnv1:rsc:trip-com:redis:clusters:bobs-cluster -o yaml > bobs.yaml
  kubectl acp propose --store sqlite:flows.db --resource trnv1:rsc:trip-com:redis:clusters:bobs-cluster --reviewed 7d
  kubectl acp propose --resource bobs-cluster`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flowSource.flags(cmd)
	o.window.flags(cmd, windowPreset)
	f := cmd.Flags()
	f.StringVar(&o.resource, "resource", "", "`NAME` of the resource (required)")
	f.StringVar(
		&o.reviewed,
		"reviewed",
		"",
		"`INSTANT|SPAN` of the last review: only clients that pass because of Audit and were first seen later; with --store",
	)
	f.Int64Var(&o.least, "min-count", 0, "leave out clients with fewer `CONNECTIONS`, except those with an older connection that is still in use; with --store")
	return cmd
}

func (o *proposeOptions) run(ctx context.Context) error {
	switch err := o.check(); {
	case err != nil:
		return err
	case o.resource == "":
		return usage("--resource is needed")
	case o.least < 0:
		return usage("--min-count %d is below 0", o.least)
	case o.store == "":
		return remotely(o.ask(ctx))
	}
	return flowsFailed(o.work(ctx))
}

func (o *proposeOptions) work(ctx context.Context) error {
	if err := exactName("--resource", o.resource); err != nil {
		return err
	}
	r, err := o.read(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	in := insight.ProposeInput{Snapshot: r.snapshot, Resource: o.resource, Now: r.now, MinCount: o.least}
	if in.Since, in.Until, err = o.bounds(r.now); err != nil {
		return err
	}
	p, err := o.propose(ctx, r, in)
	if err != nil {
		return err
	}
	if err := o.printProposal(&p); err != nil {
		return err
	}
	if p.Policy != nil || len(p.Unattributed) > 0 {
		return errFindings
	}
	return nil
}

func (o *proposeOptions) propose(ctx context.Context, r *reading, in insight.ProposeInput) (insight.Proposal, error) {
	if o.reviewed == "" {
		return insight.Propose(ctx, r, in)
	}
	reviewed, err := instantBefore("--reviewed", o.reviewed, r.now)
	if err != nil {
		return insight.Proposal{}, err
	}
	return insight.Refine(ctx, r, insight.RefineInput{ProposeInput: in, Reviewed: reviewed})
}

func (o *proposeOptions) printProposal(p *insight.Proposal) error {
	if o.format == asYAML {
		return write(o.streams.Out, []byte(p.YAML()))
	}
	seen := func(s insight.FlowEvidence) []string {
		return []string{fmt.Sprint(s.Count), moment(s.First), moment(s.Last), fmt.Sprintf("%d of %d", s.Days, s.DaysObserved), strings.Join(s.Clusters, ",")}
	}
	clients := [][]string{append([]string{"ACTION", "SUBJECT", "STATE"}, seenColumns...)}
	for _, l := range p.Lines {
		clients = append(clients, append([]string{l.Action, l.Subject, string(l.State)}, seen(l.Evidence)...))
	}
	unnamed := [][]string{append([]string{"SOURCE", "PORTS", "STATE"}, seenColumns...)}
	for _, u := range p.Unattributed {
		var ports []string
		for _, port := range u.Ports {
			ports = append(ports, fmt.Sprintf("%s/%d", port.Protocol, port.Port))
		}
		unnamed = append(unnamed, append([]string{u.Source, strings.Join(ports, ","), string(u.State)}, seen(u.Evidence)...))
	}
	ports := [][]string{append([]string{"PORT", "OPEN", "CLIENTS"}, seenColumns...)}
	for _, u := range p.UnknownPorts {
		open := yes(u.Open)
		ports = append(ports, append([]string{fmt.Sprintf("%s/%d", u.Protocol, u.Port), open, fmt.Sprint(len(u.Clients))}, seen(u.Evidence)...))
	}
	if len(clients)+len(unnamed)+len(ports) == 3 && o.format == asTable {
		fmt.Fprintln(o.streams.Err, "Nothing was seen.")
	}
	return o.print(p, section{"", clients}, section{unnamedTitle, unnamed}, section{otherPortsTitle, ports})
}

func (o *proposeOptions) ask(ctx context.Context) error {
	if o.reviewed != "" || o.least > 0 {
		return usage("--reviewed and --min-count go with --store")
	}
	q, err := o.query(o.streams.Now(), windowPreset)
	if err != nil {
		return err
	}
	c, err := o.portal.connect()
	if err != nil {
		return err
	}
	var p portalclient.Proposal
	if err := c.Get(ctx, "/resources/"+url.PathEscape(o.resource)+"/proposal", q, &p); err != nil {
		return err
	}
	if o.format == asYAML {
		err = write(o.streams.Out, []byte(p.Yaml))
	} else {
		err = o.print(p, proposalTables(&p)...)
	}
	if err == nil && (p.Yaml != "" || len(p.Unattributed) > 0) {
		return errFindings
	}
	return err
}

func proposalTables(p *portalclient.Proposal) []section {
	clients, unnamed, ports := [][]string{
		append([]string{"ACTION", "SUBJECT", "STATE"}, seenColumns...),
	}, [][]string{
		append([]string{"SOURCE", "PORTS"}, seenColumns...),
	},
		[][]string{
			append([]string{"PORT", "SOURCE"}, seenColumns...),
		}
	for _, l := range p.Lines {
		clients = append(clients, append([]string{l.Action, l.Subject.Name, string(l.State)}, seenCells(l.Evidence)...))
	}
	for _, u := range p.Unattributed {
		unnamed = append(unnamed, append([]string{u.Source, join(u.Ports)}, seenCells(u.Evidence)...))
	}
	for _, u := range p.UnknownPorts {
		ports = append(ports, append([]string{portOf(u.Protocol, u.Port), u.Source}, seenCells(u.Evidence)...))
	}
	return []section{{"", clients}, {unnamedTitle, unnamed}, {otherPortsTitle, ports}}
}
