package approval

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// setAffected sets the resources that a change of a class affects, whose owners then decide about the change. The security team decides in the
// place of an owner who is the requester, if the resource has no other, and in the place of all owners if there are too many of them.
func (a *about) setAffected(resources []string) {
	if len(resources) == 0 {
		return
	}
	if len(resources) > maxReached {
		a.instead = message.StepNoteAffectsMany(len(resources))
		return
	}
	a.reached = &Reached{Resources: resources}
	groups, ownerless := a.owners(false)
	if len(groups) > maxOwnerSteps {
		a.reached, a.instead = nil, message.StepNoteAffectsMany(len(resources))
		return
	}
	if len(ownerless) > 0 {
		a.instead = message.StepNoteNoOtherOwner(a.titles(ownerless))
	}
	a.reached = nil
	for _, g := range groups {
		if a.reached == nil {
			a.reached = &Reached{}
		}
		a.reached.Resources = append(a.reached.Resources, g.resources...)
	}
}

// bySecurity reports whether the security team decides the step, and not a condition.
func (w wanted) bySecurity() bool {
	return !w.step.Auto && len(w.alternatives) > 0 && slices.Equal(w.alternatives[0].from, []v1alpha1.Approver{fromSecurity})
}

// classChain returns the built-in chain of a change of a class: an owner of each resource that it affects, and the security team or, for the
// class of an organization, another administrator.
func (a about) classChain() ([]Step, error) {
	var steps []wanted
	var err error
	if a.reached != nil {
		if steps, err = a.ownerSteps(nil, Step{Name: StepOwner, Quorum: 1}, false, ""); err != nil {
			return nil, err
		}
	}
	names := []string{StepSecurity}
	if len(a.delegates) > 0 {
		names = []string{StepAdministrator}
		if !a.instead.IsZero() {
			names = append(names, StepSecurity)
		}
	}
	for _, name := range names {
		w, err := a.builtinStep(name, nil)
		if err != nil {
			return nil, err
		}
		if name == StepSecurity {
			w.note = a.instead
		}
		steps = append(steps, w)
	}
	chain, ok := choose(a.withOrganizations(steps), false)
	if !ok {
		return nil, fail(CodeNoApprover, message.StepSamePersonClass(catalog.GroupSecurity))
	}
	return chain, nil
}
