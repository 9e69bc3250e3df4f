package insightapi

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	listUnused   = "unused"
	maxQuietDays = 365
	// maxUnobserved is the maximum number of listed names.
	maxUnobserved = 100
)

// ListResourceUnused implements openapi.StrictServerInterface.
func (a *API) ListResourceUnused(ctx context.Context, r openapi.ListResourceUnusedRequestObject) (openapi.ListResourceUnusedResponseObject, error) {
	e, err := a.InspectableResource(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	out, who, err := a.unused(ctx, r.Params.QuietDays, []string{e.Name}, func(v1alpha1.Statement) bool { return true })
	if err != nil {
		return nil, err
	}
	return openapi.ListResourceUnused200JSONResponse(out), a.addRevocations(ctx, who, out.Items)
}

// ListApplicationUnused implements openapi.StrictServerInterface.
func (a *API) ListApplicationUnused(ctx context.Context, r openapi.ListApplicationUnusedRequestObject) (openapi.ListApplicationUnusedResponseObject, error) {
	e, err := a.InspectableApplication(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	out, who, err := a.unused(
		ctx,
		r.Params.QuietDays,
		reached(snap, e.Name, a.Now()),
		func(s v1alpha1.Statement) bool { return slices.Contains(s.Subjects, v1alpha1.Subject(e.Name)) },
	)
	if err != nil {
		return nil, err
	}
	return openapi.ListApplicationUnused200JSONResponse(out), a.addRevocations(ctx, who, out.Items)
}

// reached returns the resources in the statements about a subject.
func reached(snap *policy.Snapshot, subject string, now time.Time) []string {
	var out []string
	for _, g := range snap.WhatCanReach(subject, now) {
		if g.Subject == subject {
			out = append(out, g.Resource)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ListUnused implements openapi.StrictServerInterface.
func (a *API) ListUnused(ctx context.Context, r openapi.ListUnusedRequestObject) (openapi.ListUnusedResponseObject, error) {
	c, who := a.Catalog(), core.Caller(ctx)
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	var own []string // resources of which every statement is included
	var apps []v1alpha1.Subject
	var resources []string
	for _, e := range c.Resources() {
		if views.MayInspect(c, who, e) && a.ResourceMatches(e, r.Params.Class, r.Params.Owner) {
			own = append(own, e.Name)
		}
	}
	resources = slices.Clone(own)
	if r.Params.Class == nil && r.Params.Owner == nil {
		mine, _ := c.Owned(who.ID)
		for _, e := range mine {
			apps = append(apps, v1alpha1.Subject(e.Name))
			resources = append(resources, reached(snap, e.Name, a.Now())...)
		}
	}
	slices.Sort(resources)
	slices.Sort(own)
	out, who, err := a.unused(ctx, r.Params.QuietDays, slices.Compact(resources), func(s v1alpha1.Statement) bool {
		return slices.ContainsFunc(s.Subjects, func(x v1alpha1.Subject) bool { return slices.Contains(apps, x) }) ||
			slices.ContainsFunc(s.Resources, func(x v1alpha1.ResourceName) bool { return covers(string(x), own) })
	})
	if err != nil {
		return nil, err
	}
	shown, next, err := core.Page(
		listUnused,
		out.Items,
		func(u openapi.Unused) string { return u.Policy + "/" + u.Sid },
		func(u openapi.Unused, part string) bool {
			return strings.Contains(strings.ToLower(u.Policy+"\n"+u.Sid+"\n"+refsText(u.Subjects)+refsText(u.Resources)), part)
		},
		r.Params.Q,
		r.Params.Cursor,
		r.Params.Limit,
	)
	if err != nil {
		return nil, err
	}
	out.Items, out.NextCursor = shown, next
	return openapi.ListUnused200JSONResponse(out), a.addRevocations(ctx, who, shown)
}

// addRevocations adds to each row the ticket under way that requests the revocation of its grant.
func (a *API) addRevocations(ctx context.Context, who approval.Actor, rows []openapi.Unused) error {
	var grants []approval.Target
	of := make([]approval.Target, len(rows))
	for i, row := range rows {
		if row.Ticket != nil {
			number, _ := approval.ParseID(*row.Ticket)
			of[i] = approval.Target{Ticket: number, Item: *row.TicketItem}
			grants = append(grants, of[i])
		}
	}
	revocations, err := a.RevocationsOf(ctx, grants)
	if err != nil || len(revocations) == 0 {
		return err
	}
	c := a.Catalog()
	for i, g := range of {
		if t := revocations[g]; t != nil {
			rows[i].RevocationTicket, rows[i].RevocationVisible = new(t.ID()), new(approval.MayDo(c, who, t).See)
		}
	}
	return nil
}

// covers reports whether a statement's resource, which may end in a wildcard, covers one of the sorted names.
func covers(pattern string, names []string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	i, ok := slices.BinarySearch(names, prefix)
	return ok && !wild || wild && i < len(names) && strings.HasPrefix(names[i], prefix)
}

func refsText(refs []openapi.CatalogRef) string {
	var out strings.Builder
	for _, r := range refs {
		out.WriteString(r.Name + "\n" + r.Title + "\n")
	}
	return out.String()
}

// unused returns the unused statements about some resources, in the order of the cursor, and the caller with the people whom they represent.
func (a *API) unused(ctx context.Context, days *int, resources []string, include func(v1alpha1.Statement) bool) (openapi.UnusedList, approval.Actor, error) {
	quiet := views.DefaultQuietDays
	if days != nil {
		quiet = *days
	}
	out := openapi.UnusedList{QuietDays: quiet, Items: []openapi.Unused{}}
	if quiet < 1 || quiet > maxQuietDays {
		return out, approval.Actor{}, core.InvalidParameter("quietDays", message.FieldRange(1, maxQuietDays))
	}
	snap, err := a.Snapshot()
	if err != nil || len(resources) == 0 {
		return out, approval.Actor{}, err
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	now := a.Now()
	window := time.Duration(quiet) * 24 * time.Hour
	fleet := insight.FleetOf(a.Host.Members())
	watch, err := insight.Watched(limited, a.Flows, now.Add(-window), now, nil)
	if err != nil {
		return out, approval.Actor{}, err
	}
	var unobserved []string
	resources = slices.DeleteFunc(slices.Clone(resources), func(name string) bool {
		covered := watch.Covers(fleet, snap, name)
		if !covered {
			unobserved = append(unobserved, name)
		}
		return !covered
	})
	if len(unobserved) > 0 {
		out.Unobserved = new(unobserved[:min(len(unobserved), maxUnobserved)])
	}
	if len(resources) == 0 {
		return out, approval.Actor{}, nil
	}
	from, grants, err := a.originsOfStatements(ctx, snap, resources)
	if err != nil {
		return out, approval.Actor{}, err
	}
	found, err := insight.Unused(
		limited,
		a.Flows,
		insight.UnusedInput{Snapshot: snap, Fleet: fleet, Resources: resources, QuietFor: window, Now: now, Since: now.Add(-max(views.LastUseWindow, window)),
			Granted: func(ref policy.Ref) (time.Time, bool) {
				t, i := from.Item(grants[ref])
				if t == nil {
					return time.Time{}, false
				}
				return views.GrantedAt(t, i), true
			}},
	)
	if err != nil {
		return out, approval.Actor{}, err
	}
	c := a.Catalog()
	for _, u := range found {
		if include(u.Statement) {
			x := unusedOf(c, u, from, grants[u.Ref])
			if !slices.ContainsFunc(x.Resources, func(r openapi.CatalogRef) bool { return views.MayInspectName(c, from.Who, r.Name) }) {
				x.Subjects = slices.DeleteFunc(x.Subjects, func(s openapi.CatalogRef) bool { return !views.OwnsApplication(c, from.Who, s.Name) })
			}
			out.Items = append(out.Items, x)
		}
	}
	slices.SortFunc(out.Items, func(x, y openapi.Unused) int { return cmp.Compare(x.Policy+"/"+x.Sid, y.Policy+"/"+y.Sid) })
	return out, from.Who, nil
}

// originsOfStatements returns the tickets of the statements about some resources, and each statement as a grant.
func (a *API) originsOfStatements(ctx context.Context, snap *policy.Snapshot, resources []string) (views.Origins, map[policy.Ref]policy.Grant, error) {
	grants := map[policy.Ref]policy.Grant{}
	list := []policy.Grant{}
	for _, name := range resources {
		for _, w := range snap.StatementsAbout(name) {
			base, _ := policy.SplitPolicyShard(w.Ref.Policy)
			if _, known := grants[w.Ref]; known || len(w.Statement.Subjects) == 0 || len(w.Statement.Subjects) != 1 && base != policy.StatementsPolicy {
				continue // a ticket's statement has one subject, except those with a scope
			}
			g := policy.Grant{Ref: w.Ref, Subject: string(w.Statement.Subjects[0]), Resource: name}
			grants[w.Ref] = g
			list = append(list, g)
		}
	}
	from, err := a.OriginsOf(ctx, list)
	return from, grants, err
}

func unusedOf(c *catalog.Catalog, u insight.UnusedStatement, from views.Origins, g policy.Grant) openapi.Unused {
	x := openapi.Unused{
		Policy:       u.Ref.Policy,
		Sid:          u.Ref.SID,
		Effect:       openapi.UnusedEffect(u.Statement.Effect),
		Subjects:     []openapi.CatalogRef{},
		Resources:    []openapi.CatalogRef{},
		Actions:      []string{},
		DaysObserved: u.DaysObserved,
		Reason:       u.Reason,
	}
	if u.LastUsed != nil {
		x.LastUsed = views.Time(*u.LastUsed)
	}
	for _, s := range u.Statement.Subjects {
		x.Subjects = append(x.Subjects, views.Ref(c, string(s)))
	}
	for _, r := range u.Statement.Resources {
		x.Resources = append(x.Resources, views.Ref(c, string(r)))
	}
	for _, action := range u.Statement.Actions {
		x.Actions = append(x.Actions, string(action))
	}
	if t, i := from.Item(g); t != nil {
		may := approval.MayDoItem(c, from.Who, t, i)
		x.Ticket, x.TicketItem, x.TicketVisible, x.CanRevoke = new(t.ID()), &i, &may.See, &may.Revoke
		if may.See {
			x.TicketReason = core.Optional(t.Reason)
		}
	}
	return x
}
