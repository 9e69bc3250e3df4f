package packageapi

import (
	"context"
	"slices"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// updates returns how far the versions of a package have been given to existing holders, by the numbers of the versions. The numbers and the
// list contain only applications that the caller may see. Only the newest update has the list.
func (a *API) updates(ctx context.Context, c *catalog.Catalog, name, team string) (map[int]*openapi.PackageUpdate, error) {
	list, err := a.Packages.UpdatesOf(core.RequestContext(ctx), name, maxVersions)
	if err != nil {
		return nil, err
	}
	who := core.Caller(ctx)
	sees := func(string) bool { return true }
	if !seesHolders(c, who, team) {
		own, _ := c.Owned(who.ID)
		mine := map[string]bool{}
		for _, n := range views.Names(own) {
			mine[n] = true
		}
		sees = func(application string) bool { return mine[application] }
	}
	out := map[int]*openapi.PackageUpdate{}
	for i, u := range list {
		holders, err := a.Packages.HolderUpdates(core.RequestContext(ctx), accesspackage.HolderFilter{Package: name, Version: u.Version})
		if err != nil {
			return nil, err
		}
		x := updateOf(u, holders, sees)
		if i == 0 {
			if x.Applications, err = a.updateApplications(ctx, c, slices.DeleteFunc(holders, func(h accesspackage.HolderUpdate) bool {
				return !sees(h.Application)
			})); err != nil {
				return nil, err
			}
		}
		out[u.Version] = x
	}
	return out, nil
}

// updateOf returns the view of an update, without the list of its applications. It counts the applications that the caller sees.
func updateOf(u accesspackage.Update, holders []accesspackage.HolderUpdate, sees func(application string) bool) *openapi.PackageUpdate {
	out := &openapi.PackageUpdate{State: openapi.PackageUpdateState(u.State), BegunAt: views.Time(u.BegunAt), EndedAt: views.Time(u.EndedAt),
		Applications: []openapi.PackageUpdateApplication{}}
	if !u.Reason.IsZero() {
		out.Reason = &u.Reason
	}
	for _, h := range holders {
		if !sees(h.Application) {
			continue
		}
		out.Total++
		switch h.State {
		case accesspackage.HolderPlanned, accesspackage.HolderRevoked, accesspackage.HolderWaiting:
			out.Waiting++
		case accesspackage.HolderDone:
			out.Done++
		case accesspackage.HolderSkipped:
			out.Skipped++
		case accesspackage.HolderFailed:
			out.Failed++
		}
	}
	return out
}

// updateApplications returns the views of applications of an update, with the tickets that the caller may see.
func (a *API) updateApplications(ctx context.Context, c *catalog.Catalog, holders []accesspackage.HolderUpdate) ([]openapi.PackageUpdateApplication, error) {
	out := make([]openapi.PackageUpdateApplication, 0, len(holders))
	visible := map[int64]bool{}
	f := approval.Filter{OmitEvents: true}
	for _, h := range holders {
		if h.Ticket != 0 {
			f.Numbers = append(f.Numbers, h.Ticket)
		}
	}
	if len(f.Numbers) > 0 {
		who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
		if err != nil {
			return nil, err
		}
		if f.VisibleTo, err = a.Tickets.VisibleTo(core.RequestContext(ctx), who); err != nil {
			return nil, err
		}
		tickets, err := a.Tickets.Store.List(core.RequestContext(ctx), f)
		if err != nil {
			return nil, err
		}
		for _, t := range tickets {
			visible[t.Number] = true
		}
	}
	for _, h := range holders {
		out = append(out, updateApplication(c, h, visible[h.Ticket]))
	}
	return out, nil
}

func updateApplication(c *catalog.Catalog, h accesspackage.HolderUpdate, showsTicket bool) openapi.PackageUpdateApplication {
	out := openapi.PackageUpdateApplication{Application: views.Ref(c, h.Application), State: openapi.PackageUpdateApplicationState(h.State)}
	if h.State == accesspackage.HolderPlanned || h.State == accesspackage.HolderRevoked {
		out.State = openapi.PackageUpdateApplicationStateWorking
	}
	if showsTicket {
		out.Ticket = new(approval.FormatID(h.Ticket))
	}
	if !h.Message.IsZero() {
		out.Message = &h.Message
	}
	return out
}
