package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/message"
)

const (
	// remindReview is the interval of reminders to the reviewers of break-glass.
	remindReview = 24 * time.Hour
	// remindLimited is the interval of reminders of a limited step whose policy defines none.
	remindLimited = 24 * time.Hour
	// leastTimeout is the shortest interval of a step's reminders.
	leastTimeout = time.Minute
)

// firstMatch returns the approval policy that applies to a request; nil if none matches and the built-in chain applies. If
// the evaluation of a match fails, it is not known whether that policy applies or a stricter one after it, so it returns an
// error and the request is refused.
func firstMatch(all []*rules.Policy, r *rules.Request) (*rules.Policy, error) {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *rules.Policy) int {
		return cmp.Or(cmp.Compare(a.Object.Spec.Priority, b.Object.Spec.Priority), strings.Compare(a.Object.Name, b.Object.Name))
	})
	for _, p := range sorted {
		yes, err := p.Matches(r)
		if err != nil {
			return nil, fail(CodeNoApprover, message.PolicyMatchUnclear(p.Object.Name))
		}
		if yes {
			return p, nil
		}
	}
	return nil, nil
}

// resolve sets the item's chain, or its review, by the policy that applies to it.
func (a about) resolve(kind Kind, breakGlass bool, it Item, all []*rules.Policy, r *rules.Request, requestedAt time.Time) (Item, error) {
	p, err := firstMatch(global(all), r)
	if err != nil &&
		(kind != KindApprovalPolicy || breakGlass) { // otherwise a policy with an error could not be corrected: the security team decides about that
		return it, err
	}
	if breakGlass {
		return a.breakGlass(it, p, requestedAt)
	}
	it.Latest = time.Time{}
	if kind.Access() {
		if it.Latest, err = latest(&it, p, requestedAt); err != nil {
			if p != nil {
				it.Approval = p.Object.Name
			}
			return it, err
		}
	}
	// Automatic approval needs a bound of the total duration, or extensions could continue the access for ever.
	unbounded := !it.Earlier.Since.IsZero() && (p == nil || p.Object.Spec.MaxDuration == nil)
	if a.added, err = a.organizationRules(kind, it, all, r, !unbounded); err != nil {
		return it, err
	}
	if kind.Access() {
		if err := a.added.limit(&it, requestedAt); err != nil {
			return it, err
		}
		if it.isHolderUpdate() && !it.Package.Until.IsZero() && (it.Latest.IsZero() || it.Package.Until.Before(it.Latest)) {
			it.Latest = it.Package.Until
		}
	}
	if p == nil {
		it.Steps, err = builtin(a, kind, it)
		return it, err
	}
	spec := p.Object.Spec
	it.Approval, it.ManySteps = p.Object.Name, spec.SamePersonManySteps && !a.byProgram()
	needsSecurity := kind == KindApprovalPolicy || len(a.delegates) > 0 || a.scope != nil
	mayAuto := !unbounded && !a.holderUpdate && a.scope == nil
	it.Steps, err = a.policySteps(p, r, needsSecurity, mayAuto, autoDenier(a.concerning(all), r))
	return it, err
}

// autoDenier returns the name of a policy that forbids the automatic approval of a request; empty if none does. All policies
// count, not only the one that defines the steps, so that a lax policy cannot hide a deny of another one.
func autoDenier(all []*rules.Policy, r *rules.Request) string {
	var names []string
	for _, p := range all {
		if p.DeniesAuto(r) {
			names = append(names, p.Object.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// latest returns the latest permitted end of an item; zero if there is none. MaxDuration of the policy counts from the
// first grant. Without it, an extension lasts at most as long as the first grant.
func latest(it *Item, p *rules.Policy, requestedAt time.Time) (time.Time, error) {
	if p == nil || p.Object.Spec.MaxDuration == nil {
		if length := it.Earlier.Length; it.Target != nil && length > 0 && (it.Duration == 0 || it.Duration > length) {
			return time.Time{}, fail(CodeInvalid, message.RequestExtensionLimit(formatDuration(length)))
		}
		return time.Time{}, nil
	}
	return latestWithin(it, durationLimit{p.Object.Name, p.Object.Spec.MaxDuration.Duration}, requestedAt)
}

// latestWithin returns the latest end of an item that a limit permits; zero if the item begins the access.
func latestWithin(it *Item, l durationLimit, requestedAt time.Time) (time.Time, error) {
	name, limit, since := l.policy, l.most, it.Earlier.Since
	switch total := it.Total(requestedAt); {
	case it.Duration > 0 && total <= limit:
	case since.IsZero():
		return time.Time{}, fail(CodeInvalid, message.PolicyDurationLimit(name, formatDuration(limit)))
	default:
		return time.Time{}, usedUp(name, limit, limit-requestedAt.Sub(since))
	}
	if since.IsZero() {
		return time.Time{}, nil
	}
	return since.Add(limit), nil
}

// limit checks an item against the limits of organizations, and sets the earliest of the ends that they permit.
func (o organizationRules) limit(it *Item, requestedAt time.Time) error {
	for _, l := range o.limits {
		end, err := latestWithin(it, l, requestedAt)
		if err != nil {
			it.Approval = l.policy
			return err
		}
		if !end.IsZero() && (it.Latest.IsZero() || end.Before(it.Latest)) {
			it.Latest = end
		}
	}
	return nil
}

// usedUp returns the error for access that would last longer in total than a policy permits.
func usedUp(policy string, limit, left time.Duration) error {
	if left < MinDuration {
		return fail(CodeInvalid, message.PolicyTotalUsedUp(policy, formatDuration(limit)))
	}
	return fail(CodeInvalid, message.PolicyTotalLimit(policy, formatDuration(limit), formatDuration(left)))
}

// policySteps returns the steps that a request needs. A registration of clients always needs an owner of each resource that
// they reach: in the place of resource.owner in the policy, or at the end if the policy does not name it. A change of an
// approval policy always needs the security team, because a policy that matches everything may have been written for
// grants only.
// deniedBy names a policy that forbids automatic approval; empty if none does.
func (a about) policySteps(p *rules.Policy, r *rules.Request, security, mayAuto bool, deniedBy string) ([]Step, error) {
	spec, name := p.Object.Spec, p.Object.Name
	var steps []wanted
	always := security
	asked := false             // the owners of a program's application have to agree
	owners := a.reached != nil // owners of the reached resources have to agree
	for i, s := range spec.Steps {
		if needed, _ := p.Needed(i, r); !needed {
			continue
		}
		if a.reached != nil && slices.Contains(s.Approvers, FromResourceOwner) {
			var err error
			if steps, err = a.ownerSteps(steps, ownerStepOf(s), s.Quorum == "All", name); err != nil {
				return nil, err
			}
			owners = false
			continue
		}
		auto, _ := p.Auto(i, r)
		if a.byProgram() && applicationDecides(a.sponsors(s.Approvers)) {
			asked, auto = true, false // no condition replaces the only people who confirm that the application asks
		}
		denied := auto && deniedBy != ""
		auto = auto && mayAuto && !denied && !r.Adopt && !r.Override // exceptions are decided by a person
		w, err := a.policyStep(s, name, auto)
		if err != nil {
			return nil, err
		}
		if denied {
			w.note = message.StepNoteAutoDenied(deniedBy)
		}
		team := slices.Equal(s.Approvers, []v1alpha1.Approver{fromSecurity})
		a.setRules(&w.step, s, always, team)
		steps = append(steps, w)
		security = security && (auto || !team)
	}
	if owners {
		var err error
		if steps, err = a.ownerSteps(steps, Step{Name: StepOwner, Quorum: 1}, false, name); err != nil {
			return nil, err
		}
	}
	steps, err := a.requiredSteps(steps, security)
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, fail(CodeNoApprover, message.PolicyAsksNobody(name))
	}
	steps, err = a.withApplicationStep(steps, asked)
	if err != nil {
		return nil, err
	}
	chain, ok := choose(a.withOrganizations(steps), spec.SamePersonManySteps && !a.byProgram())
	if !ok {
		return nil, fail(CodeNoApprover, message.PolicyTooFewPeople(name))
	}
	return chain, nil
}

// policyStep returns a step of a policy, which auto approves automatically.
func (a about) policyStep(s v1alpha1.ApprovalStep, policy string, auto bool) (wanted, error) {
	w := wanted{step: Step{Name: s.Name, Quorum: 1, Auto: auto}, all: s.Quorum == "All", alternatives: a.waysToFill(s.Approvers),
		owners: onlyOwners(s.Approvers)}
	if auto {
		w.note = message.StepNotePolicyCondition()
	}
	if s.Quorum == "Count" && s.Count != nil {
		w.step.Quorum = int(*s.Count)
	}
	if len(w.alternatives) == 0 {
		return w, cannotFill(policy, s.Name, message.StepNobodyNamed(join(s.Approvers)))
	}
	if most := len(w.alternatives[0].people); w.step.Quorum > most && len(w.alternatives) == 1 {
		return w, cannotFill(policy, s.Name, needsPeople(w.step.Quorum, most))
	}
	return w, nil
}

// requiredSteps appends the steps of the security team, or of the administrators of an organization, that no policy leaves out: in the place of
// owners of resources that a change of a class affects and, if security is set, for the kind of the request.
func (a about) requiredSteps(steps []wanted, security bool) ([]wanted, error) {
	if !a.instead.IsZero() && !slices.ContainsFunc(steps, wanted.bySecurity) {
		w, err := a.builtinStep(StepSecurity, nil)
		if err != nil {
			return nil, err
		}
		w.step.Name, w.note = freeName(steps, StepSecurity), a.instead
		steps = append(steps, w)
		security = security && len(a.delegates) > 0
	}
	if !security {
		return steps, nil
	}
	always := StepSecurity
	if len(a.delegates) > 0 {
		always = StepAdministrator
	}
	w, err := a.builtinStep(always, nil)
	if err != nil {
		return nil, err
	}
	w.step.Name, w.note = freeName(steps, always), message.StepNoteApproversChange()
	if a.scope != nil {
		w.note = message.StepNoteStatementSecurity()
	}
	return append(steps, w), nil
}

// setRules sets the timeout, the reminders and the limit of a policy's step. policy reports whether the request changes an approval
// policy, and team whether only the security team decides the step.
func (a about) setRules(step *Step, s v1alpha1.ApprovalStep, policy, team bool) {
	if t := s.Timeout; t != nil && t.After.Duration > 0 {
		step.Timeout, step.OnTimeout = max(t.After.Duration, leastTimeout), t.Action
		step.EscalateFrom, step.EscalateTo = t.EscalateTo, a.people(t.EscalateTo, 0)
		step.Remind = remindEvery(t)
	}
	step.limit(s)
	if !policy {
		return
	}
	if team && step.OnTimeout == v1alpha1.TimeoutEscalate { // a timeout must not give the security team's decision to other people
		step.OnTimeout, step.EscalateFrom, step.EscalateTo = v1alpha1.TimeoutRemind, nil, nil
	}
	if !step.OnCall.IsZero() { // a schedule that cannot be read must not prevent the correction of a policy
		step.OnCall.Approvers = true
	}
}

// limit sets the limit of a policy's step. The approvers of a limited step are reminded, also if the policy does not say so, because
// the person who is on call next is notified of the request by a reminder.
func (s *Step) limit(of v1alpha1.ApprovalStep) {
	s.OnCall = limitOf(of)
	if !s.OnCall.IsZero() && s.Remind == 0 && (s.Timeout == 0 || s.OnTimeout != v1alpha1.TimeoutRemind) {
		s.Remind = remindLimited
	}
}

// remindEvery returns the interval of reminders; 0 if there are none.
func remindEvery(t *v1alpha1.StepTimeout) time.Duration {
	if t.RemindEvery == nil || t.RemindEvery.Duration <= 0 {
		return 0
	}
	return max(t.RemindEvery.Duration, leastTimeout)
}

// freeName returns a name for an added step that no other step has, which is or begins with the given one.
func freeName(steps []wanted, name string) string {
	for slices.ContainsFunc(steps, func(w wanted) bool { return w.step.Name == name }) {
		name += "-always"
	}
	return name
}

// breakGlass sets the review of an item that takes effect at once. Only people whom the policy lists may request that.
func (a about) breakGlass(it Item, p *rules.Policy, requestedAt time.Time) (Item, error) {
	if p == nil || p.Object.Spec.BreakGlass == nil || !slices.Contains(p.Object.Spec.BreakGlass.People, a.requester) {
		return it, fail(CodeForbidden, message.RequestBreakGlassPeople())
	}
	spec := p.Object.Spec.BreakGlass
	limit := min(spec.MaxDuration.Duration, rules.MaxBreakGlass)
	if it.Duration == 0 || it.Duration > limit {
		return it, fail(CodeInvalid, message.PolicyDurationLimit(p.Object.Name, formatDuration(limit)))
	}
	if since := it.Earlier.GlassSince; !since.IsZero() {
		if it.Latest = since.Add(limit); requestedAt.Add(it.Duration).After(it.Latest) {
			return it, usedUp(p.Object.Name, limit, it.Latest.Sub(requestedAt))
		}
	}
	reviewers := a.people(spec.Reviewers, 0)
	if len(reviewers) == 0 {
		return it, cannotFill(p.Object.Name, StepReview, message.StepNobodyNamed(join(spec.Reviewers)))
	}
	it.Approval = p.Object.Name
	it.Review = &Step{
		Name:      StepReview,
		State:     StepWaiting,
		Approvers: reviewers,
		From:      spec.Reviewers,
		Quorum:    1,
		Timeout:   remindReview,
		OnTimeout: v1alpha1.TimeoutRemind,
	}
	return it, nil
}

func join(approvers []v1alpha1.Approver) string {
	texts := make([]string, len(approvers))
	for i, a := range approvers {
		texts[i] = string(a)
	}
	return strings.Join(texts, ", ")
}

// formatDuration formats a duration, for example 180d or 1d 12h. It omits what is below a minute.
func formatDuration(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		length time.Duration
		sign   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if n := d / unit.length; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, unit.sign))
			d -= n * unit.length
		}
	}
	return cmp.Or(strings.Join(parts, " "), "0m")
}
