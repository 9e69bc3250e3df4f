package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// maxHolderTickets bounds the tickets that are read for what applications hold by a package.
const maxHolderTickets = 5000

// inForceStates are the states of items by which an application holds a package.
var inForceStates = []State{StateApproved, StateApplying, StateEffective, StateFailed}

// PackageHolders returns the access in force that applications have by a package, by the names of the applications: of these ones, or of
// all if none is named. complete is false if there are more tickets than are read.
func (s *Service) PackageHolders(ctx context.Context, name string, applications ...string) (held map[string][]accesspackage.Held, complete bool, err error) {
	list, err := s.Store.List(ctx, Filter{Package: name, Applications: applications, ItemStates: inForceStates, Limit: maxHolderTickets, OmitEvents: true})
	if err != nil {
		return nil, false, err
	}
	held = map[string][]accesspackage.Held{}
	for _, t := range list {
		for i := range t.Items {
			it := &t.Items[i]
			if it.Package == nil || it.Package.Name != name || !t.Kind.Access() || !it.State.MayBeOnHost() ||
				len(applications) > 0 && !slices.Contains(applications, it.ApplicationName) {
				continue
			}
			held[it.ApplicationName] = append(held[it.ApplicationName], accesspackage.Held{Access: accesspackage.Access{Ticket: t.Number, Item: i},
				Resource: it.ResourceName, Actions: it.Actions, End: it.End()})
		}
	}
	return held, len(list) < maxHolderTickets, nil
}

// addHolders adds to a version what it changes for the applications that hold the package now.
func (x *planner) addHolders(spec *accesspackage.Spec, name, path string) error {
	held, complete, err := x.PackageHolders(x.ctx, name)
	switch {
	case err != nil:
		return err
	case len(held) == 0:
		return invalid(path+"toHolders", message.AccessPackageNoHolders())
	case len(held) > accesspackage.MaxHolders || !complete:
		return invalid(path+"toHolders", message.AccessPackageTooManyHolders(accesspackage.MaxHolders))
	}
	spec.Holders = map[string]accesspackage.Holder{}
	for application, has := range held {
		spec.Holders[application] = spec.Compare(has)
	}
	for _, name := range spec.ResourceNames() {
		if e, ok := x.c.ByName(name); ok && e.Sensitivity == catalog.SensitivityHigh {
			spec.Sensitive = append(spec.Sensitive, name)
		}
	}
	return nil
}

// changesNothing reports whether a version has the content of the one before it, and changes nothing for holders.
func changesNothing(spec, before accesspackage.Spec) (bool, error) {
	for _, h := range spec.Holders {
		if len(h.Gets)+len(h.Loses) > 0 {
			return false, nil
		}
	}
	before.Holders, before.Sensitive, spec.Holders, spec.Sensitive = nil, nil, nil, nil
	a, err := before.JSON()
	if err != nil {
		return false, err
	}
	b, err := spec.JSON()
	return string(a) == string(b), err
}

// maxHolderLines bounds the lines about what holders of a package get and lose.
const maxHolderLines = 200

// Beginnings of the lines about holders of an access package. The name of the application follows.
const (
	lineHolderGets      = "give "
	lineHolderLoses     = "take from "
	lineHolderRenews    = "renew for "
	lineHolderUnchanged = "nothing changes for "
)

// holderLines returns the lines that show what a version changes for holders. If there are too many, the last line has the number and the
// digest of the others.
func holderLines(c Change) []string {
	spec, ok := c.packageOf()
	if !ok {
		return nil
	}
	var lines []string
	for _, application := range slices.Sorted(maps.Keys(spec.Holders)) {
		h, before := spec.Holders[application], len(lines)
		for _, part := range []struct {
			begin string
			of    map[string][]string
		}{{lineHolderGets, h.Gets}, {lineHolderLoses, h.Loses}, {lineHolderRenews, h.Renews}} {
			for _, resource := range slices.Sorted(maps.Keys(part.of)) {
				lines = append(lines, part.begin+application+": "+strings.Join(part.of[resource], ", ")+" on "+resource)
			}
		}
		if len(lines) == before {
			lines = append(lines, lineHolderUnchanged+application)
		}
	}
	if n := len(lines) - maxHolderLines; n > 0 {
		lines = append(lines[:maxHolderLines:maxHolderLines], fmt.Sprintf("and %d more: %s", n, NewShown(lines[maxHolderLines:]).Digest))
	}
	return lines
}

// isHolderValue reports whether a value of a package's content is shown by holderLines.
func isHolderValue(path string) bool {
	return strings.HasPrefix(path, "spec.holders.") || strings.HasPrefix(path, "spec.sensitive[")
}

// given reports whether an item is given to a holder of an access package.
func (it *Item) given() bool { return it.Package != nil && it.Package.Given }

// consented reports whether nobody has to decide that a holder is given access to a resource: its owners approved exactly this version, and
// still are the owners, and the resource is known not to be highly sensitive, unless the security team approved the version knowing that.
func (p *PackageRef) consented(resource catalog.Entity) bool {
	if p == nil || !p.Given || len(p.Owners) == 0 || !slices.Equal(p.Owners, ownersOf(resource)) {
		return false
	}
	switch resource.Sensitivity {
	case catalog.SensitivityLow, catalog.SensitivityMedium:
		return true
	case catalog.SensitivityHigh:
		return p.Security
	}
	return false
}

// consentStep returns the step of an item that needs no decision, because the owners of the resource approved it with the version; false if
// somebody has to decide. Should the access grow before it is written, an owner decides the step.
func (a about) consentStep(it Item) (wanted, bool) {
	if !it.Package.consented(a.resource) || len(a.added.steps) > 0 || len(a.added.limits) > 0 {
		return wanted{}, false
	}
	w, err := a.builtinStep(StepOwner, []approver{FromResourceOwner})
	if err != nil || w.alternatives[0].standIn {
		return wanted{}, false
	}
	first := w.alternatives[0]
	first.note = message.Message{}
	w.step.Auto, w.alternatives, w.owners = true, []alternative{first}, false
	w.note = message.StepNotePackageVersion(it.Package.Name, it.Package.Version, FormatID(it.Package.Ticket))
	return w, true
}

// HolderUpdateStopped returns why a version of a package must not be given to an application now; the zero Message if it may be. The version has to be
// the current one, and its approvers must have approved it for the application.
func (s *Service) HolderUpdateStopped(ctx context.Context, name string, version int, application string) (message.Message, error) {
	if s.Packages == nil {
		return message.AccessPackageNotHere(), nil
	}
	p, err := s.Packages.Package(ctx, name)
	if err != nil {
		return message.Message{}, err
	}
	switch {
	case p.Archived():
		return message.AccessPackageUpdateArchived(name), nil
	case p.Current.Number != version:
		return message.AccessPackageUpdateReplaced(name, p.Current.Number), nil
	}
	spec, err := p.Current.Spec()
	if err != nil {
		return message.Message{}, err
	}
	if _, listed := spec.Holders[application]; !listed {
		return message.AccessPackageNotListed(application, name, version), nil
	}
	return message.Message{}, nil
}

// holderUpdateStoppedError stops the first write of an item that is given to a holder, because its package has changed since.
type holderUpdateStoppedError struct{ reason message.Message }

func (e *holderUpdateStoppedError) Error() string { return e.reason.Text }

// checkHolderUpdate checks before the first write of an item that is given to a holder of a package that it still may be.
func (s *Service) checkHolderUpdate(ctx context.Context, it *Item) error {
	if !it.given() {
		return nil
	}
	reason, err := s.HolderUpdateStopped(ctx, it.Package.Name, it.Package.Version, it.ApplicationName)
	if err == nil && !reason.IsZero() {
		err = &holderUpdateStoppedError{reason}
	}
	return err
}

// PlanHolder returns what is done about an application to give it a version of a package; held is false if the application has nothing by
// the package any more. What was revoked since the version was requested is not given again.
func (s *Service) PlanHolder(ctx context.Context, name string, v accesspackage.Version, application string) (plan accesspackage.Plan, held bool, err error) {
	spec, err := v.Spec()
	if err != nil {
		return plan, false, err
	}
	shown, listed := spec.Holders[application]
	if !listed {
		return plan, false, fmt.Errorf("version %d of the access package %s was not approved for %s", v.Number, name, application)
	}
	all, complete, err := s.PackageHolders(ctx, name, application)
	if err != nil || len(all[application]) == 0 {
		return plan, false, err
	}
	if !complete {
		return plan, true, fmt.Errorf("%s has more than %d tickets of the access package %s", application, maxHolderTickets, name)
	}
	revoked, err := s.revokedSince(ctx, name, v, application)
	if err != nil {
		return plan, true, err
	}
	return spec.Plan(shown, all[application], func(resource, action string) bool { return slices.Contains(revoked[resource], action) }, s.Now()), true, nil
}

// revokedSince returns the actions, by resource, whose access by a package was revoked from an application since a version was requested.
func (s *Service) revokedSince(ctx context.Context, name string, v accesspackage.Version, application string) (map[string][]string, error) {
	of, err := s.Store.Get(ctx, v.Ticket)
	if err != nil {
		return nil, err
	}
	list, err := s.Store.List(ctx, Filter{Package: name, Applications: []string{application}, ItemStates: []State{StateRevoking, StateRevoked},
		Limit: maxHolderTickets})
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, t := range list {
		for i := range t.Items {
			it := &t.Items[i]
			if it.Package == nil || it.Package.Name != name || it.ApplicationName != application || !t.wasRevoked(i) {
				continue
			}
			if slices.ContainsFunc(t.Events, func(e Event) bool { return e.Item == i && e.Kind == EventRevokeRequested && !e.At.Before(of.CreatedAt) }) {
				out[it.ResourceName] = append(out[it.ResourceName], it.Actions...)
			}
		}
	}
	return out, nil
}

// RevokePackageAccess revokes an access of a holder that a version of a package does not have, and what extends it. It does nothing if the
// access has ended.
func (s *Service) RevokePackageAccess(ctx context.Context, of accesspackage.Access, name string, v accesspackage.Version) error {
	why := Event{Message: message.TicketPackageRemoved(name, v.Number, FormatID(v.Ticket))}
	target := Target(of)
	if err := s.revokeExtensions(ctx, target, why, map[Target]bool{}); err != nil {
		return err
	}
	return s.revokeFor(ctx, target, why)
}

// HolderRequest is the checked request by which a holder of a package gets what a version adds for it.
type HolderRequest struct {
	// Ticket requests it already; nil if it is to be submitted.
	Ticket *Ticket
	// Problem is why a part of it cannot be requested; the zero Message if all can.
	Problem message.Message
	draft   Draft
}

// Empty reports whether nothing is left to submit.
func (g *HolderRequest) Empty() bool { return g.Ticket == nil && len(g.draft.Items) == 0 }

// holderKey is the idempotency key of the ticket that gives a version to an application.
func holderKey(name string, version int, application string) string {
	return fmt.Sprintf("access package %s version %d for %s", name, version, application)
}

// FindHolderRequest returns the ticket that gives a version of a package to an application; nil if none was submitted.
func (s *Service) FindHolderRequest(ctx context.Context, name string, v accesspackage.Version, application string) (*Ticket, error) {
	list, err := s.Store.List(ctx, Filter{Requester: v.PublishedBy, Package: name, Applications: []string{application}, Limit: maxHolderTickets,
		OmitEvents: true})
	if err != nil {
		return nil, err
	}
	key := holderKey(name, v.Number, application)
	if i := slices.IndexFunc(list, func(t *Ticket) bool { return t.IdempotencyKey == key }); i >= 0 {
		return list[i], nil
	}
	return nil, nil
}

// PlanHolderRequest checks the request for what an application is given of a version of a package, and returns the ticket of an earlier attempt, if
// there is one. Access that the application has otherwise is left out. The requester is the person who requested the version.
func (s *Service) PlanHolderRequest(
	ctx context.Context,
	name string,
	v accesspackage.Version,
	application string,
	additions []accesspackage.Addition,
) (*HolderRequest, error) {
	if t, err := s.FindHolderRequest(ctx, name, v, application); err != nil || t != nil {
		return &HolderRequest{Ticket: t}, err
	}
	of, err := s.Store.Get(ctx, v.Ticket)
	if err != nil {
		return nil, err
	}
	g := &HolderRequest{
		draft: Draft{Kind: KindGrant, Requester: v.PublishedBy, Reason: holderReason(of), IdempotencyKey: holderKey(name, v.Number, application)},
	}
	c := s.Catalog()
	a := Actor{ID: v.PublishedBy, Security: c.InGroup(v.PublishedBy, catalog.GroupSecurity), Auditor: c.InGroup(v.PublishedBy, catalog.GroupAuditors)}
	r, problem, err := s.holderItems(ctx, name, v, application, additions)
	if err != nil {
		return nil, err
	}
	g.Problem = problem
	if len(r.Items) == 0 {
		return g, nil
	}
	p, err := s.Plan(ctx, a, r)
	if aboutItem(err) {
		g.Problem = reasonOf(err)
		return g, nil
	}
	if err != nil {
		return nil, err
	}
	for i, it := range p.Items {
		switch {
		case held(it.Err):
		case it.Err != nil:
			g.Problem = cmp.Or(g.Problem, message.AccessPackageHolderResource(r.Items[i].Resource, reasonOf(it.Err)))
		default:
			g.draft.Items = append(g.draft.Items, it.Item)
		}
	}
	return g, nil
}

// reasonOf returns the message of an error for people.
func reasonOf(err error) message.Message {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Message
	}
	return message.Of(err)
}

// holderReason returns the reason of a ticket that gives a version: what the requester of the version wrote, with that ticket.
func holderReason(of *Ticket) string {
	reason := of.ID() + ": " + of.Reason
	for utf8.RuneCountInString(reason) > MaxText {
		_, size := utf8.DecodeLastRuneInString(reason)
		reason = reason[:len(reason)-size]
	}
	return reason
}

// holderItems returns the request for what an application is given, and why a part of it cannot be requested.
func (s *Service) holderItems(ctx context.Context, name string, v accesspackage.Version, application string, additions []accesspackage.Addition) (
	r Request, problem message.Message, err error,
) {
	r = Request{Kind: KindGrant, given: true}
	spec, err := v.Spec()
	if err != nil {
		return r, problem, err
	}
	consent, err := s.consentTo(ctx, v)
	if err != nil {
		return r, problem, err
	}
	c := s.Catalog()
	app, ok := c.ByName(application)
	switch {
	case !ok:
		return r, message.RequestUnknownApplication(application), nil
	case !MayPublish(c, v.PublishedBy, spec.Team):
		return r, message.DecideRequesterNotInTeam(displayName(c, v.PublishedBy)), nil
	}
	for _, g := range additions {
		res, ok := c.ByName(g.Resource)
		length := time.Duration(g.DurationSeconds) * time.Second
		switch {
		case !ok:
			problem = cmp.Or(problem, message.AccessPackageResourceGone(g.Resource))
			continue
		case length < MinDuration && (length != 0 || !g.Until.IsZero()):
			problem = cmp.Or(problem, message.AccessPackageHolderEnds(application))
			continue
		case len(r.Items) == MaxItems:
			problem = cmp.Or(problem, message.RequestItemCount(MaxItems))
			continue
		}
		part := &PackageRef{Name: name, Version: v.Number, Digest: v.Digest, Team: spec.Team, Given: true, Ticket: v.Ticket, Until: g.Until}
		if consent.owners[g.Resource] {
			part.Owners, part.Security = spec.Resources[g.Resource].Owners, consent.security && slices.Contains(spec.Sensitive, g.Resource)
		}
		r.Items = append(r.Items, RequestItem{Application: app.ID, Resource: res.ID, Actions: g.Actions, Duration: length, Hours: spec.Hours, part: part})
	}
	return r, problem, nil
}

// SubmitHolderRequest submits the ticket of a addition, unless it was submitted before. It returns a CodeDuplicate error while another ticket requests the
// same.
func (s *Service) SubmitHolderRequest(ctx context.Context, g *HolderRequest) (*Ticket, error) {
	if g.Ticket != nil {
		return g.Ticket, nil
	}
	return s.submit(ctx, g.draft)
}

// StopHolderRequest withdraws what waits for a decision in a ticket that gives a version to a holder.
func (s *Service) StopHolderRequest(ctx context.Context, number int64, reason message.Message) error {
	_, err := s.Apply(ctx, number, func(t *Ticket) error {
		for i := range t.Items {
			if it := &t.Items[i]; it.given() && it.State == StatePending {
				t.end(i, StateWithdrawn)
				t.event(s.Now(), Event{Kind: EventWithdrawn, Item: i, Message: reason})
				t.say(i, s.Now(), reason)
			}
		}
		return nil
	})
	return err
}

// HolderState returns how far the ticket that gives a version to an application has come: the state of the application, and why it was not
// given all of it. What is written to the host cluster counts as given.
func HolderState(t *Ticket) (accesspackage.HolderState, message.Message) {
	state, why := accesspackage.HolderDone, message.Message{}
	for i := range t.Items {
		it := &t.Items[i]
		switch it.State {
		case StatePending, StateApproved:
			return accesspackage.HolderWaiting, message.Message{}
		case StateApplying:
			if it.WrittenGeneration == 0 {
				return accesspackage.HolderWaiting, message.Message{}
			}
		case StateRejected, StateTimedOut, StateWithdrawn:
			state, why = accesspackage.HolderFailed, message.AccessPackageHolderNotApproved(t.ID())
		case StateFailed:
			state, why = accesspackage.HolderFailed, cmp.Or(why, message.AccessPackageHolderNotInForce(t.ID()))
		case StateRevoking, StateRevoked:
			if it.WrittenGeneration == 0 {
				state, why = accesspackage.HolderFailed, cmp.Or(why, message.AccessPackageHolderNotInForce(t.ID()))
			}
		}
	}
	return state, why
}

// consent is what the ticket that published a version shows about it.
type consent struct {
	owners   map[string]bool // the resources of which an owner approved it
	security bool            // the security team approved it
}

// consentTo returns who approved exactly this version. The ticket that published the version is the evidence. An approval by the security
// team in the place of an owner, or by a condition, is no consent of the owner.
func (s *Service) consentTo(ctx context.Context, v accesspackage.Version) (consent, error) {
	out := consent{owners: map[string]bool{}}
	t, err := s.Store.Get(ctx, v.Ticket)
	if CodeOf(err) == CodeNotFound {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if t.Kind != KindPackage || len(t.Items) != 1 || t.Items[0].Change == nil || string(t.Items[0].Change.After) != string(v.Content) {
		return out, nil
	}
	for i := range t.Items[0].Steps {
		step := &t.Items[0].Steps[i]
		if step.State != StepApproved || step.Auto || step.Escalated || step.Left() > 0 {
			continue
		}
		if slices.Contains(step.From, fromSecurity) {
			out.security = true
			continue
		}
		for _, from := range step.From {
			if kind, name := splitApprover(from); kind == FromOwnerOf {
				out.owners[name] = true
			}
		}
	}
	return out, nil
}

// stoppedHolderUpdate returns why the first write of an item that is given to a holder was stopped.
func stoppedHolderUpdate(err error) (message.Message, bool) {
	var stopped *holderUpdateStoppedError
	if errors.As(err, &stopped) {
		return stopped.reason, true
	}
	return message.Message{}, false
}
