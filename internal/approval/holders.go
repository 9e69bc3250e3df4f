package approval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// maxHolderTickets bounds the tickets that are read for what applications hold by a package.
const maxHolderTickets = 5000

// inForceStates are the states of items by which an application holds a package.
var inForceStates = []State{StateApproved, StateApplying, StateEffective, StateFailed}

// PackageHolders returns the access in force that applications have by a package, by the names of the applications: of the named ones, or of
// all if none is named. complete is false if there are more tickets than are read.
func (s *Service) PackageHolders(
	ctx context.Context,
	name string,
	applications ...string,
) (held map[string][]accesspackage.HeldAccess, complete bool, err error) {
	list, err := s.Store.List(ctx, Filter{Package: name, Applications: applications, ItemStates: inForceStates, Limit: maxHolderTickets, OmitEvents: true})
	if err != nil {
		return nil, false, err
	}
	held = map[string][]accesspackage.HeldAccess{}
	for _, t := range list {
		for i := range t.Items {
			it := &t.Items[i]
			if it.Package == nil || it.Package.Name != name || !t.Kind.Access() || !it.State.MayBeOnHost() ||
				len(applications) > 0 && !slices.Contains(applications, it.ApplicationName) {
				continue
			}
			held[it.ApplicationName] = append(held[it.ApplicationName], accesspackage.HeldAccess{Access: accesspackage.Access{Ticket: t.Number, Item: i},
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
	spec.Holders = map[string]accesspackage.HolderChange{}
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

// PlanHolderUpdate returns what has to be revoked from an application and requested for it, so that it has what a version of a package gives it.
// held is false if the application has nothing by the package any more. Access that was revoked since the version was requested is not
// requested again.
func (s *Service) PlanHolderUpdate(
	ctx context.Context,
	name string,
	v accesspackage.Version,
	application string,
) (plan accesspackage.Plan, held bool, err error) {
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
		Limit: maxHolderTickets, OmitComments: true})
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
