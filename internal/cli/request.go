package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/portalclient"
)

// asking contains the flags that requests and extensions have in common.
type asking struct {
	remote
	output
	reason  string
	period  string
	dryRun  bool
	wait    bool
	timeout time.Duration
}

func (a *asking) flags(cmd *cobra.Command) {
	a.remote.flags(cmd)
	a.flag(cmd, asTable)
	f := cmd.Flags()
	f.StringVar(&a.reason, "reason", "", "the reason, which the approvers see (required)")
	f.StringVar(&a.period, "for", "", "how long, such as 8h, 30d or 12w (default: until revoked)")
	f.BoolVar(&a.dryRun, "dry-run", false, "only show who would have to approve")
	f.BoolVar(&a.wait, "wait", false, "wait until it is effective in every member, or refused")
	f.DurationVar(&a.timeout, "timeout", 0, "with --wait: give up after this time (default: never)")
}

type requestOptions struct {
	asking
	applications []string
	resources    []string
	actions      []string
	effect       string
	subjects     []string
	mode         string
	breakGlass   bool
}

func newRequest(s Streams) *cobra.Command {
	o := &requestOptions{asking: asking{remote: remote{streams: s}}}
	cmd := &cobra.Command{
		Use:   "request --app ID --resource ID... --action NAME... --reason TEXT",
		Short: "Request access, or a change of a resource's mode",
		Long: `Request access of applications to resources; with --mode, a change of the resources' mode; or, with --effect, a statement: a deny, or
prefixes, address ranges or anyone. Names are catalog ids, as in the portal. --dry-run shows who would have to approve, without writing anything.

With --wait the exit code is 0 if the ticket is effective, and 1 if it was refused, withdrawn or failed.`,
		Example: `  kubectl acp request --app app-888 --resource bobs-cluster --action redis:connect --for 30d --reason 'session cache'
  kubectl acp request --effect Deny --subject app-889 --resource bobs-cluster --action redis:connect --reason 'an incident'
  kubectl acp request --resource bobs-cluster --mode Enforce --reason 'everybody has a grant'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return remotely(o.run(cmd.Context())) },
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&o.applications, "app", nil, "the applications' catalog `IDS`; each of them requests access to each resource")
	f.StringVar(&o.effect, "effect", "", "request one statement instead: Allow or Deny")
	f.StringSliceVar(&o.subjects, "subject", nil, "with --effect: the `SUBJECTS`: applications, prefixes, address ranges, or * for anyone")
	f.StringSliceVar(&o.resources, "resource", nil, "the resources' catalog `IDS`")
	f.StringSliceVar(&o.actions, "action", nil, "the `ACTIONS`, such as redis:connect")
	f.StringVar(&o.mode, "mode", "", "request this mode of the resources instead: Observe, Audit or Enforce")
	f.BoolVar(&o.breakGlass, "break-glass", false, "effective at once and reviewed afterwards; only for people who are allowed to use it")
	return cmd
}

func (o *requestOptions) run(ctx context.Context) error {
	period, err := parsePeriod(o.period)
	if err != nil {
		return err
	}
	switch {
	case len(o.resources) == 0:
		return usage("--resource is needed: the catalog ids of the resources")
	case o.effect != "":
		if err := o.checkStatement(); err != nil {
			return err
		}
	case len(o.subjects) > 0:
		return usage("--subject needs --effect: Allow or Deny")
	case o.mode == "" && len(o.applications) == 0:
		return usage("--app is needed: the catalog id of the application")
	case o.mode == "" && len(o.actions) == 0:
		return usage("--action is needed, such as redis:connect")
	case o.mode != "" && (len(o.applications) > 0 || len(o.actions) > 0 || o.period != ""):
		return usage("--mode does not go with --app, --action or --for")
	case o.mode != "" && !portalclient.Mode(o.mode).Valid():
		return usage("--mode %q is not Observe, Audit or Enforce", o.mode)
	}
	kind := portalclient.TicketKindGrant
	switch {
	case o.effect != "":
		kind = portalclient.TicketKindStatement
	case o.mode != "":
		kind = portalclient.TicketKindMode
	}
	body := portalclient.NewTicket{Kind: &kind, DurationSeconds: period, Reason: o.reason}
	if o.breakGlass {
		body.BreakGlass = &o.breakGlass
	}
	body.Items = o.items(kind)
	if n := len(body.Items); n > maxRequestItems {
		return usage("%d applications and %d resources make %d items; a request has at most %d", len(o.applications), len(o.resources), n, maxRequestItems)
	}
	return o.ask(ctx, body)
}

// maxRequestItems is the maximum number of items of a request, as in api/openapi.yaml.
const maxRequestItems = 50

// items returns the items of a request: one for each application and resource, one for each resource whose mode changes, or one statement.
func (o *requestOptions) items(kind portalclient.TicketKind) []portalclient.NewTicketItem {
	if kind == portalclient.TicketKindStatement {
		scope := portalclient.StatementScope{Effect: portalclient.StatementScopeEffect(o.effect), Subjects: o.subjects, Resources: o.resources}
		return []portalclient.NewTicketItem{{Scope: &scope, Actions: &o.actions}}
	}
	var out []portalclient.NewTicketItem
	for _, r := range o.resources {
		if kind == portalclient.TicketKindMode {
			mode := portalclient.Mode(o.mode)
			out = append(out, portalclient.NewTicketItem{Resource: &r, Mode: &mode})
			continue
		}
		for _, app := range o.applications {
			out = append(out, portalclient.NewTicketItem{Application: &app, Resource: &r, Actions: &o.actions})
		}
	}
	return out
}

// checkStatement checks the flags of a request for a statement.
func (o *requestOptions) checkStatement() error {
	switch {
	case !portalclient.StatementScopeEffect(o.effect).Valid():
		return usage("--effect %q is not Allow or Deny", o.effect)
	case len(o.subjects) == 0:
		return usage("--subject is needed: applications, prefixes, address ranges, or * for anyone")
	case len(o.actions) == 0:
		return usage("--action is needed, such as redis:connect")
	case o.mode != "" || len(o.applications) > 0 || o.breakGlass:
		return usage("--effect does not go with --mode, --app or --break-glass")
	}
	return nil
}

type extendOptions struct {
	asking
	item int
}

func newExtend(s Streams) *cobra.Command {
	o := &extendOptions{asking: asking{remote: remote{streams: s}}}
	cmd := &cobra.Command{
		Use:     "extend T-N --for PERIOD --reason TEXT",
		Short:   "Request the extension of a grant",
		Example: "  kubectl acp extend T-42 --for 30d --reason 'the migration takes longer'",
		Args:    oneArgument("the ticket, such as T-42,"),
		RunE:    func(cmd *cobra.Command, args []string) error { return remotely(o.run(cmd.Context(), args[0])) },
	}
	o.flags(cmd)
	cmd.Flags().IntVar(&o.item, "item", -1, "only this item of the ticket, by its position from 0")
	return cmd
}

func (o *extendOptions) run(ctx context.Context, id string) error {
	if err := checkTicket(id); err != nil {
		return err
	}
	period, err := parsePeriod(o.period)
	if err != nil {
		return err
	}
	c, err := o.connect()
	if err != nil {
		return err
	}
	var t portalclient.Ticket
	if err := c.Get(ctx, "/tickets/"+id, nil, &t); err != nil {
		return err
	}
	kind := portalclient.TicketKindExtend
	body := portalclient.NewTicket{Kind: &kind, DurationSeconds: period, Reason: o.reason}
	for _, it := range t.Items {
		if it.Can.Extend && (o.item < 0 || o.item == it.Position) {
			body.Items = append(body.Items, portalclient.NewTicketItem{Target: &portalclient.ItemRef{Ticket: id, Item: it.Position}})
		}
	}
	if len(body.Items) == 0 {
		return fmt.Errorf("%s has nothing that you could extend: only owners of the application can, and only what is in force", id)
	}
	return o.ask(ctx, body)
}

// ask sends a request, or only its preview.
func (a *asking) ask(ctx context.Context, body portalclient.NewTicket) error {
	if err := a.check(); err != nil {
		return err
	}
	if strings.TrimSpace(a.reason) == "" {
		return usage("--reason is needed: the approvers decide by it")
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	if a.dryRun {
		return a.preview(ctx, c, body)
	}
	var t portalclient.Ticket
	if err := c.Post(ctx, "/tickets", newKey(), body, &t); err != nil {
		return err
	}
	if a.wait {
		fmt.Fprintf(a.streams.Err, "%s is %s, waits for %s ...\n", t.Id, t.State, waitsFor(t))
		if t, err = a.end(ctx, c, t); err != nil {
			return err
		}
	}
	if a.format != asTable {
		err = a.document(a.streams.Out, t)
	} else {
		printTicket(a.streams.Out, t)
	}
	if err == nil && a.wait && t.State != portalclient.TicketStateEffective {
		err = errFindings
	}
	return err
}

func (a *asking) preview(ctx context.Context, c *portalclient.Client, body portalclient.NewTicket) error {
	var p portalclient.TicketPreview
	if err := c.Post(ctx, "/tickets/preview", "", body, &p); err != nil {
		return err
	}
	if a.format != asTable {
		return a.document(a.streams.Out, p)
	}
	w := a.streams.Out
	for i, it := range p.Items {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "Item %d\n", it.Position)
		switch {
		case it.Problem != nil:
			fmt.Fprintf(w, "  refused: %s\n", printable(it.Problem.Message.Render(language())))
			continue
		case it.Duplicate != nil:
			fmt.Fprintf(w, "  is requested already: %s\n", *it.Duplicate)
		case it.Target != nil:
			fmt.Fprintf(w, "  extends %s\n", it.Target.Ticket)
		}
		for _, s := range it.Steps {
			printStep(w, s)
		}
		if it.Lines != nil {
			for _, line := range *it.Lines {
				fmt.Fprintf(w, "  + %s\n", printable(line.Render(language())))
			}
		}
	}
	return nil
}

// end follows a ticket until its state is final.
func (a *asking) end(ctx context.Context, c *portalclient.Client, t portalclient.Ticket) (portalclient.Ticket, error) {
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	pause := 500 * time.Millisecond
	for {
		switch t.State {
		case portalclient.TicketStatePending, portalclient.TicketStateApproved, portalclient.TicketStateApplying, portalclient.TicketStateRevoking:
		default:
			return t, nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return t, fmt.Errorf("%s is still %s after %s; it goes on without this command", t.Id, t.State, a.timeout)
			}
			return t, fmt.Errorf("wait for %s: %w", t.Id, ctx.Err())
		case <-time.After(pause):
		}
		var now portalclient.Ticket
		err := c.Get(ctx, "/tickets/"+t.Id, nil, &now)
		var problem *portalclient.Error
		switch {
		case err == nil:
			t = now
		case ctx.Err() != nil:
		case errors.As(err, &problem) && problem.Status < 500 && problem.Code != "rate-limited":
			return t, err
		}
		if t.State == portalclient.TicketStatePending {
			pause = min(pause*2, 10*time.Second) // approvals take time
		} else {
			pause = 500 * time.Millisecond
		}
	}
}

// parsePeriod parses 90m, 8h, 30d or 12w; an empty text gives nil.
func parsePeriod(s string) (*int64, error) {
	if s == "" {
		return nil, nil
	}
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	var d time.Duration
	if unit, ok := units[s[len(s)-1]]; ok {
		n, err := strconv.ParseUint(s[:len(s)-1], 10, 16)
		if err != nil {
			return nil, usage("--for %q is not a time such as 8h, 30d or 12w", s)
		}
		d = time.Duration(n) * unit
	} else {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			return nil, usage("--for %q is not a time such as 8h, 30d or 12w", s)
		}
	}
	if d < time.Second {
		return nil, usage("--for %q is too short", s)
	}
	seconds := int64(d / time.Second)
	return &seconds, nil
}
