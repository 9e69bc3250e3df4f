package approval

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
)

// Organizations returns the organizations of the host cluster.
func (s *Service) Organizations() (*organization.Index, error) {
	all, err := s.Host.Organizations()
	if err != nil {
		return nil, err
	}
	return organization.NewIndex(all), nil
}

// Administers reports whether a person administers an organization, by the present catalog. Auditors change nothing, so they administer
// none.
func Administers(c *catalog.Catalog, person string, o *v1alpha1.Organization) bool {
	return slices.Contains(AdministratorsOf(c, o), person)
}

// AdministratorsOf returns the people who administer an organization, by the present catalog; none for nil.
func AdministratorsOf(c *catalog.Catalog, o *v1alpha1.Organization) []string {
	if o == nil {
		return nil
	}
	var out []string
	for _, a := range o.Spec.Administrators {
		out = append(out, approversOf(c, approver(a), "", catalog.Entity{}, catalog.Entity{})...)
	}
	return slices.DeleteFunc(out, func(person string) bool { return c.InGroup(person, catalog.GroupAuditors) })
}

// AdministersAny reports whether a person administers any organization.
func AdministersAny(c *catalog.Catalog, person string, all *organization.Index) bool {
	return slices.ContainsFunc(all.All(), func(o *v1alpha1.Organization) bool { return Administers(c, person, o) })
}

// CatalogDelegate returns what decides about changes of the catalog by a person as an administrator of organizations; nil for auditors, who
// change nothing, and for people who administer no organization that has a part of the catalog.
func (s *Service) CatalogDelegate(person string) (catalog.Delegate, error) {
	all, err := s.Organizations()
	if err != nil {
		return nil, err
	}
	c := s.Catalog()
	if !slices.ContainsFunc(all.All(), func(o *v1alpha1.Organization) bool { return o.Spec.Bounds.Catalog != nil && Administers(c, person, o) }) {
		return nil, nil //nolint:nilnil // most people have none
	}
	return func(c *catalog.Catalog, before, after *catalog.Record) (string, error) {
		return delegateChange(c, all, person, before, after)
	}, nil
}

// delegateChange checks that the entity of a change is within the bounds of one organization before and after the change, and that the
// person administers it.
func delegateChange(c *catalog.Catalog, all *organization.Index, person string, before, after *catalog.Record) (string, error) {
	var name v1alpha1.OrganizationName
	for _, r := range []*catalog.Record{before, after} {
		if r == nil {
			continue
		}
		e := BoundedEntity(r)
		owner := all.OwnerOf(&e)
		if owner == "" || name != "" && owner != name || !Administers(c, person, all.Get(owner)) {
			return "", &catalog.Error{Kind: catalog.ErrForbidden, Message: message.CatalogAdministratorsOnly()}
		}
		name = owner
		if violations := all.EntityViolations(name, &e); len(violations) > 0 {
			return "", &catalog.Error{Kind: catalog.ErrForbidden, Message: message.CatalogOutOfBounds(r.Ref().String(), string(name), violations)}
		}
	}
	return string(name), nil
}

// BoundedEntity returns the fields of an entity that the bounds of an organization limit.
func BoundedEntity(r *catalog.Record) organization.Entity {
	out := organization.Entity{Kind: string(r.Kind), Name: r.Name, Environment: r.Environment, Sensitivity: string(r.Sensitivity)}
	for _, o := range r.Owners {
		if o.Kind == catalog.OwnerGroup {
			out.Teams = append(out.Teams, o.ID)
		} else {
			out.People = append(out.People, o.ID)
		}
	}
	return out
}

// organizationOf returns the organization in the spec of a class or an approval policy; empty if there is none.
func organizationOf(spec json.RawMessage) v1alpha1.OrganizationName {
	var s struct {
		Organization v1alpha1.OrganizationName `json:"organization"`
	}
	if len(spec) == 0 || json.Unmarshal(spec, &s) != nil {
		return ""
	}
	return s.Organization
}

// owningOrganization returns the organization whose administrators may request and decide a change. It is empty if the object belongs to
// no organization before or after the change, or to two different ones.
func owningOrganization(c *Change) v1alpha1.OrganizationName {
	if c == nil || c.Kind != ObjectResourceClass && c.Kind != ObjectApprovalPolicy {
		return ""
	}
	before, after := organizationOf(c.Before), organizationOf(c.After)
	switch {
	case c.Verb == VerbCreate && len(c.Before) == 0:
		return after
	case c.Verb == VerbDelete:
		return before
	case before == after:
		return before
	}
	return ""
}

// checkBounds checks that the object of a change is within the bounds of its organization after the change, whoever requests it.
func checkBounds(all *organization.Index, c *Change) error {
	if c.Verb == VerbDelete {
		return nil
	}
	var violations []message.Message
	switch c.Kind {
	case ObjectResourceClass:
		var spec v1alpha1.ResourceClassSpec
		if err := json.Unmarshal(c.After, &spec); err != nil {
			return err
		}
		violations = all.ClassViolations(&spec)
	case ObjectApprovalPolicy:
		var spec v1alpha1.ApprovalPolicySpec
		if err := json.Unmarshal(c.After, &spec); err != nil {
			return err
		}
		violations = all.PolicyViolations(&spec)
	}
	if len(violations) > 0 {
		return fail(CodeForbidden, message.RequestOutOfBounds(string(organizationOf(c.After)), violations))
	}
	return nil
}

// checkTeams checks that an organization names no team of another one.
func checkTeams(all *organization.Index, c *Change) error {
	if c.Kind != ObjectOrganization || c.Verb == VerbDelete {
		return nil
	}
	o := &v1alpha1.Organization{}
	o.Name = c.Name
	if err := json.Unmarshal(c.After, &o.Spec); err != nil {
		return err
	}
	if ok, why := all.Acceptance(o); !ok {
		return fail(CodeConflict, message.RequestSpecInvalid(why))
	}
	return nil
}

// ownedBy reports whether teams of an organization alone own a resource. A person as an owner belongs to no organization.
func ownedBy(all *organization.Index, name v1alpha1.OrganizationName, resource catalog.Entity) bool {
	return len(resource.Owners) > 0 && !slices.ContainsFunc(resource.Owners, func(o catalog.Owner) bool {
		return o.Kind != catalog.OwnerGroup || !all.Has(name, o.ID)
	})
}

// ownedInPartBy reports whether one of a resource's owners is a team that an organization names.
func ownedInPartBy(all *organization.Index, name v1alpha1.OrganizationName, resource catalog.Entity) bool {
	return slices.ContainsFunc(resource.Owners, func(o catalog.Owner) bool { return o.Kind == catalog.OwnerGroup && all.Names(name, o.ID) })
}

// checkClassUse checks that a resource may use its class. Only resources of an organization's teams may use its classes, and only while
// these are within their bounds.
func (s *Service) checkClassUse(class *v1alpha1.ResourceClass, resource catalog.Entity) error {
	if class == nil || class.Spec.Organization == "" {
		return nil
	}
	all, err := s.Organizations()
	if err != nil {
		return err
	}
	name := class.Spec.Organization
	if violations := all.ClassViolations(&class.Spec); len(violations) > 0 {
		return fail(CodeConflict, message.RequestClassOutOfBounds(class.Name, string(name), violations))
	}
	switch o := all.Get(name); {
	case !ownedBy(all, name, resource):
		return fail(CodeForbidden, message.RequestClassOfOrganization(resource.Title, class.Name, string(name)))
	case !organization.AllowsSensitivity(o, string(resource.Sensitivity)):
		return fail(CodeForbidden, message.RequestClassSensitivity(resource.Title, class.Name, string(name), string(resource.Sensitivity)))
	}
	return nil
}

// checkOrganization checks an item against the present organizations, because days may have passed since it was submitted: the requester
// of a change of an organization's object must still administer the organization, the object must still be within its bounds, and a
// resource must still be permitted to use its class.
func (s *Service) checkOrganization(t *Ticket, it *Item) error {
	c := s.Catalog()
	if it.Scope != nil && t.Kind == KindRevoke {
		return nil
	}
	if it.Scope != nil {
		return s.checkScopeClasses(it.Scope)
	}
	if kind := t.Kind; kind.Access() || kind == KindOnboard {
		resource, _ := c.ByName(it.ResourceName) // a resource that the catalog does not contain belongs to no organization
		facts, err := s.Host.Facts(it.ResourceName)
		if err != nil {
			return err
		}
		return s.checkClassUse(facts.ClassObject, resource)
	}
	if t.Kind != KindClass && t.Kind != KindApprovalPolicy || it.Change == nil {
		return nil
	}
	all, err := s.Organizations()
	if err != nil {
		return err
	}
	if name := owningOrganization(it.Change); !c.InGroup(t.Requester, catalog.GroupSecurity) && !Administers(c, t.Requester, all.Get(name)) {
		return fail(CodeConflict, message.DecideRequesterNotAdministrator(displayName(c, t.Requester), string(name)))
	}
	if err := checkTeams(all, it.Change); err != nil {
		return err
	}
	return checkBounds(all, it.Change)
}

// delegates returns the people who decide a change of an organization's object in place of the security team, which is one of them: the
// administrators, if one of them requests it. It returns nothing for other requests.
func delegates(c *catalog.Catalog, all *organization.Index, requester string, change *Change) []v1alpha1.Approver {
	o := all.Get(owningOrganization(change))
	if c.InGroup(requester, catalog.GroupSecurity) || !Administers(c, requester, o) {
		return nil
	}
	out := make([]v1alpha1.Approver, 0, len(o.Spec.Administrators)+1)
	for _, a := range o.Spec.Administrators {
		out = append(out, v1alpha1.Approver(a))
	}
	return append(out, fromSecurity)
}

// organizationRules are what the approval policies of organizations add to a request about a resource of their teams.
type organizationRules struct {
	steps         []wanted
	replaceOwners bool
	limits        []durationLimit
}

// durationLimit is the limit of an approval policy for how long access lasts.
type durationLimit struct {
	policy string
	most   time.Duration
}

// global returns the approval policies that belong to no organization.
func global(all []*rules.Policy) []*rules.Policy {
	return slices.DeleteFunc(slices.Clone(all), func(p *rules.Policy) bool { return p.Object.Spec.Organization != "" })
}

// concerns reports whether an approval policy can apply to a request: that of an organization only if one of its teams owns the resource.
func (a about) concerns(p *rules.Policy) bool {
	name := p.Object.Spec.Organization
	return name == "" || a.organizations != nil && (ownedInPartBy(a.organizations, name, a.resource) || a.scope != nil && a.coversResourceOf(name))
}

// organizationRules returns what the policies of organizations add. Of each organization the first policy that matches applies. They
// count even outside of their bounds, because they only add steps; what the bounds do not allow has no effect.
func (a about) organizationRules(kind Kind, it Item, all []*rules.Policy, r *rules.Request, bounded bool) (organizationRules, error) {
	var out organizationRules
	byOrganization := map[v1alpha1.OrganizationName][]*rules.Policy{}
	for _, p := range all {
		if name := p.Object.Spec.Organization; name != "" && a.concerns(p) {
			byOrganization[name] = append(byOrganization[name], p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byOrganization)) {
		p, err := firstMatch(byOrganization[name], r)
		if err != nil {
			return out, err
		}
		if p == nil {
			continue
		}
		rights := a.organizations.RightsOf(&p.Object.Spec)
		if !ownedBy(a.organizations, name, a.resource) {
			rights.AutoApprove, rights.ReplaceOwners = false, false
		}
		if rights.MaxDuration > 0 {
			out.limits = append(out.limits, durationLimit{p.Object.Name, rights.MaxDuration})
		}
		rights.AutoApprove = rights.AutoApprove && (bounded || rights.MaxDuration > 0) && autoDenier(a.concerning(all), r) == ""
		steps, err := a.stepsOfOrganization(p, r, rights.AutoApprove, out.steps)
		if err != nil {
			return out, err
		}
		out.replaceOwners = out.replaceOwners || rights.ReplaceOwners && kind.Access() && !it.Adopt && it.Scope == nil && len(steps) > len(out.steps)
		out.steps = steps
	}
	return out, nil
}

// concerning returns the approval policies that can apply to a request.
func (a about) concerning(all []*rules.Policy) []*rules.Policy {
	return slices.DeleteFunc(slices.Clone(all), func(p *rules.Policy) bool { return !a.concerns(p) })
}

// stepsOfOrganization appends the steps that a policy of an organization adds.
func (a about) stepsOfOrganization(p *rules.Policy, r *rules.Request, mayAuto bool, steps []wanted) ([]wanted, error) {
	name := p.Object.Name
	for i, s := range p.Object.Spec.Steps {
		if needed, _ := p.Needed(i, r); !needed {
			continue
		}
		auto, _ := p.Auto(i, r)
		auto = auto && mayAuto && !r.Adopt && !r.Override && !a.holderUpdate && !a.byProgram() // exceptions are decided by a person
		w := wanted{step: Step{Name: s.Name, Quorum: 1, Auto: auto}, all: s.Quorum == "All", alternatives: a.waysToFill(s.Approvers),
			note: message.StepNoteOrganization(name, string(p.Object.Spec.Organization))}
		if s.Quorum == "Count" && s.Count != nil {
			w.step.Quorum = int(*s.Count)
		}
		if len(w.alternatives) == 0 {
			return nil, cannotFill(name, s.Name, message.StepNobodyNamed(join(s.Approvers)))
		}
		if most := len(w.alternatives[0].people); w.step.Quorum > most && len(w.alternatives) == 1 {
			return nil, cannotFill(name, s.Name, needsPeople(w.step.Quorum, most))
		}
		a.setRules(&w.step, s, false, false)
		steps = append(steps, w)
	}
	return steps, nil
}

// withOrganizations adds the steps of organizations to a chain, and removes the steps that these replace.
func (a about) withOrganizations(steps []wanted) []wanted {
	if a.added.replaceOwners {
		steps = slices.DeleteFunc(slices.Clone(steps), func(w wanted) bool { return w.owners })
	}
	for _, w := range a.added.steps {
		w.step.Name = freeName(steps, w.step.Name)
		steps = append(steps, w)
	}
	return steps
}
