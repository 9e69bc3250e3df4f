package approval

import (
	"context"
	"errors"
	"slices"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

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
