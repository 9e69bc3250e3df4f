package approval

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// grant plans access. Access that a grant in force already gives becomes an extension of that grant, so that the limits of
// extensions apply.
func (x *planner) grant(r RequestItem, path string) (PlanItem, error) {
	it, err := x.access(r, path)
	if err != nil {
		return PlanItem{}, err
	}
	had, target, err := x.covering(&it)
	if err != nil || target == nil {
		return PlanItem{Item: it}, err
	}
	if x.request.holderUpdate { // what the application has otherwise keeps its end
		return PlanItem{}, fail(CodeConflict, message.RequestHasAccess(it.Application))
	}
	if err := x.checkLaterEnd(had, it, path); err != nil {
		return PlanItem{}, err
	}
	it.Target = target
	return PlanItem{Item: it, Covered: target}, nil
}

// access checks the application, resource and actions of a grant.
func (x *planner) access(r RequestItem, path string) (Item, error) {
	app, ok := x.c.Application(r.Application)
	if !ok {
		return Item{}, invalid(path+"application", message.RequestUnknownApplication(r.Application))
	}
	if !x.request.Adopt && !x.request.holderUpdate && !x.actor.asksFor(x.c, app) {
		return Item{}, fail(CodeForbidden, message.RequestApplicationNotOwner(app.Title, ownerNames(x.c, app)))
	}
	res, ok := x.c.Resource(r.Resource)
	if !ok {
		return Item{}, invalid(path+"resource", message.RequestUnknownResource(r.Resource))
	}
	if err := x.adopts(app, res); err != nil {
		return Item{}, err
	}
	covered, err := x.Host.SubjectCovered(app.Name)
	if err != nil {
		return Item{}, err
	}
	if !covered {
		return Item{}, invalid(path+"application", message.RequestNoSubjectClass(app.Name))
	}
	actions, err := x.knownActions(res, r.Actions, path)
	if err != nil {
		return Item{}, err
	}
	if r.Duration != 0 && (r.Duration < MinDuration || r.Duration > MaxDuration) {
		return Item{}, invalid(path+"durationSeconds", message.RequestDurationRange())
	}
	hours, err := normalHours(r.Hours, path)
	if err != nil {
		return Item{}, err
	}
	return Item{
		Application:     app.ID,
		ApplicationName: app.Name,
		Resource:        res.ID,
		ResourceName:    res.Name,
		Actions:         actions,
		Duration:        r.Duration,
		Hours:           hours,
		Adopt:           x.request.Adopt,
		Package:         r.part,
		Author:          x.actor.author,
	}, nil
}

// knownActions returns actions sorted, after checking that the class of the resource has them and that the resource may use the class.
func (x *planner) knownActions(res catalog.Entity, wanted []string, path string) ([]string, error) {
	known, ok, err := x.Host.ResourceActions(res.Name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, invalid(path+"resource", message.RequestNoResourceClass(res.Name))
	}
	facts, err := x.Host.Facts(res.Name)
	if err != nil {
		return nil, err
	}
	if err := x.checkClassUse(facts.ClassObject, res); err != nil {
		return nil, err
	}
	actions := slices.Compact(slices.Sorted(slices.Values(wanted)))
	if len(actions) == 0 {
		return nil, invalid(path+"actions", message.RequestNoAction(strings.Join(known, ", ")))
	}
	for _, a := range actions {
		if !slices.Contains(known, a) {
			return nil, invalid(path+"actions", message.RequestUnknownAction(res.Title, a, strings.Join(known, ", ")))
		}
	}
	return actions, nil
}

// maxHourPeriods is the maximum number of periods of hours. The custom resource definition has the same.
const maxHourPeriods = 16

// normalHours returns the hours of a request in their normal form; nil if it has none.
func normalHours(w *v1alpha1.WeeklyHours, path string) (*v1alpha1.WeeklyHours, error) {
	if w == nil {
		return nil, nil
	}
	if len(w.Periods) > maxHourPeriods {
		return nil, invalid(path+"hours", message.FieldMaxCount(maxHourPeriods))
	}
	if _, err := policy.ParseHours(w); err != nil {
		return nil, invalid(path+"hours", message.Of(err))
	}
	return w.Normal(), nil
}

// hoursCover reports whether access during some hours includes that during others. Hours that cannot be read include nothing.
func hoursCover(had, wanted *v1alpha1.WeeklyHours) bool {
	if had == nil {
		return true
	}
	if wanted == nil {
		return false
	}
	a, errA := policy.ParseHours(had)
	b, errB := policy.ParseHours(wanted)
	return errA == nil && errB == nil && a.Covers(b)
}

// covering returns the grant in force that covers all of an item and lasts longest; nil if there is none. The item
// continues every grant that covers a part of it, so that another choice of actions does not restart the access's
// duration.
func (x *planner) covering(it *Item) (Item, *Target, error) {
	list, err := x.Store.List(
		x.ctx,
		Filter{Application: it.Application, Resource: it.Resource, ItemStates: inForce, OmitEvents: true},
	)
	if err != nil {
		return Item{}, nil, err
	}
	var best Item
	var target *Target
	for _, t := range list {
		for i, had := range t.Items {
			given := func(a string) bool { return slices.Contains(had.Actions, a) }
			if !t.Kind.Access() || !had.State.MayBeOnHost() || had.ApplicationName != it.ApplicationName || had.ResourceName != it.ResourceName ||
				!slices.ContainsFunc(it.Actions, given) {
				continue
			}
			if err := x.continueGrant(it, t, i); err != nil {
				return Item{}, nil, err
			}
			missing := slices.ContainsFunc(it.Actions, func(a string) bool { return !given(a) }) || !hoursCover(had.Hours, it.Hours)
			if !missing {
				it.continueWhole(t, i)
			}
			if had.State == StateEffective && !missing && (target == nil || endsLater(had, best)) {
				best, target = had, &Target{t.Number, i}
			}
		}
	}
	return best, target, nil
}

// continueWhole records in an item that it continues a grant that gives all of its actions.
func (it *Item) continueWhole(t *Ticket, i int) {
	since := t.granted(i)
	if whole := t.Items[i].Earlier.WholeSince; !whole.IsZero() && whole.Before(since) {
		since = whole
	}
	if e := &it.Earlier; e.WholeSince.IsZero() || since.Before(e.WholeSince) {
		e.WholeSince = since
	}
}

// mostExtensions bounds the search for the first grant of tickets that do not record when it began.
const mostExtensions = 1000

// continueGrant records in an item that it continues a grant.
func (x *planner) continueGrant(it *Item, t *Ticket, i int) error {
	had := t.Items[i]
	earlier := Earlier{Since: t.granted(i), Length: had.Duration}
	if t.BreakGlass {
		earlier.GlassSince = earlier.Since
	}
	first := had
	for range mostExtensions {
		if !first.Earlier.Since.IsZero() {
			earlier.Since, earlier.Length = first.Earlier.Since, first.Earlier.Length
			if t.BreakGlass && !first.Earlier.GlassSince.IsZero() {
				earlier.GlassSince = first.Earlier.GlassSince
			}
			break
		}
		if first.Target == nil {
			break
		}
		before, err := x.Store.Get(x.ctx, first.Target.Ticket)
		if err != nil {
			return err
		}
		earlier.Since, earlier.Length = before.granted(first.Target.Item), before.Items[first.Target.Item].Duration
		first = before.Items[first.Target.Item]
	}
	if e := &it.Earlier; e.Since.IsZero() || earlier.Since.Before(e.Since) {
		e.Since, e.Length = earlier.Since, earlier.Length
	}
	if e := &it.Earlier; !earlier.GlassSince.IsZero() && (e.GlassSince.IsZero() || earlier.GlassSince.Before(e.GlassSince)) {
		e.GlassSince = earlier.GlassSince
	}
	return nil
}

// granted returns when an item was approved.
func (t *Ticket) granted(i int) time.Time {
	it := &t.Items[i]
	switch {
	case !it.GrantedAt.IsZero():
		return it.GrantedAt
	case !it.ExpiresAt.IsZero(): // approved before GrantedAt was recorded
		return it.ExpiresAt.Add(-it.Duration)
	}
	return t.CreatedAt
}

// endsLater reports whether a grant ends after another one.
func endsLater(a, b Item) bool {
	return !b.End().IsZero() && (a.End().IsZero() || a.End().After(b.End()))
}

// checkLaterEnd checks that an extension ends after what it extends.
func (x *planner) checkLaterEnd(had, it Item, path string) error {
	if had.End().IsZero() {
		return fail(CodeConflict, message.RequestHasAccess(it.Application))
	}
	if it.Duration != 0 && !x.Now().Add(it.Duration).After(had.End()) {
		return invalid(path+"durationSeconds", message.RequestHasLongerAccess(it.Application))
	}
	return nil
}

// extension plans a later end of a grant in force, with the same access.
func (x *planner) extension(r RequestItem, path string) (Item, error) {
	t, had, err := x.target(r, path)
	if err != nil {
		return Item{}, err
	}
	if had.State != StateEffective && had.State != StateApplying {
		return Item{}, fail(CodeConflict, message.RequestExtendNotEffective(t.ID(), string(had.State)))
	}
	it, err := x.access(RequestItem{Application: had.Application, Resource: had.Resource, Actions: had.Actions, Duration: r.Duration, Hours: had.Hours}, path)
	if err != nil {
		return Item{}, err
	}
	if it.ApplicationName != had.ApplicationName || it.ResourceName != had.ResourceName {
		return Item{}, fail(CodeConflict, message.RequestNamesChanged(t.ID()))
	}
	if err := x.checkLaterEnd(had, it, path); err != nil {
		return Item{}, err
	}
	if _, _, err := x.covering(&it); err != nil {
		return Item{}, err
	}
	it.Target = r.Target
	if p := had.Package; p != nil { // it still is a part of the package; the owners decide
		it.Package = &PackageRef{Name: p.Name, Version: p.Version, Digest: p.Digest}
	}
	return it, x.continueGrant(&it, t, r.Target.Item)
}

// revocation plans the end of a grant for a requester who may not revoke it directly.
func (x *planner) revocation(r RequestItem, path string) (Item, error) {
	t, had, err := x.target(r, path)
	if err != nil {
		return Item{}, err
	}
	if !had.State.MayBeOnHost() {
		return Item{}, fail(CodeConflict, message.RevokeNoGrant(string(had.State)))
	}
	if MayDoItem(x.c, x.actor, t, r.Target.Item).Revoke {
		return Item{}, fail(CodeConflict, message.RequestRevokeYourself(t.ID()))
	}
	return Item{Application: had.Application, ApplicationName: had.ApplicationName, Resource: had.Resource, ResourceName: had.ResourceName,
		Actions: had.Actions, Scope: had.Scope, Target: r.Target}, nil
}

// target returns the grant that an item is about, if the actor may see it.
func (x *planner) target(r RequestItem, path string) (*Ticket, Item, error) {
	if r.Target == nil {
		return nil, Item{}, invalid(path+"target", message.RequestNameTheGrant())
	}
	t, err := x.Store.Get(x.ctx, r.Target.Ticket)
	if err != nil {
		return nil, Item{}, err
	}
	if !MayDo(x.c, x.actor, t).See {
		return nil, Item{}, NotFound()
	}
	if !t.Kind.Access() || r.Target.Item < 0 || r.Target.Item >= len(t.Items) {
		return nil, Item{}, invalid(path+"target", message.RequestNoSuchGrant(t.ID()))
	}
	return t, t.Items[r.Target.Item], nil
}

func ownerNames(c *catalog.Catalog, e catalog.Entity) string {
	names := make([]string, 0, len(e.Owners))
	for _, o := range e.Owners {
		names = append(names, c.OwnerName(o))
	}
	return strings.Join(names, ", ")
}
