package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portalclient"
)

type flowsOptions struct {
	flowSource
	window
	subjects, resources, clusters, actions, decisions, verdicts []string
	ports                                                       []uint
	policy, sid, text                                           string
	unattributed, disagree                                      bool
	limit                                                       int
}

// seenFlow is one line of output: an edge with its total.
type seenFlow struct {
	Cluster       string         `json:"cluster"`
	SourceCluster string         `json:"sourceCluster,omitempty"`
	Subject       string         `json:"subject,omitempty"`
	Source        string         `json:"source,omitempty"`
	Resource      string         `json:"resource,omitempty"`
	Destination   string         `json:"destination,omitempty"`
	Action        string         `json:"action,omitempty"`
	Port          uint16         `json:"port"`
	Protocol      string         `json:"protocol"`
	Decision      policy.Verdict `json:"decision"`
	Verdict       audit.Verdict  `json:"verdict"`
	Statement     *policy.Ref    `json:"statement,omitempty"`
	Count         int64          `json:"count"`
	First         time.Time      `json:"first"`
	Last          time.Time      `json:"last"`
}

func newFlows(s Streams) *cobra.Command {
	o := &flowsOptions{flowSource: newFlowSource(s)}
	cmd := &cobra.Command{
		Use:   "flows [--store STORE]",
		Short: "List observed connections, the latest first",
		Long: `List observed connections, the latest first: each edge once, with its total in the window, the decision of the policies and
the verdict of the dataplane. Several values of one flag are alternatives; several flags must all match.

With --store the flows are read from the store. Without it they are read from the portal, which shows what you may see; NAMES
may then be catalog ids.`,
		Example: `  kubectl acp flows --store sqlite:flows.db --decision denied,default-denied --since 1h
  kubectl acp flows --store sqlite:flows.db --unattributed -o json
  kubectl acp flows --resource bobs-cluster --decision audited`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.storeFlags(cmd)
	o.window.flags(cmd, "24h")
	f := cmd.Flags()
	f.StringSliceVar(&o.subjects, "subject", nil, "only from these `NAMES`")
	f.StringSliceVar(&o.resources, "resource", nil, "only to these `NAMES`")
	f.StringSliceVar(&o.clusters, "cluster", nil, "only in these `MEMBERS`")
	f.StringSliceVar(&o.actions, "action", nil, "only these `ACTIONS`")
	f.StringSliceVar(&o.decisions, "decision", nil, "only with these `WORDS`: "+join(words))
	f.StringSliceVar(&o.verdicts, "verdict", nil, "only with these `VERDICTS` of the dataplane: "+join(verdicts))
	f.UintSliceVar(&o.ports, "port", nil, "only to these `PORTS`")
	f.StringVar(&o.policy, "policy", "", "only decided by a statement of this `POLICY`")
	f.StringVar(&o.sid, "sid", "", "only decided by the statement of this `SID`")
	f.BoolVar(&o.unattributed, "unattributed", false, "only those with an end that has no name")
	f.BoolVar(&o.disagree, "disagree", false, "only those in which the dataplane's verdict differs from the decision of the policies")
	f.StringVar(&o.text, "search", "", "only with this `TEXT` in a name or source")
	f.IntVar(&o.limit, "limit", 100, "maximum number; 0 means all")
	return cmd
}

var verdicts = []audit.Verdict{audit.VerdictForwarded, audit.VerdictDropped, audit.VerdictAudit, audit.VerdictUnknown}

func (o *flowsOptions) run(ctx context.Context) error {
	if err := o.output.check(); err != nil {
		return err
	}
	for _, d := range o.decisions {
		if !slices.Contains(words, policy.Verdict(d)) {
			return usage("--decision %q is none of %s", d, join(words))
		}
	}
	for _, v := range o.verdicts {
		if !slices.Contains(verdicts, audit.Verdict(v)) {
			return usage("--verdict %q is none of %s", v, join(verdicts))
		}
	}
	for _, p := range o.ports {
		if p > 65535 {
			return usage("--port %d is above 65535", p)
		}
	}
	if o.limit < 0 {
		return usage("--limit %d is below 0", o.limit)
	}
	if o.store == "" {
		return remotely(o.ask(ctx))
	}
	return flowsFailed(o.work(ctx))
}

func (o *flowsOptions) work(ctx context.Context) error {
	for _, name := range slices.Concat(o.subjects, o.resources) {
		if err := exactName("--subject and --resource", name); err != nil {
			return err
		}
	}
	since, until, err := o.bounds(o.streams.Now())
	if err != nil {
		return err
	}
	q := audit.ConnectionQuery{
		Filter: audit.Filter{Since: since, Until: until, Subjects: o.subjects, Resources: o.resources, Clusters: o.clusters, Actions: o.actions,
			Policy: o.policy, SID: o.sid, Unattributed: o.unattributed, Disagree: o.disagree, Text: o.text},
	}
	for _, d := range o.decisions {
		q.Decisions = append(q.Decisions, policy.Verdict(d))
	}
	for _, v := range o.verdicts {
		q.Verdicts = append(q.Verdicts, audit.Verdict(v))
	}
	for _, p := range o.ports {
		q.Ports = append(q.Ports, uint16(p))
	}
	r, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	found := []seenFlow{}
	for {
		q.Limit = audit.MaxPage
		if o.limit > 0 {
			q.Limit = min(q.Limit, o.limit-len(found))
		}
		page, err := r.Connections(ctx, q)
		if err != nil {
			return err
		}
		for _, c := range page.Items {
			found = append(found, seenFlowOf(c))
		}
		if q.Cursor = page.Next; page.Next == "" {
			return o.printFlows(found, false)
		}
		if o.limit > 0 && len(found) >= o.limit {
			return o.printFlows(found, true)
		}
	}
}

func seenFlowOf(c audit.Connection) seenFlow {
	f := seenFlow{
		Cluster:       c.Cluster,
		SourceCluster: c.SourceCluster,
		Subject:       c.Subject,
		Source:        c.Source,
		Resource:      c.Resource,
		Destination:   c.Destination,
		Action:        c.Action,
		Port:          c.Port,
		Protocol:      string(c.Protocol),
		Decision:      c.Decision,
		Verdict:       c.Verdict,
		Count:         c.Count,
		First:         c.FirstSeen.UTC(),
		Last:          c.LastSeen.UTC(),
	}
	if c.Statement != (policy.Ref{}) {
		f.Statement = &c.Statement
	}
	return f
}

func (o *flowsOptions) printFlows(found []seenFlow, more bool) error {
	rows := [][]string{{"LAST", "CLIENT", "RESOURCE", "PORT", "CLUSTER", "DECISION", "VERDICT", "CONNECTIONS", "FIRST", "STATEMENT"}}
	for _, f := range found {
		statement := ""
		if f.Statement != nil {
			statement = f.Statement.String()
		}
		rows = append(
			rows,
			[]string{
				moment(f.Last),
				cmp.Or(f.Subject, f.Source),
				cmp.Or(f.Resource, f.Destination),
				portOf(f.Protocol, f.Port),
				f.Cluster,
				string(f.Decision),
				string(f.Verdict),
				fmt.Sprint(f.Count),
				moment(f.First),
				statement,
			},
		)
	}
	if o.format == asTable && len(found) == 0 {
		fmt.Fprintln(o.streams.Err, "No connections.")
	}
	if err := o.print(found, section{"", rows}); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(o.streams.Err, "There are more: --limit 0 shows all.")
	}
	return nil
}

func (o *flowsOptions) ask(ctx context.Context) error {
	since, until, err := o.bounds(o.streams.Now())
	if err != nil {
		return err
	}
	c, err := o.portal.connect()
	if err != nil {
		return err
	}
	q := url.Values{
		"since":    {since.UTC().Format(time.RFC3339)},
		"until":    {until.UTC().Format(time.RFC3339)},
		"subject":  o.subjects,
		"resource": o.resources,
		"cluster":  o.clusters,
		"action":   o.actions,
		"decision": o.decisions,
		"verdict":  o.verdicts,
	}
	for _, p := range o.ports {
		q.Add("port", fmt.Sprint(p))
	}
	for key, v := range map[string]string{"policy": o.policy, "sid": o.sid, "q": o.text} {
		if v != "" {
			q.Set(key, v)
		}
	}
	for key, v := range map[string]bool{"unattributed": o.unattributed, "disagree": o.disagree} {
		if v {
			q.Set(key, "true")
		}
	}
	const most = 200 // the maximum of one page of the API
	found := []portalclient.Connection{}
	more := false
	for {
		q.Set("limit", strconv.Itoa(most))
		if o.limit > 0 {
			q.Set("limit", strconv.Itoa(min(most, o.limit-len(found))))
		}
		var page portalclient.FlowConnectionList
		if err := c.Get(ctx, "/flows", q, &page); err != nil {
			return err
		}
		if !page.Available {
			return errNoFlows
		}
		found = append(found, page.Items...)
		if page.NextCursor == nil {
			break
		}
		if more = o.limit > 0 && len(found) >= o.limit; more {
			break
		}
		q.Set("cursor", *page.NextCursor)
	}
	rows := [][]string{{"LAST", "CLIENT", "RESOURCE", "PORT", "CLUSTER", "DECISION", "VERDICT", "CONNECTIONS", "FIRST", "STATEMENT", "TICKET"}}
	for _, f := range found {
		statement := text(f.Policy)
		if sid := text(f.Sid); sid != "" {
			statement += "/" + sid
		}
		rows = append(
			rows,
			[]string{
				moment(f.LastSeen),
				f.Subject.Name,
				cmp.Or(text(f.Resource.Id), f.Resource.Name),
				portOf(f.Protocol, f.Port),
				f.Cluster,
				string(f.Decision),
				string(f.Verdict),
				fmt.Sprint(f.Count),
				moment(f.FirstSeen),
				statement,
				text(f.Ticket),
			},
		)
	}
	if o.format == asTable && len(found) == 0 {
		fmt.Fprintln(o.streams.Err, "No connections.")
	}
	if err := o.print(found, section{"", rows}); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(o.streams.Err, "There are more: --limit 0 shows all.")
	}
	return nil
}
