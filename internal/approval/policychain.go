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
func (a about) resolve(kind Kind, breakGlass bool, it Item, all []*rules.Policy, r *rules.Request) (Item, error) {
	p, err := firstMatch(all, r)
	if err != nil && (kind != KindApprovalPolicy || breakGlass) { // or the policy could not be mended: the security team decides about that
		return it, err
	}
	if breakGlass {
		return a.breakGlass(it, p)
	}
	if p == nil {
		it.Steps, err = builtin(a, kind, it)
		return it, err
	}
	spec := p.Object.Spec
	it.Approval, it.ManySteps = p.Object.Name, spec.SamePersonManySteps
	if limit := spec.MaxDuration; kind.Access() && limit != nil && (it.Duration == 0 || it.Duration > limit.Duration) {
		return it, failf(CodeInvalid, "The approval policy %s allows at most %s: ask for no more.", p.Object.Name, spoken(limit.Duration))
	}
	it.Steps, err = a.policySteps(p, r, kind == KindApprovalPolicy)
	return it, err
}

// policySteps are the steps that a request needs. To change who has to agree always needs the security team: a policy
// for everything, written with grants in mind, must not hand that to somebody else.
func (a about) policySteps(p *rules.Policy, r *rules.Request, security bool) ([]Step, error) {
	spec, name := p.Object.Spec, p.Object.Name
	var steps []wanted
	always := security
	for i, s := range spec.Steps {
		if needed, _ := p.Needed(i, r); !needed {
			continue
		}
		auto, _ := p.Auto(i, r)
		auto = auto && !r.Adopt && !r.Override // these are exceptions, which somebody has to look at
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
func (a about) breakGlass(it Item, p *rules.Policy) (Item, error) {
	if p == nil || p.Object.Spec.BreakGlass == nil || !slices.Contains(p.Object.Spec.BreakGlass.People, a.requester) {
		return it, failf(CodeForbidden, "Only people whom the approval policy names for it may break the glass: ask the usual way.")
	}
	spec := p.Object.Spec.BreakGlass
	if it.Duration == 0 || it.Duration > spec.MaxDuration.Duration {
		return it, failf(CodeInvalid, "The approval policy %s allows at most %s: ask for no more.", p.Object.Name, spoken(spec.MaxDuration.Duration))
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
