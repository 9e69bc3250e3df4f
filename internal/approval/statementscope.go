package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const (
	// MaxScopeNames bounds the subjects, and the resources, of a statement. api/openapi.yaml has the same limit.
	MaxScopeNames = 50
	// maxScopeOwnerSteps bounds the owner steps of a statement. Beyond it the security team decides in the place of the owners.
	maxScopeOwnerSteps = 20
	// anyone is the subject that stands for every client.
	anyone = "*"

	lineEvery = "every resource of "
	lineLater = " that is added later"
)

// StatementScope contains the effect, the subjects and the resources of a requested statement (KindStatement) that is not about one application and one
// resource of the catalog, such as a deny or a grant to a prefix of names. Subjects and resources are names, or prefixes that end with "*"; a
// subject may also be a range of addresses, or "*" for anyone. Both lists are sorted.
type StatementScope struct {
	Effect    v1alpha1.Effect
	Subjects  []string
	Resources []string
}

// Denies reports whether the statement is a deny. A nil scope is not.
func (s *StatementScope) Denies() bool { return s != nil && s.Effect == v1alpha1.EffectDeny }

func (s *StatementScope) equal(o *StatementScope) bool {
	return s == o || s != nil && o != nil && s.Effect == o.Effect && slices.Equal(s.Subjects, o.Subjects) && slices.Equal(s.Resources, o.Resources)
}

// key identifies the scope among the accesses of reviews. No name of a resource has its form.
func (s *StatementScope) key() string { return "statement/" + s.digest(nil) }

// digest identifies the access that the scope and the actions describe.
func (s *StatementScope) digest(actions []string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(s.Effect), strings.Join(s.Subjects, "\n"), strings.Join(s.Resources, "\n"),
		strings.Join(actions, "\n")}, "\n\n")))
	return hex.EncodeToString(sum[:16])
}

// statement returns the statement of an item with this scope.
func (s *StatementScope) statement(it Item) v1alpha1.Statement {
	out := v1alpha1.Statement{SID: it.SID, Effect: s.Effect}
	for _, name := range s.Subjects {
		out.Subjects = append(out.Subjects, v1alpha1.Subject(name))
	}
	for _, name := range s.Resources {
		out.Resources = append(out.Resources, v1alpha1.ResourceName(name))
	}
	return complete(out, it)
}

// CoveredResources returns the resources of the catalog that the scope covers now, each once.
func (s *StatementScope) CoveredResources(c *catalog.Catalog) iter.Seq[catalog.Entity] {
	return ResourcesCoveredBy(c, s.Resources)
}

// CoveredApplications returns the applications of the catalog that the scope covers now, each once. Anyone covers none of them in particular.
func (s *StatementScope) CoveredApplications(c *catalog.Catalog) iter.Seq[catalog.Entity] {
	return coveredBy(s.Subjects, c.ApplicationsWithPrefix, func(name string) (catalog.Entity, bool) {
		e, _ := c.ByName(name)
		found, ok := c.Application(e.ID)
		return found, ok && found.Name == name
	})
}

// CoversApplicationOf reports whether a person owns one of the applications that the scope covers.
func (s *StatementScope) CoversApplicationOf(c *catalog.Catalog, person string) bool {
	applications, _ := c.Owned(person)
	return coverOneOf(s.Subjects, applications)
}

// OwnedInPart reports whether a person owns one of the applications or resources that the scope covers.
func (s *StatementScope) OwnedInPart(c *catalog.Catalog, person string) bool {
	applications, resources := c.Owned(person)
	return coverOneOf(s.Subjects, applications) || coverOneOf(s.Resources, resources)
}

// OwnsResources reports whether a person owns every resource of the catalog that the scope covers, and it covers one.
func (s *StatementScope) OwnsResources(c *catalog.Catalog, person string) bool {
	return ownsEach(c, person, s.CoveredResources(c))
}

// OwnsSubjects reports whether a person owns every application of the catalog that the scope covers, and it covers one. Of a scope about
// anyone, or a range of addresses, nobody owns the subjects.
func (s *StatementScope) OwnsSubjects(c *catalog.Catalog, person string) bool {
	return s.NamesSubjects() && ownsEach(c, person, s.CoveredApplications(c))
}

// ownsEach reports whether a person owns each of some entities, of which there is at least one.
func ownsEach(c *catalog.Catalog, person string, all iter.Seq[catalog.Entity]) bool {
	found := false
	for e := range all {
		if found = true; !c.Owns(person, e) {
			return false
		}
	}
	return found
}

// coverOneOf reports whether names and prefixes cover one of some entities.
func coverOneOf(names []string, all []catalog.Entity) bool {
	if len(all) == 0 {
		return false
	}
	patterns := NewNamePatterns(names)
	return slices.ContainsFunc(all, func(e catalog.Entity) bool { return patterns.Cover(e.Name) })
}

// resources returns the resources of the catalog that the scope covers now, sorted by id.
func (s *StatementScope) resources(c *catalog.Catalog) []catalog.Entity {
	return sortedByID(s.CoveredResources(c))
}

// applications returns the applications of the catalog that the scope covers now, sorted by id.
func (s *StatementScope) applications(c *catalog.Catalog) []catalog.Entity {
	return sortedByID(s.CoveredApplications(c))
}

func sortedByID(all iter.Seq[catalog.Entity]) []catalog.Entity {
	return slices.SortedFunc(all, func(a, b catalog.Entity) int { return strings.Compare(a.ID, b.ID) })
}

// ownsStatement reports whether a person owns a subject or a resource of a statement that is requested or in force.
func ownsStatement(c *catalog.Catalog, person string, t *Ticket) bool {
	return t.Kind == KindStatement && slices.ContainsFunc(t.Items, func(it Item) bool {
		open := it.State == StatePending || it.State == StateRevoking || it.State.MayBeOnHost()
		return open && it.Scope != nil && it.Scope.OwnedInPart(c, person)
	})
}

// NamesSubjects reports whether every subject is a name or the prefix of names: neither anyone nor a range of addresses.
func (s *StatementScope) NamesSubjects() bool {
	return !slices.ContainsFunc(s.Subjects, func(name string) bool { n, err := policy.ParseName(name); return err != nil || n.IsPrefix() })
}

// mayBeEndedBy reports whether an actor may end the statement without a request: the security team, and owners of all of its subjects or of all
// of its resources that are in the catalog. Nobody ends a deny alone, because that opens access.
func (s *StatementScope) mayBeEndedBy(c *catalog.Catalog, a Actor) bool {
	if s.Denies() || a.Auditor {
		return false
	}
	return a.Security || s.OwnsSubjects(c, a.ID) || s.OwnsResources(c, a.ID)
}

// concerned returns the entities whose owners decide about the statement: every resource that it covers, and for an allow also the
// applications that it covers and the requester does not own.
func (s *StatementScope) concerned(c *catalog.Catalog, requester string) *Reached {
	out := &Reached{}
	for _, e := range s.resources(c) {
		out.Resources = append(out.Resources, e.Name)
	}
	if !s.Denies() {
		for _, e := range s.applications(c) {
			if !c.Owns(requester, e) {
				out.Resources = append(out.Resources, e.Name)
			}
		}
	}
	slices.Sort(out.Resources)
	out.Resources = slices.Compact(out.Resources)
	return out
}

// statementChain returns the built-in chain of a statement, and of the end of a deny: the requester's leader, an owner of everything that
// is concerned, and the security team.
func (a about) statementChain() ([]Step, error) {
	leader, err := a.builtinStep(StepLeader, nil)
	if err != nil {
		return nil, err
	}
	steps, err := a.ownerSteps([]wanted{leader}, Step{Name: StepOwner, Quorum: 1}, false, "")
	if err != nil {
		return nil, err
	}
	if !decidedBySecurity(steps) {
		w, err := a.builtinStep(StepSecurity, nil)
		if err != nil {
			return nil, err
		}
		w.note = message.StepNoteStatementSecurity()
		steps = append(steps, w)
	}
	chain, ok := choose(a.withOrganizations(steps), false)
	if !ok {
		return nil, fail(CodeNoApprover, message.StepSamePersonStatement(catalog.GroupSecurity))
	}
	return chain, nil
}

// decidedBySecurity reports whether the security team alone decides one of the steps.
func decidedBySecurity(steps []wanted) bool {
	return slices.ContainsFunc(steps, func(w wanted) bool { return slices.Equal(w.alternatives[0].from, []v1alpha1.Approver{fromSecurity}) })
}

// scopeOwnerNote returns why the security team decides in the place of the owners of a statement; the zero Message if it does not. many
// reports whether it decides in the place of all of them.
func (a about) scopeOwnerNote(groups []approverGroup, ownerless []string) (note message.Message, many bool) {
	switch n := len(a.reached.Resources); {
	case n > maxReached || len(groups) > maxScopeOwnerSteps:
		return message.StepNoteStatementManyOwners(n, maxScopeOwnerSteps), true
	case len(ownerless) > 0:
		return message.StepNoteStatementNoOwner(a.titles(ownerless)), false
	case n == 0:
		return message.StepNoteStatementNoOwner(a.titles(a.scope.Resources)), false
	}
	return message.Message{}, false
}

// coversResourceOf reports whether one of the covered resources belongs to a team of an organization.
func (a about) coversResourceOf(name v1alpha1.OrganizationName) bool {
	return slices.ContainsFunc(a.scope.resources(a.c), func(e catalog.Entity) bool { return ownedInPartBy(a.organizations, name, e) })
}

// checkScopeClasses checks that the covered resources may use their classes.
func (s *Service) checkScopeClasses(scope *StatementScope) error {
	for _, e := range scope.resources(s.Catalog()) {
		facts, err := s.Host.Facts(e.Name)
		if err != nil {
			return err
		}
		if err := s.checkClassUse(facts.ClassObject, e); err != nil {
			return err
		}
	}
	return nil
}

// statementShown returns the lines of a statement, or of its end. Lines that the end of a deny removes are LineRemoved, which count as growth,
// because each of them opens access.
func (it Item) statementShown(kind Kind, compiled []string) Shown {
	lines := append(compiled, it.statementLines()...)
	if kind == KindRevoke {
		sign := lineTakesAway
		if it.Scope.Denies() {
			sign = LineRemoved
		}
		for i, l := range lines {
			lines[i] = sign + l
		}
	}
	return NewShown(lines)
}

// statementLines returns one line for each subject, and one for each prefix of resources, which covers what is added later.
func (it Item) statementLines() []string {
	end := "until revoked"
	if it.Duration > 0 {
		end = "for " + it.Duration.String()
	}
	begin := LineAllow
	if it.Scope.Denies() {
		begin = LineDeny
	}
	var lines []string
	for _, subject := range it.Scope.Subjects {
		lines = append(lines, fmt.Sprintf("%s%s: %s on %s %s", begin, subject, strings.Join(it.Actions, ", "), strings.Join(it.Scope.Resources, ", "), end))
	}
	for _, resource := range it.Scope.Resources {
		if strings.HasSuffix(resource, "*") {
			lines = append(lines, lineEvery+resource+lineLater)
		}
	}
	if it.Hours != nil {
		lines = append(lines, lineHours+it.Hours.String())
	}
	return lines
}

// unitsWith returns the units of a policy's status that contain the item's statement.
func (it Item) unitsWith(p *v1alpha1.AccessControlPolicy) []v1alpha1.PolicyUnit {
	var out []v1alpha1.PolicyUnit
	for _, u := range p.Status.Units {
		if slices.Contains(u.SIDs, it.SID) {
			out = append(out, u)
		}
	}
	return out
}

// overlaps reports whether a unit may contain the item's statement, by the names of its resources.
func (it Item) overlaps(u *v1alpha1.PolicyUnit) bool {
	n, err := policy.ParseName(string(u.Resource))
	return err != nil || slices.ContainsFunc(it.Scope.Resources, func(name string) bool {
		r, err := policy.ParseName(name)
		return err != nil || r.Overlaps(n)
	})
}

// mayBeOmittedIn reports whether the status of a policy omits, for lack of room, a unit that may contain the item's statement, or the sids of
// such a unit.
func (it Item) mayBeOmittedIn(p *v1alpha1.AccessControlPolicy) bool {
	return p.Status.UnitsUnlisted() > 0 || slices.ContainsFunc(p.Status.Units, func(u v1alpha1.PolicyUnit) bool { return it.overlaps(&u) && u.LacksSIDs() })
}

// statementProgress updates an item whose statement is written: it is effective when every unit that contains it is in every targeted member.
func (t *Ticket) statementProgress(i int, p *v1alpha1.AccessControlPolicy, now time.Time) {
	it := &t.Items[i]
	var wait message.Message
	var names []string
	unlisted, targets := 0, 0
	units := it.unitsWith(p)
	for _, u := range units {
		t.clusterEvents(i, u.Revision, u.States(), now)
		missing, more, targeted := Missing(u)
		targets, unlisted = targets+targeted, unlisted+more
		names = append(names, missing...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case it.mayBeOmittedIn(p):
		wait = message.TicketStatusFull()
	case len(units) == 0:
		wait = message.TicketStatementCoversNothing()
	case targets == 0:
		wait = message.TicketNoMemberPlaced()
	case len(names)+unlisted > 0:
		wait = message.TicketWaitingForMembers(members(names, unlisted))
	}
	switch {
	case it.State == StateEffective:
	case !wait.IsZero():
		t.setMessage(i, now, wait)
	default:
		t.effective(i, now)
	}
}

// statementRemoval updates an item whose statement is removed. The policy contains the statements of other tickets, too, so the members of
// every unit that may have contained this one are waited for.
func (t *Ticket) statementRemoval(i int, p *v1alpha1.AccessControlPolicy, now time.Time) {
	it := &t.Items[i]
	var left []string
	unlisted := 0
	for _, u := range p.Status.Units {
		if !it.overlaps(&u) {
			continue
		}
		t.clusterEvents(i, u.Revision, u.States(), now)
		names, more := remaining(u)
		left, unlisted = append(left, names...), unlisted+more
	}
	slices.Sort(left)
	left = slices.Compact(left)
	switch {
	case it.mayBeOmittedIn(p):
		t.setMessage(i, now, message.TicketStatusFull())
	case len(it.unitsWith(p)) > 0:
		t.setMessage(i, now, message.TicketWaitingForAdapter())
	case len(left)+unlisted > 0:
		t.setMessage(i, now, message.TicketRemovingFromMembers(members(left, unlisted)))
	default:
		t.gone(i, now)
	}
}

// sensitivityOf returns the highest sensitivity of entities; empty, which policies treat as unknown, if there are none or one of them has none.
func sensitivityOf(all []catalog.Entity) catalog.Sensitivity {
	order := []catalog.Sensitivity{catalog.SensitivityLow, catalog.SensitivityMedium, catalog.SensitivityHigh}
	var out catalog.Sensitivity
	for _, e := range all {
		if !slices.Contains(order, e.Sensitivity) {
			return ""
		}
		if cmp.Compare(slices.Index(order, e.Sensitivity), slices.Index(order, out)) > 0 {
			out = e.Sensitivity
		}
	}
	return out
}
