package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Policy is an approval policy with its expressions compiled.
type Policy struct {
	Object *v1alpha1.ApprovalPolicy
	match  Expression
	steps  []step
	denies []Expression
}

type step struct{ condition, auto Expression }

// MaxBreakGlass is the maximum duration of break-glass access, regardless of policies, because it is not approved in advance.
const MaxBreakGlass = 24 * time.Hour

// Problem is an error in a policy.
type Problem struct {
	Field  string
	Reason message.Message
}

// Message returns the field and the reason.
func (p Problem) Message() message.Message { return message.RuleField(p.Field, p.Reason) }

func (p Problem) String() string { return p.Message().Text }

// Compile compiles a policy. The result is never nil. If an expression does not compile, the policy matches, the step is required,
// and nothing is approved automatically.
func Compile(o *v1alpha1.ApprovalPolicy) (*Policy, []Problem) {
	p := &Policy{Object: o}
	var problems []Problem
	expression := func(field, text string) Expression {
		e, err := compile(text)
		if err != nil {
			problems = append(problems, Problem{field, message.Of(err)})
		}
		return e
	}
	p.match = expression("spec.match", o.Spec.Match)
	for i, s := range o.Spec.Steps {
		at := fmt.Sprintf("spec.steps[%d]", i)
		p.steps = append(p.steps, step{condition: expression(at+".condition", s.Condition), auto: expression(at+".autoApprove", s.AutoApprove)})
		if s.Quorum == "Count" && s.Count == nil {
			problems = append(problems, Problem{at + ".count", message.RuleCountNeeded()})
		}
		if t := s.Timeout; t != nil && t.After.Duration <= 0 {
			problems = append(problems, Problem{at + ".timeout.after", message.RulePositive()})
		}
		if t := s.Timeout; t != nil && t.RemindEvery != nil && t.RemindEvery.Duration <= 0 {
			problems = append(problems, Problem{at + ".timeout.remindEvery", message.RulePositive()})
		}
	}
	for i, text := range o.Spec.DenyAutoApprove {
		at := fmt.Sprintf("spec.denyAutoApprove[%d]", i)
		if text == "" {
			problems = append(problems, Problem{at, message.RuleExpressionAbsent()})
		}
		p.denies = append(p.denies, expression(at, text))
	}
	if d := o.Spec.MaxDuration; d != nil && d.Duration <= 0 {
		problems = append(problems, Problem{"spec.maxDuration", message.RulePositive()})
	}
	if b := o.Spec.BreakGlass; b != nil && b.MaxDuration.Duration <= 0 {
		problems = append(problems, Problem{"spec.breakGlass.maxDuration", message.RulePositive()})
	} else if b != nil && b.MaxDuration.Duration > MaxBreakGlass {
		problems = append(problems, Problem{"spec.breakGlass.maxDuration", message.RuleAtMostADay()})
	}
	return p, problems
}

// Acceptance reports whether a policy can be evaluated, and which message the condition Accepted of its status has: the problems or the
// warnings. Without either, the message is zero.
func Acceptance(o *v1alpha1.ApprovalPolicy) (bool, message.Message) {
	p, problems := Compile(o)
	if len(problems) > 0 {
		reasons := make([]message.Message, len(problems))
		for i, x := range problems {
			reasons[i] = x.Message()
		}
		return false, message.ConditionApprovalPolicyInvalid(reasons)
	}
	if warnings := p.Warnings(); len(warnings) > 0 {
		return true, message.Parts(warnings)
	}
	return true, message.Message{}
}

// Matches reports whether the policy applies to a request. With an error this is unknown, and the caller must not decide by it.
func (p *Policy) Matches(r *Request) (bool, error) {
	if p.match.Absent() {
		return true, nil
	}
	return p.match.Eval(r)
}

// Needed reports whether a step is required. In doubt it is.
func (p *Policy) Needed(i int, r *Request) (bool, error) {
	if p.steps[i].condition.Absent() {
		return true, nil
	}
	yes, err := p.steps[i].condition.Eval(r)
	return yes || err != nil, err
}

// Auto reports whether a step is approved automatically. In doubt it is not.
func (p *Policy) Auto(i int, r *Request) (bool, error) {
	if p.steps[i].auto.Absent() {
		return false, nil
	}
	return p.steps[i].auto.Eval(r)
}

// DeniesAuto reports whether the policy forbids that any step of a request is approved automatically. In doubt it does: if it is
// unknown whether the policy applies, or whether one of its conditions is true.
func (p *Policy) DeniesAuto(r *Request) bool {
	if len(p.denies) == 0 {
		return false
	}
	if applies, err := p.Matches(r); !applies && err == nil {
		return false
	}
	return slices.ContainsFunc(p.denies, func(e Expression) bool {
		if e.Absent() {
			return true
		}
		yes, err := e.Eval(r)
		return yes || err != nil
	})
}

// Warnings returns valid but suspicious parts: a policy that matches nothing, or a step that no person can fill.
func (p *Policy) Warnings() []message.Message {
	var matched []string
	for kind := range kinds {
		if !p.match.neverFor(kind) {
			matched = append(matched, kind)
		}
	}
	slices.Sort(matched)
	if len(matched) == 0 {
		return []message.Message{message.RuleMatchNever()}
	}
	var out []message.Message
	for i, s := range p.Object.Spec.Steps {
		if why := unfillable(s, slices.DeleteFunc(slices.Clone(matched), p.steps[i].condition.neverFor)); !why.IsZero() {
			out = append(out, message.RuleStep(fmt.Sprintf("spec.steps[%d]", i), s.Name, why))
		}
	}
	return out
}

// unfillable returns the reason why no person, or too few, can ever fill a step.
func unfillable(s v1alpha1.ApprovalStep, matched []string) message.Message {
	if len(matched) == 0 {
		return message.RuleConditionNever()
	}
	if !slices.ContainsFunc(matched, func(kind string) bool {
		return slices.ContainsFunc(s.Approvers, func(a v1alpha1.Approver) bool { return canBe(a, kind) })
	}) {
		return message.RuleNoApprovers(matched)
	}
	people := 0
	for _, a := range s.Approvers {
		if !strings.HasPrefix(string(a), "person:") {
			return message.Message{}
		}
		people++
	}
	if s.Count != nil && int(*s.Count) > people {
		return message.RuleTooFewPeople(int(*s.Count), people)
	}
	return message.Message{}
}
