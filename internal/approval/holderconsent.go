package approval

import (
	"context"
	"errors"
	"slices"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// isHolderUpdate reports whether an item is a part of a holder update: it gives a version of an access package to an application that holds
// the package.
func (it *Item) isHolderUpdate() bool { return it.Package != nil && it.Package.HolderUpdate }

// ownersConsented reports whether nobody has to decide again that a holder is given access to a resource: its owners approved exactly this
// version and are still the owners, and the resource is not highly sensitive, or the security team approved the version when it already was.
func (p *PackageRef) ownersConsented(resource catalog.Entity) bool {
	if p == nil || !p.HolderUpdate || len(p.Owners) == 0 || !slices.Equal(p.Owners, ownersOf(resource)) {
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

// consentStep returns an automatic step for an item that the owners of the resource approved with the version of the package; false if
// somebody has to decide. An owner decides the step if the access grows before it is written.
func (a about) consentStep(it Item) (wanted, bool) {
	if !it.Package.ownersConsented(a.resource) || len(a.added.steps) > 0 || len(a.added.limits) > 0 {
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

// HolderUpdateRefusal returns the reason why a version of a package must not be given to an application now; the zero Message if it may be. The
// version has to be the current one, and its approvers must have approved it for the application.
func (s *Service) HolderUpdateRefusal(ctx context.Context, name string, version int, application string) (message.Message, error) {
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

// holderUpdateRefusedError is the error of the first write of an item of a holder update if the package has changed since the approval.
type holderUpdateRefusedError struct{ reason message.Message }

func (e *holderUpdateRefusedError) Error() string { return e.reason.Text }

// checkHolderUpdate returns a holderUpdateRefusedError if an item of a holder update must not be written any more. It is called before the first
// write of the item.
func (s *Service) checkHolderUpdate(ctx context.Context, it *Item) error {
	if !it.isHolderUpdate() {
		return nil
	}
	reason, err := s.HolderUpdateRefusal(ctx, it.Package.Name, it.Package.Version, it.ApplicationName)
	if err == nil && !reason.IsZero() {
		err = &holderUpdateRefusedError{reason}
	}
	return err
}

// versionConsent contains who approved a version of a package, according to the ticket that published it.
type versionConsent struct {
	owners   map[string]bool // the resources of which an owner approved it
	security bool            // the security team approved it
}

// consentTo returns who approved exactly this version. The ticket that published the version is the evidence. An approval by the security
// team in the place of an owner, or by a condition, is no consent of the owner.
func (s *Service) consentTo(ctx context.Context, v accesspackage.Version) (versionConsent, error) {
	out := versionConsent{owners: map[string]bool{}}
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

// refusalOfHolderUpdate returns the reason of a holderUpdateRefusedError; false for other errors.
func refusalOfHolderUpdate(err error) (message.Message, bool) {
	var refused *holderUpdateRefusedError
	if errors.As(err, &refused) {
		return refused.reason, true
	}
	return message.Message{}, false
}
