package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval/rules"
)

const (
	// remindReview is how often the reviewers of break-glass are reminded.
	remindReview = 24 * time.Hour
	// leastTimeout bounds how often a step can remind.
	leastTimeout = time.Minute
)

// firstMatch is the approval policy that counts for a request; nil: none matches, and the built-in chain holds. Of a match that
// fails nobody can tell whether that policy counts, or a stricter one behind it; the request is refused then.
func firstMatch(all []*rules.Policy, r *rules.Request) (*rules.Policy, error) {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *rules.Policy) int {
		return cmp.Or(cmp.Compare(a.Object.Spec.Priority, b.Object.Spec.Priority), strings.Compare(a.Object.Name, b.Object.Name))
	})
	for _, p := range sorted {
		yes, err := p.Matches(r)
		if err != nil {
			return nil, failf(CodeNoApprover, "It cannot be told whether the approval policy %s is about this request: an administrator has to mend its match.", p.Object.Name)
		}
		if yes {
			return p, nil
		}
	}
	return nil, nil
}

// resolve makes the item's chain, or its review, by the policy that counts for it.
func (a about) resolve(kind Kind, breakGlass bool, it Item, all []*rules.Policy, r *rules.Request, asked time.Time) (Item, error) {
	p, err := firstMatch(all, r)
	if err != nil && (kind != KindApprovalPolicy || breakGlass) { // or the policy could not be mended: the security team decides about that
		return it, err
	}
	if breakGlass {
		return a.breakGlass(it, p, asked)
	}
	it.Latest = time.Time{}
	if kind.Access() {
		if it.Latest, err = latest(&it, p, asked); err != nil {
			if p != nil {
				it.Approval = p.Object.Name
			}
			return it, err
		}
	}
	if p == nil {
		it.Steps, err = builtin(a, kind, it)
		return it, err
	}
	spec := p.Object.Spec
	it.Approval, it.ManySteps = p.Object.Name, spec.SamePersonManySteps
	// Automatic approval needs a bound on the total length, or access that is extended would never end.
	unbounded := !it.Earlier.Since.IsZero() && spec.MaxDuration == nil
	it.Steps, err = a.policySteps(p, r, kind == KindApprovalPolicy, !unbounded)
	return it, err
}

// latest is the bound of an item's end; zero: none. MaxDuration of the policy counts from the first grant. Where there is
// none, an extension lasts no longer than the first grant.
func latest(it *Item, p *rules.Policy, asked time.Time) (time.Time, error) {
	since := it.Earlier.Since
	if p == nil || p.Object.Spec.MaxDuration == nil {
		if length := it.Earlier.Length; it.Target != nil && length > 0 && (it.Duration == 0 || it.Duration > length) {
			return time.Time{}, failf(CodeInvalid, "An extension lasts no longer than the grant, which was for %s: ask for no more.", spoken(length))
		}
		return time.Time{}, nil
	}
	name, limit := p.Object.Name, p.Object.Spec.MaxDuration.Duration
	switch total := it.Total(asked); {
	case it.Duration > 0 && total <= limit:
	case since.IsZero():
		return time.Time{}, failf(CodeInvalid, "The approval policy %s allows at most %s: ask for no more.", name, spoken(limit))
	default:
		return time.Time{}, usedUp(name, limit, limit-asked.Sub(since))
	}
	if since.IsZero() {
		return time.Time{}, nil
	}
	return since.Add(limit), nil
}

// usedUp is the refusal of what would last longer than a policy allows for all of it.
func usedUp(policy string, limit, left time.Duration) error {
	if left < MinDuration {
		return failf(CodeInvalid, "The approval policy %s allows at most %s from the first grant on, and that is used up: ask again when the access has ended.", policy, spoken(limit))
	}
	return failf(CodeInvalid, "The approval policy %s allows at most %s from the first grant on: ask for at most %s.", policy, spoken(limit), spoken(left))
}

// policySteps are the steps that a request needs. To change who has to agree always needs the security team: a policy
// for everything, written with grants in mind, must not hand that to somebody else.
func (a about) policySteps(p *rules.Policy, r *rules.Request, security, mayAuto bool) ([]Step, error) {
	spec, name := p.Object.Spec, p.Object.Name
	var steps []wanted
	always := security
	for i, s := range spec.Steps {
		if needed, _ := p.Needed(i, r); !needed {
			continue
		}
		auto, _ := p.Auto(i, r)
		auto = auto && mayAuto && !r.Adopt && !r.Override // these are exceptions, which somebody has to look at
		w := wanted{step: Step{Name: s.Name, Quorum: 1, Auto: auto}, all: s.Quorum == "All", alternatives: a.waysToFill(s.Approvers)}
		if auto {
			w.note = "Approved by the policy's own condition."
		}
		if s.Quorum == "Count" && s.Count != nil {
			w.step.Quorum = int(*s.Count)
		}
		if len(w.alternatives) == 0 {
			return nil, cannotFill(name, s.Name, "nobody but the requester and auditors is named by "+join(s.Approvers)+" in the catalog")
		}
		if most := len(w.alternatives[0].people); w.step.Quorum > most && len(w.alternatives) == 1 {
			return nil, cannotFill(name, s.Name, needsPeople(w.step.Quorum, most))
		}
		if t := s.Timeout; t != nil && t.After.Duration > 0 {
			w.step.Timeout, w.step.OnTimeout = max(t.After.Duration, leastTimeout), t.Action
			w.step.EscalateFrom, w.step.EscalateTo = t.EscalateTo, a.people(t.EscalateTo, 0)
		}
		team := slices.Equal(s.Approvers, []v1alpha1.Approver{fromSecurity})
		if always && team && w.step.OnTimeout == v1alpha1.TimeoutEscalate { // nor may time hand it to somebody else
			w.step.OnTimeout, w.step.EscalateFrom, w.step.EscalateTo = v1alpha1.TimeoutRemind, nil, nil
		}
		steps = append(steps, w)
		security = security && (auto || !team)
	}
	if security {
		w, err := a.builtinStep(StepSecurity, nil)
		if err != nil {
			return nil, err
		}
		w.step.Name, w.note = freeName(steps), "To change who has to agree needs the security team."
		steps = append(steps, w)
	}
	if len(steps) == 0 {
		return nil, failf(CodeNoApprover, "The approval policy %s asks nobody about this request, and nothing is granted unasked: an administrator has to give it a step for this case.", name)
	}
	chain, ok := choose(steps, spec.SamePersonManySteps)
	if !ok {
		return nil, failf(CodeNoApprover, "The approval policy %s needs more different people than the catalog names for its steps: ask an administrator.", name)
	}
	return chain, nil
}

// freeName is the name of the step that is added, which the policy may have used.
func freeName(steps []wanted) string {
	name := StepSecurity
	for slices.ContainsFunc(steps, func(w wanted) bool { return w.step.Name == name }) {
		name += "-always"
	}
	return name
}

// breakGlass makes the review of an item that is in force at once. Only people whom the policy names may.
func (a about) breakGlass(it Item, p *rules.Policy, asked time.Time) (Item, error) {
	if p == nil || p.Object.Spec.BreakGlass == nil || !slices.Contains(p.Object.Spec.BreakGlass.People, a.requester) {
		return it, failf(CodeForbidden, "Only people whom the approval policy names for it may break the glass: ask the usual way.")
	}
	spec := p.Object.Spec.BreakGlass
	limit := min(spec.MaxDuration.Duration, rules.MaxBreakGlass)
	if it.Duration == 0 || it.Duration > limit {
		return it, failf(CodeInvalid, "The approval policy %s allows at most %s: ask for no more.", p.Object.Name, spoken(limit))
	}
	if since := it.Earlier.GlassSince; !since.IsZero() {
		if it.Latest = since.Add(limit); asked.Add(it.Duration).After(it.Latest) {
			return it, usedUp(p.Object.Name, limit, it.Latest.Sub(asked))
		}
	}
	reviewers := a.people(spec.Reviewers, 0)
	if len(reviewers) == 0 {
		return it, cannotFill(p.Object.Name, StepReview, "nobody but the requester and auditors is named by "+join(spec.Reviewers)+" in the catalog")
	}
	it.Approval = p.Object.Name
	it.Review = &Step{Name: StepReview, State: StepWaiting, Approvers: reviewers, From: spec.Reviewers, Quorum: 1, Timeout: remindReview, OnTimeout: v1alpha1.TimeoutRemind}
	return it, nil
}

func join(approvers []v1alpha1.Approver) string {
	texts := make([]string, len(approvers))
	for i, a := range approvers {
		texts[i] = string(a)
	}
	return strings.Join(texts, ", ")
}

// spoken is a length of time as people read it: 180d, 36h is 1d 12h. What is below a minute does not count.
func spoken(d time.Duration) string {
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
