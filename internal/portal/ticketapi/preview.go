package ticketapi

import (
	"context"
	"fmt"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/change"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// PreviewTicket implements openapi.StrictServerInterface.
func (a *API) PreviewTicket(ctx context.Context, r openapi.PreviewTicketRequestObject) (openapi.PreviewTicketResponseObject, error) {
	req, err := a.request(core.Caller(ctx), r.Body)
	if err != nil {
		return nil, err
	}
	plan, err := a.Tickets.Plan(core.RequestContext(ctx), core.Caller(ctx), req)
	if err != nil {
		return nil, err
	}
	out, err := a.preview(ctx, plan, core.Caller(ctx).ID)
	if err != nil {
		return nil, err
	}
	return openapi.PreviewTicket200JSONResponse(out), nil
}

// preview returns the view of a plan, with existing access and open tickets.
func (a *API) preview(ctx context.Context, plan approval.Plan, requester string) (openapi.TicketPreview, error) {
	out := openapi.TicketPreview{Items: []openapi.PreviewItem{}}
	snap, err := a.Snapshot()
	if err != nil {
		return out, err
	}
	in, err := a.Input()
	if err != nil {
		return out, err
	}
	existing := make([][]policy.Grant, len(plan.Items))
	var all []policy.Grant
	for i, p := range plan.Items {
		if p.Err == nil && p.ApplicationName != "" && p.ResourceName != "" {
			for _, g := range snap.WhoCanReach(p.ResourceName, a.Now()) {
				if g.Subject == p.ApplicationName || g.Subject == "*" {
					existing[i] = append(existing[i], g)
				}
			}
			all = append(all, existing[i]...)
		}
	}
	origin, err := a.OriginsOf(ctx, all)
	if err != nil {
		return out, err
	}
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return out, err
	}
	denied := map[string]map[string]int64{} // by application, so that many items of one make one query
	for i, p := range plan.Items {
		if _, counted := denied[p.ApplicationName]; p.ApplicationName != "" && p.ResourceName != "" && !counted {
			denied[p.ApplicationName] = a.Denials(ctx, audit.DeniedQuery{By: audit.ByResource, Subject: p.ApplicationName})
		}
		x := a.previewItem(ctx, who, i, plan.Kind, p, a.AccessOf(existing[i], origin))
		if p.ApplicationName != "" && p.ResourceName != "" && p.Err == nil {
			x.Denied24h = views.DenialCount(denied[p.ApplicationName], p.ResourceName)
		}
		if p.Err == nil && plan.Kind.Access() && p.ResourceName != "" {
			if mode := change.Onboarding(snap, in.Resources, p.ResourceName, previewed(p, a.Now()).SID); mode != "" {
				x.Onboards = new(openapi.Mode(mode))
			}
		}
		out.Items = append(out.Items, x)
	}
	if err := a.previewRules(plan, requester, &out); err != nil {
		return out, err
	}
	return out, a.previewChange(core.Caller(ctx), plan, &out)
}

// previewRules adds further rules of the approval policies that determined the chains.
func (a *API) previewRules(plan approval.Plan, requester string, out *openapi.TicketPreview) error {
	all, err := a.ApprovalPolicies()
	if err != nil {
		return err
	}
	byName := map[string]*v1alpha1.ApprovalPolicy{}
	for _, p := range all {
		byName[p.Name] = p
	}
	glass := plan.Kind == approval.KindGrant
	for _, it := range plan.Items {
		p := byName[it.Approval]
		glass = glass && it.Err == nil && p != nil && views.MayBreakGlass(p, requester)
		longest, bounded := longestOf(it.Item, p, a.Now())
		if !bounded {
			continue
		}
		if most := int64(longest.Seconds()); out.MaxDurationSeconds == nil || most < *out.MaxDurationSeconds {
			out.MaxDurationSeconds = &most
		}
	}
	out.BreakGlass = &glass
	return nil
}

// longestOf returns how long an item may last under its approval policy if it were approved now. It returns false if there is no limit.
func longestOf(it approval.Item, p *v1alpha1.ApprovalPolicy, now time.Time) (time.Duration, bool) {
	since := it.Earlier.Since
	var longest time.Duration
	switch {
	case p != nil && it.Review != nil && p.Spec.BreakGlass != nil:
		longest, since = min(p.Spec.BreakGlass.MaxDuration.Duration, rules.MaxBreakGlass), it.Earlier.GlassSince
	case p != nil && p.Spec.MaxDuration != nil:
		longest = p.Spec.MaxDuration.Duration
	default:
		return it.Earlier.Length, it.Target != nil && it.Earlier.Length > 0
	}
	if !since.IsZero() {
		longest = max(0, longest-now.Sub(since))
	}
	return longest, true
}

// previewChange adds the changes by the items that can be requested.
func (a *API) previewChange(who approval.Actor, plan approval.Plan, out *openapi.TicketPreview) error {
	var items []approval.Item
	for i, p := range plan.Items {
		if p.Err == nil {
			x := previewed(p, a.Now())
			x.SID = fmt.Sprintf("t-new-%d", i+1)
			items = append(items, x)
		}
	}
	if len(items) == 0 {
		return nil
	}
	v, err := a.changeView(who, plan.Kind, items, decidesNone)
	out.Change = &v
	return err
}

func (a *API) previewItem(
	ctx context.Context,
	who approval.Actor,
	position int,
	kind approval.Kind,
	p approval.PlanItem,
	existing []openapi.Access,
) openapi.PreviewItem {
	c := a.Catalog()
	out := openapi.PreviewItem{Position: position, Steps: []openapi.Step{}}
	if p.Err != nil {
		out.Problem = new(core.ToProblem(a.HideDuplicate(ctx, p.Err)))
		return out
	}
	if p.Covered != nil {
		kind, out.Target = approval.KindExtend, itemRef(p.Covered)
	} else if p.Target != nil {
		out.Target = itemRef(p.Target)
	}
	out.Kind = new(openapi.TicketKind(kind))
	out.ApprovalPolicy, out.Steps = core.Optional(p.Approval), stepsOf(c, who, p.Item, p.Steps)
	if p.Review != nil {
		out.Review = new(stepOf(c, who, p.Item, *p.Review))
	}
	out.Statement = objectYAML(kind, previewed(p, a.Now()))
	if len(p.Shown.Lines) > 0 {
		out.Lines = new(approval.LineMessages(p.Shown.Lines))
	}
	if p.Duplicate != 0 && a.TicketVisible(ctx, p.Duplicate) {
		out.Duplicate = new(approval.FormatID(p.Duplicate))
	}
	if p.ResourceName != "" {
		out.Resource = new(refOf(c, p.Resource, p.ResourceName))
		out.Protection = views.Protection(a.Host.Protection(p.ResourceName))
	}
	if p.ApplicationName != "" && p.ResourceName != "" {
		out.Existing = &existing
	}
	return out
}

// previewed returns the item as if it were approved now.
func previewed(p approval.PlanItem, now time.Time) approval.Item {
	p.SID = "t-new-1"
	if p.Duration > 0 {
		p.ExpiresAt = now.Add(p.Duration).Truncate(time.Second)
	}
	return p.Item
}

func itemRef(t *approval.Target) *openapi.ItemRef {
	if t == nil {
		return nil
	}
	return &openapi.ItemRef{Ticket: approval.FormatID(t.Ticket), Item: t.Item}
}
