package approval

import (
	"fmt"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
)

// Names of the default chain's steps.
const (
	StepLeader   = "leader"
	StepOwner    = "owner"
	StepSecurity = "security"
)

// alternative is one way to fill a step.
type alternative struct {
	people []string
	note   string
}

// ResolveChain names who must decide a request: the requester's leader, an owner of the resource, and the security
// team when the resource is highly sensitive. Nobody decides his own request, nobody is needed for two steps, and
// auditors decide nothing. The first combination that gives every step a person of its own counts; a leader who is
// needed elsewhere is replaced by his leader before an owner is replaced by the security team.
func ResolveChain(c *catalog.Catalog, requester string, resource catalog.Entity) ([]Step, error) {
	may := func(p string) bool { return p != requester && !c.InGroup(p, catalog.GroupAuditors) }
	security := slices.DeleteFunc(c.Members(catalog.GroupSecurity), func(p string) bool { return !may(p) })

	leaders, err := leaderAlternatives(c, requester, may)
	if err != nil {
		return nil, err
	}
	owners, err := ownerAlternatives(c, requester, resource, security, may)
	if err != nil {
		return nil, err
	}
	needSecurity := resource.Sensitivity == catalog.SensitivityHigh
	if needSecurity && len(security) == 0 {
		return nil, failf(CodeNoApprover, "%s is highly sensitive and nobody in the group %q can decide: add a member to that group in the catalog.",
			resource.Title, catalog.GroupSecurity)
	}
	for _, o := range owners {
		for _, l := range leaders {
			steps := []Step{{Name: StepLeader, Approvers: l.people, Quorum: 1, From: []v1alpha1.Approver{FromLeader}, Note: l.note},
				{Name: StepOwner, Approvers: o.people, Quorum: 1, From: []v1alpha1.Approver{FromResourceOwner, fromSecurity}, Note: o.note}}
			if needSecurity {
				steps = append(steps, Step{Name: StepSecurity, Approvers: security, Quorum: 1, From: []v1alpha1.Approver{fromSecurity}, Note: "The resource is highly sensitive."})
			}
			if distinct(steps) {
				return steps, nil
			}
		}
	}
	return nil, failf(CodeNoApprover, "The same person would have to fill two steps (leader, owner%s of %s): name a further owner, leader or member of the group %q in the catalog.",
		map[bool]string{true: ", security"}[needSecurity], resource.Title, catalog.GroupSecurity)
}

func leaderAlternatives(c *catalog.Catalog, requester string, may func(string) bool) ([]alternative, error) {
	var out []alternative
	skipped := ""
	for _, p := range c.Leaders(requester) {
		if !may(p) {
			skipped = p
			continue
		}
		a := alternative{people: []string{p}}
		switch {
		case len(out) > 0:
			a.note = fmt.Sprintf("%s is needed for another step, so one up.", displayName(c, out[len(out)-1].people[0]))
		case skipped != "":
			a.note = fmt.Sprintf("%s cannot decide requests, so one up.", displayName(c, skipped))
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		return nil, failf(CodeNoApprover, "The catalog names no leader who could decide for %s: set the annotation acp.io/leader on the person, or acp.io/lead on one of the groups.",
			displayName(c, requester))
	}
	return out, nil
}

func ownerAlternatives(c *catalog.Catalog, requester string, resource catalog.Entity, security []string, may func(string) bool) ([]alternative, error) {
	all := c.OwnerPeople(resource)
	own := slices.Contains(all, requester)
	people := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return !may(p) })
	var out []alternative
	if len(people) > 0 {
		a := alternative{people: people}
		if own {
			a.note = "The requester owns the resource, so another owner decides."
		}
		out = append(out, a)
	}
	if len(security) > 0 && len(all) > 0 {
		note := "The owner is needed for another step, so the security team decides."
		if own && len(people) == 0 {
			note = "The requester owns the resource, so the security team decides."
		}
		out = append(out, alternative{people: security, note: note})
	}
	if len(out) == 0 {
		return nil, failf(CodeNoApprover, "Nobody can decide for the owner of %s: correct its owner in the catalog, or add a member to the group %q.",
			resource.Title, catalog.GroupSecurity)
	}
	return out, nil
}

func displayName(c *catalog.Catalog, id string) string {
	if p, ok := c.Person(id); ok {
		return p.DisplayName
	}
	return id
}

// distinct tells whether every step can get its approvals from people of its own.
func distinct(steps []Step) bool {
	needs := make([]need, 0, len(steps))
	for _, s := range steps {
		needs = append(needs, need{name: s.Name, people: s.Approvers, count: s.Quorum})
	}
	_, ok := fill(needs, map[string]bool{})
	return ok
}
