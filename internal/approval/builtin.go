package approval

import (
	"fmt"

	"encoding/json"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// Names of the built-in chain's steps.
const (
	// StepLeader is decided by the leader of the requester.
	StepLeader = "leader"
	// StepOwner is decided by an owner of the resource or, for a registration of clients, of the application.
	StepOwner = "owner"
	// StepApplication is decided by an owner of the application for which a program requests access.
	StepApplication = "application"
	// StepSecurity is decided by the security team.
	StepSecurity = "security"
	// StepAdministrator is decided by another administrator of the organization, or by the security team.
	StepAdministrator = "administrator"
	// StepReview is the review of access by break-glass.
	StepReview = "review"
)

// ResolveChain returns the steps of the built-in chain for a request for access: the requester's leader, an owner of the
// resource, and the security team if the resource is highly sensitive. Requesters and auditors are never approvers, and
// no person is needed for two steps.
func ResolveChain(c *catalog.Catalog, requester string, resource catalog.Entity) ([]Step, error) {
	return builtin(about{c: c, requester: requester, resource: resource}, KindGrant, Item{})
}

// chainOfKind returns the chain of a request whose steps do not follow from the names of steps; ok is false for other requests.
func (a about) chainOfKind(kind Kind, it Item) (chain []Step, ok bool, err error) {
	switch kind {
	case KindGrant, KindExtend:
		w, consented := a.consentStep(it)
		if !consented {
			return nil, false, nil
		}
		chain, _ = choose([]wanted{w}, false) // an automatic step needs no person
	case KindRevoke:
		if it.Scope == nil {
			return nil, false, nil
		}
		chain, err = a.statementChain()
	case KindWorkload:
		chain, err = a.workloadChain()
	case KindStatement:
		chain, err = a.statementChain()
	case KindPackage:
		chain, err = a.packageChain()
	case KindClass:
		chain, err = a.classChain()
	default:
		return nil, false, nil
	}
	return chain, true, err
}

// builtin resolves the chain of a request that no approval policy matches.
func builtin(a about, kind Kind, it Item) ([]Step, error) {
	if chain, ok, err := a.chainOfKind(kind, it); ok {
		a.addTimeouts(chain, kind)
		return chain, err
	}
	owner := []v1alpha1.Approver{FromResourceOwner}
	high := a.resource.Sensitivity == catalog.SensitivityHigh
	var names []string
	switch kind {
	case KindGrant, KindExtend:
		names = []string{StepLeader, StepOwner}
		if a.byProgram() {
			names[0] = StepApplication
		}
		if it.Package.teamDecides(a.resource) {
			if _, ok := a.publisherStep(it.Package.Team); ok {
				names[1] = StepPublisher
			}
		}
		if it.Adopt {
			names = []string{StepOwner} // the requester is an owner already; see waysToFill
		}
	case KindMode, KindOnboard, KindOffboard:
		names = []string{StepOwner}
		high = high || kind == KindOffboard || kind == KindMode && weaker(it.Change)
	case KindRevoke:
		names, owner, high = []string{StepOwner}, []v1alpha1.Approver{FromResourceOwner, FromApplicationOwner}, false
	case KindApprovalPolicy:
		if len(a.delegates) > 0 {
			names = []string{StepAdministrator}
			break
		}
		high = true
	default:
		return nil, fmt.Errorf("the built-in chain has no steps for requests of the kind %s", kind)
	}
	if high {
		names = append(names, StepSecurity)
	}
	steps := make([]wanted, 0, len(names))
	for _, name := range names {
		w, err := a.builtinStep(name, owner)
		if name == StepPublisher {
			w, _ = a.publisherStep(it.Package.Team)
			err = nil
		}
		if err != nil {
			return nil, err
		}
		if name == StepSecurity && a.resource.Sensitivity == catalog.SensitivityHigh {
			w.note = message.StepNoteHighlySensitive()
		}
		steps = append(steps, w)
	}
	if chain, ok := choose(a.withOrganizations(steps), false); ok {
		a.addTimeouts(chain, kind)
		return chain, nil
	}
	return nil, fail(CodeNoApprover, message.StepSamePerson(map[bool]string{true: ", security"}[high], a.resource.Title, catalog.GroupSecurity))
}

func (a about) builtinStep(name string, owner []v1alpha1.Approver) (wanted, error) {
	from := map[string][]v1alpha1.Approver{StepLeader: {FromLeader}, StepOwner: owner, StepSecurity: {fromSecurity},
		StepApplication: {FromApplicationOwner}, StepAdministrator: a.delegates}[name]
	w := wanted{step: Step{Name: name, Quorum: 1}, alternatives: a.waysToFill(from), owners: onlyOwners(from)}
	if len(w.alternatives) > 0 {
		return w, nil
	}
	switch name {
	case StepLeader:
		return w, fail(CodeNoApprover, message.StepNoLeader(displayName(a.c, a.requester)))
	case StepOwner:
		return w, fail(CodeNoApprover, message.StepNobodyForOwner(a.resource.Title, catalog.GroupSecurity))
	case StepApplication:
		return w, fail(CodeNoApprover, message.StepNobodyForOwner(a.application.Title, catalog.GroupSecurity))
	}
	if a.resource.Title == "" {
		return w, fail(CodeNoApprover, message.StepNobodyElseInGroup(catalog.GroupSecurity))
	}
	return w, fail(CodeNoApprover, message.StepSecurityNeeded(a.resource.Title, catalog.GroupSecurity))
}

// onlyOwners reports whether only the owners of the resource decide a step with these approvers.
func onlyOwners(from []v1alpha1.Approver) bool {
	return len(from) == 1 && from[0] == FromResourceOwner
}

var strictness = map[v1alpha1.Mode]int{"": 0, v1alpha1.ModeObserve: 0, v1alpha1.ModeAudit: 1, v1alpha1.ModeEnforce: 2}

// weaker reports whether a change lets more connections pass in any member. It returns true if the change cannot be read.
func weaker(c *Change) bool {
	var before, after v1alpha1.ProtectedResourceSpec
	if c == nil || json.Unmarshal(c.Before, &before) != nil || json.Unmarshal(c.After, &after) != nil {
		return true
	}
	if strictness[after.Mode] < strictness[before.Mode] {
		return true
	}
	for _, m := range append(slices.Clone(before.ClusterModes), after.ClusterModes...) {
		if strictness[modeIn(after, m.Cluster)] < strictness[modeIn(before, m.Cluster)] {
			return true
		}
	}
	return false
}

// cannotFill returns the error for a step of an approval policy that cannot get its approvals.
func cannotFill(policy, step string, why message.Message) error {
	return fail(CodeNoApprover, message.StepCannotBeFilled(StepName(step), policy, why))
}

func needsPeople(count, people int) message.Message {
	return message.StepTooFewApprovers(count, people)
}
