package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/portalclient"
)

type ticketsOptions struct {
	remote
	output
	view, application, resource, text string
	states, kinds                     []string
	limit                             int
}

func newTickets(s Streams) *cobra.Command {
	o := &ticketsOptions{remote: remote{streams: s}}
	cmd := &cobra.Command{
		Use:   "tickets [T-N...]",
		Short: "List tickets, or show tickets with their history",
		Example: `  kubectl acp tickets --view approvals
  kubectl acp tickets --view all --state pending,failed
  kubectl acp tickets T-42`,
		RunE: func(cmd *cobra.Command, args []string) error { return remotely(o.run(cmd.Context(), args)) },
	}
	o.flags(cmd)
	o.flag(cmd, asTable)
	f := cmd.Flags()
	f.StringVar(&o.view, "view", "mine", "mine, approvals (wait for your decision), decided, review or all")
	f.StringSliceVar(&o.states, "state", nil, "only in these `STATES`")
	f.StringSliceVar(&o.kinds, "kind", nil, "only of these `KINDS`")
	f.StringVar(&o.application, "app", "", "only about this application (catalog id)")
	f.StringVar(&o.resource, "resource", "", "only about this resource (catalog id)")
	f.StringVar(&o.text, "search", "", "only with this `TEXT`")
	f.IntVar(&o.limit, "limit", 50, "maximum number; 0 means all")
	return cmd
}

func (o *ticketsOptions) run(ctx context.Context, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.limit < 0 {
		return usage("--limit %d is below 0", o.limit)
	}
	for _, id := range args {
		if err := checkTicket(id); err != nil {
			return err
		}
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		return o.show(ctx, c, args)
	}
	tickets, more, err := o.list(ctx, c)
	if err != nil {
		return err
	}
	if o.format != asTable {
		return o.document(o.streams.Out, tickets)
	}
	if len(tickets) == 0 {
		fmt.Fprintln(o.streams.Err, "No tickets.")
		return nil
	}
	rows := [][]string{{"TICKET", "KIND", "STATE", "WHAT", "ASKED BY", "WAITS FOR", "UPDATED"}}
	for _, t := range tickets {
		rows = append(rows, []string{t.Id, string(t.Kind), string(t.State), what(t), t.Requester.DisplayName, waitsFor(t), localTime(t.UpdatedAt)})
	}
	if err := table(o.streams.Out, rows); err != nil {
		return err
	}
	if more {
		fmt.Fprintf(o.streams.Err, "There are more: --limit 0 shows all.\n")
	}
	return nil
}

func (o *ticketsOptions) list(ctx context.Context, c *portalclient.Client) (tickets []portalclient.Ticket, more bool, err error) {
	const most = 200 // the maximum of one page of the API
	q := url.Values{"view": {o.view}, "state": o.states, "kind": o.kinds}
	for key, v := range map[string]string{"application": o.application, "resource": o.resource, "q": o.text} {
		if v != "" {
			q.Set(key, v)
		}
	}
	tickets = []portalclient.Ticket{}
	for {
		q.Set("limit", strconv.Itoa(most))
		if o.limit > 0 {
			q.Set("limit", strconv.Itoa(min(most, o.limit-len(tickets))))
		}
		var page portalclient.TicketList
		if err := c.Get(ctx, "/tickets", q, &page); err != nil {
			return nil, false, err
		}
		tickets = append(tickets, page.Items...)
		if page.NextCursor == nil {
			return tickets, false, nil
		}
		if o.limit > 0 && len(tickets) >= o.limit {
			return tickets, true, nil
		}
		q.Set("cursor", *page.NextCursor)
	}
}

func (o *ticketsOptions) show(ctx context.Context, c *portalclient.Client, ids []string) error {
	tickets := make([]portalclient.Ticket, len(ids))
	for i, id := range ids {
		if err := c.Get(ctx, "/tickets/"+id, nil, &tickets[i]); err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	if o.format != asTable {
		if len(tickets) == 1 {
			return o.document(o.streams.Out, tickets[0])
		}
		return o.document(o.streams.Out, tickets)
	}
	for i, t := range tickets {
		if i > 0 {
			fmt.Fprintln(o.streams.Out)
		}
		printTicket(o.streams.Out, t)
	}
	return nil
}

func checkTicket(id string) error {
	digits, ok := strings.CutPrefix(id, "T-")
	if n, err := strconv.ParseInt(digits, 10, 64); !ok || err != nil || n < 1 || len(digits) > 12 {
		return usage("%q is not a ticket such as T-42", id)
	}
	return nil
}

// mostMembers is the number of members of an item that are printed; --output json has all.
const mostMembers = 20

// worstStates are the states of members, the worst first.
var worstStates = []portalclient.ClusterStateState{
	portalclient.ClusterStateStateLeaked,
	portalclient.ClusterStateStateDowngraded,
	portalclient.ClusterStateStateUnreachable,
	portalclient.ClusterStateStateQuarantined,
	portalclient.ClusterStateStateDrifted,
	portalclient.ClusterStateStateOverridden,
	portalclient.ClusterStateStatePending,
	portalclient.ClusterStateStateRealized,
}

// printMembers prints the members of an item. If there are very many, it prints the number of members by state, and the
// worst.
func printMembers(w io.Writer, members []portalclient.ClusterState, counts *portalclient.MemberCounts) {
	total := len(members)
	if counts != nil {
		total = max(total, counts.Total)
	}
	shown := members
	if total > mostMembers || total > len(members) {
		shown = slices.Clone(members)
		slices.SortStableFunc(shown, func(a, b portalclient.ClusterState) int {
			return cmp.Compare(slices.Index(worstStates, a.State), slices.Index(worstStates, b.State))
		})
		shown = shown[:min(len(shown), mostMembers)]
		fmt.Fprintf(w, "  %d members: %s\n", total, statesOf(members, counts))
	}
	for _, c := range shown {
		fmt.Fprintf(w, "  %-10s %s", c.Cluster, c.State)
		if c.Message != nil {
			fmt.Fprintf(w, ": %s", printable(c.Message.Render(language())))
		}
		fmt.Fprintln(w)
	}
	if n := len(members) - len(shown); n > 0 {
		fmt.Fprintf(w, "  and %d more\n", n)
	}
	if n := total - len(members); n > 0 {
		fmt.Fprintf(w, "  and %d more, which the host cluster counts and has no room to list\n", n)
	}
}

// printNodes prints on how many nodes the members enforce an item, and the nodes that do not; nothing if it is not known.
func printNodes(w io.Writer, nodes *portalclient.NodeSummary) {
	if nodes == nil {
		return
	}
	for _, m := range nodes.Messages {
		fmt.Fprintf(w, "  %s\n", printable(m.Render(language())))
	}
	for _, c := range nodes.Clusters {
		fmt.Fprintf(w, "    %s\n", printable(c.Message.Render(language())))
	}
}

// statesOf describes the number of members by state.
func statesOf(members []portalclient.ClusterState, counts *portalclient.MemberCounts) string {
	in := map[string]int{}
	if counts != nil && counts.States != nil {
		in = *counts.States
	} else {
		for _, c := range members {
			in[string(c.State)]++
		}
	}
	var out []string
	for _, s := range worstStates {
		if n := in[string(s)]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(out, ", ")
}

// printTicket prints a ticket with its history.
func printTicket(w io.Writer, t portalclient.Ticket) {
	fmt.Fprintf(w, "%s  %s  %s\n", t.Id, t.Kind, t.State)
	fmt.Fprintf(w, "Asked by %s, %s: %s\n", t.Requester.DisplayName, localTime(t.CreatedAt), printable(t.Reason))
	for _, it := range t.Items {
		fmt.Fprintf(w, "\nItem %d  %s  %s\n", it.Position, it.State, describe(it))
		if it.ExpiresAt != nil {
			fmt.Fprintf(w, "  until %s\n", localTime(*it.ExpiresAt))
		}
		for _, s := range it.Steps {
			printStep(w, s)
		}
		if it.Review != nil {
			printStep(w, *it.Review)
		}
		printMembers(w, it.Clusters, it.Members)
		printNodes(w, it.Nodes)
		if it.Message != nil {
			fmt.Fprintf(w, "  %s\n", printable(it.Message.Render(language())))
		}
	}
	if len(t.Events) > 0 {
		fmt.Fprintln(w)
	}
	for _, e := range t.Events {
		line := []string{localTime(e.At), string(e.Kind)}
		if e.Step != nil {
			line = append(line, *e.Step)
		}
		if e.Cluster != nil {
			line = append(line, *e.Cluster)
		}
		if e.Actor != nil {
			line = append(line, e.Actor.DisplayName)
		}
		if e.OnBehalfOf != nil {
			line = append(line, "for "+e.OnBehalfOf.DisplayName)
		}
		if e.Through != nil {
			line = append(line, "through "+printable(*e.Through))
		}
		if e.Comment != nil {
			line = append(line, printable(*e.Comment))
		}
		if e.Message != nil {
			line = append(line, printable(e.Message.Render(language())))
		}
		fmt.Fprintln(w, strings.Join(line, "  "))
	}
}

func printStep(w io.Writer, s portalclient.Step) {
	fmt.Fprintf(w, "  %-10s %-9s", s.Name, s.State)
	if s.Quorum > 1 {
		fmt.Fprintf(w, " %d of", s.Quorum)
	}
	fmt.Fprintf(w, " %s", approverNames(s))
	if o := s.OnCall; o != nil {
		fmt.Fprintf(w, "; on call in %s (tier %d): ", o.Schedule, o.Tier)
		switch {
		case o.Message != nil:
			fmt.Fprint(w, printable(o.Message.Render(language())))
		default:
			fmt.Fprint(w, names(o.People))
		}
	}
	for _, v := range s.Votes {
		verb := "rejected"
		if v.Approve {
			verb = "approved"
		}
		fmt.Fprintf(w, "; %s %s", v.Person.DisplayName, verb)
		if v.OnBehalfOf != nil {
			fmt.Fprintf(w, " for %s", v.OnBehalfOf.DisplayName)
		}
		if v.Comment != nil {
			fmt.Fprintf(w, " (%s)", printable(*v.Comment))
		}
	}
	fmt.Fprintln(w)
}

// approverNames returns the names of a step's approvers, and how many are not listed.
func approverNames(s portalclient.Step) string {
	out := names(s.Approvers)
	if s.ApproversTotal != nil && *s.ApproversTotal > len(s.Approvers) {
		out += fmt.Sprintf(" and %d more", *s.ApproversTotal-len(s.Approvers))
	}
	return out
}

func names(people []portalclient.Person) string {
	out := make([]string, 0, len(people))
	for _, p := range people {
		out = append(out, p.DisplayName)
	}
	return strings.Join(out, ", ")
}

// describe describes in one line what an item requests.
func describe(it portalclient.TicketItem) string {
	var parts []string
	if it.Application != nil {
		parts = append(parts, it.Application.Title)
	}
	if it.Resource != nil {
		if len(parts) > 0 {
			parts = append(parts, "to")
		}
		parts = append(parts, it.Resource.Title)
	}
	if it.Actions != nil && len(*it.Actions) > 0 {
		parts = append(parts, "("+strings.Join(*it.Actions, ", ")+")")
	}
	if it.ToMode != nil {
		parts = append(parts, "mode", string(*it.ToMode))
	}
	if it.Object != nil {
		parts = append(parts, string(it.Object.Verb), string(it.Object.Kind), it.Object.Name)
	}
	if it.Target != nil {
		parts = append(parts, "of", it.Target.Ticket)
	}
	return printable(strings.Join(parts, " "))
}

func what(t portalclient.Ticket) string {
	if len(t.Items) == 0 {
		return ""
	}
	s := describe(t.Items[0])
	if n := len(t.Items) - 1; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

// waitsFor returns the approvers of the pending steps, or the members that do not have the change yet.
func waitsFor(t portalclient.Ticket) string {
	var out []string
	for _, it := range t.Items {
		for _, s := range it.Steps {
			if s.State == portalclient.StepStateCurrent {
				out = append(out, approverNames(s))
			}
		}
		if it.WaitingFor != nil {
			out = append(out, *it.WaitingFor...)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "; ")
}

// printable escapes text of users that could control the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case strconv.IsPrint(r):
			return r
		}
		return -1
	}, s)
}
