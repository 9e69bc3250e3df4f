package ticketapi

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// builtinPolicy is the displayed name of the chain that applies if no policy matches. No object can have this name.
const builtinPolicy = "(built-in)"

// ListApprovalPolicies implements openapi.StrictServerInterface.
func (a *API) ListApprovalPolicies(ctx context.Context, _ openapi.ListApprovalPoliciesRequestObject) (openapi.ListApprovalPoliciesResponseObject, error) {
	all, err := a.ApprovalPolicies()
	if err != nil {
		return nil, err
	}
	c, who := a.Catalog(), core.Caller(ctx)
	organizations, err := a.Tickets.Organizations()
	if err != nil {
		return nil, err
	}
	out := openapi.ListApprovalPolicies200JSONResponse{Items: []openapi.ApprovalPolicy{}}
	for _, p := range all {
		out.Items = append(out.Items, policyView(c, who, p, organizations, false))
	}
	out.Items = append(out.Items, builtinView(a.Tickets.Builtin))
	return out, nil
}

// GetApprovalPolicy implements openapi.StrictServerInterface.
func (a *API) GetApprovalPolicy(ctx context.Context, r openapi.GetApprovalPolicyRequestObject) (openapi.GetApprovalPolicyResponseObject, error) {
	if r.Id == builtinPolicy {
		return openapi.GetApprovalPolicy200JSONResponse(builtinView(a.Tickets.Builtin)), nil
	}
	all, err := a.ApprovalPolicies()
	if err != nil {
		return nil, err
	}
	organizations, err := a.Tickets.Organizations()
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.Name == r.Id {
			return openapi.GetApprovalPolicy200JSONResponse(policyView(a.Catalog(), core.Caller(ctx), p, organizations, true)), nil
		}
	}
	return nil, &approval.Error{Code: approval.CodeNotFound, Message: message.PolicyNotFound()}
}

// policyView returns the view of an approval policy. Only the security team, auditors and the people themselves see who may use
// break-glass access, because for an attacker it would be a list of people to impersonate. The text is for them, and for the
// administrators of the policy's organization.
func policyView(c *catalog.Catalog, who approval.Actor, p *v1alpha1.ApprovalPolicy, organizations *organization.Index, whole bool) openapi.ApprovalPolicy {
	out := openapi.ApprovalPolicy{
		Name:                p.Name,
		Priority:            int(p.Spec.Priority),
		Match:               core.Optional(p.Spec.Match),
		SamePersonManySteps: new(p.Spec.SamePersonManySteps),
		Organization:        core.Optional(string(p.Spec.Organization)),
		Steps:               []openapi.PolicyStep{},
	}
	for _, cond := range p.Status.Conditions {
		if cond.Type == v1alpha1.ConditionAccepted && cond.ObservedGeneration >= p.Generation {
			out.Accepted, out.Message = cond.Status == metav1.ConditionTrue, acceptanceOf(p, organizations, cond.Message)
		}
	}
	if d := p.Spec.MaxDuration; d != nil {
		out.MaxDurationSeconds = new(int64(d.Seconds()))
	}
	for _, s := range p.Spec.Steps {
		out.Steps = append(out.Steps, policyStep(s))
	}
	if deny := p.Spec.DenyAutoApprove; len(deny) > 0 {
		out.DenyAutoApprove = &deny
	}
	all := core.RequireGovernor(who) == nil
	if g := p.Spec.BreakGlass; g != nil {
		people := []openapi.Person{}
		for _, id := range g.People {
			if all || id == who.ID {
				people = append(people, views.Person(c, id))
			}
		}
		out.BreakGlassPeople = &people
	}
	if p.Spec.ReplaceOwners {
		out.ReplaceOwners = new(true)
	}
	if whole && (all || approval.Administers(c, who.ID, organizations.Get(p.Spec.Organization))) {
		out.Yaml = views.YAML(p.Spec)
	}
	return out
}

// acceptanceOf returns the message of the condition Accepted of a policy, which has only a text; nil if it is empty.
func acceptanceOf(p *v1alpha1.ApprovalPolicy, organizations *organization.Index, text string) *message.Message {
	if text == "" {
		return nil
	}
	_, m := rules.Acceptance(p)
	candidates := []message.Message{m}
	if problem := organizations.PolicyProblem(p); problem != nil {
		candidates = append(candidates, problem.Message)
	}
	return new(message.OfText(text, candidates...))
}

func policyStep(s v1alpha1.ApprovalStep) openapi.PolicyStep {
	out := openapi.PolicyStep{
		Name:        s.Name,
		Approvers:   []string{},
		Quorum:      "any",
		Condition:   core.Optional(s.Condition),
		AutoApprove: core.Optional(s.AutoApprove),
	}
	for _, x := range s.Approvers {
		out.Approvers = append(out.Approvers, string(x))
	}
	switch {
	case s.Quorum == "All":
		out.Quorum = "all"
	case s.Count != nil:
		out.Quorum = fmt.Sprint(*s.Count)
	}
	if t := s.Timeout; t != nil {
		out.Timeout = new(timeoutMessage(t))
		if t.RemindEvery != nil {
			out.RemindSeconds = new(int64(t.RemindEvery.Seconds()))
		}
	}
	if s.LimitTo != "" {
		out.LimitTo = new(string(s.LimitTo))
		out.LimitFallback = new(openapi.PolicyStepLimitFallback(cmp.Or(s.LimitFallback, v1alpha1.LimitWait)))
	}
	return out
}

// timeoutMessage returns what happens if a step is not decided in time.
func timeoutMessage(t *v1alpha1.StepTimeout) message.Message {
	after := shortDuration(t.After.Duration)
	switch {
	case t.Action == v1alpha1.TimeoutDeny:
		return message.PolicyStepDenies(after)
	case t.Action != v1alpha1.TimeoutEscalate:
		return message.PolicyStepReminds(after)
	}
	to := make([]string, len(t.EscalateTo))
	for i, x := range t.EscalateTo {
		to[i] = string(x)
	}
	return message.PolicyStepEscalates(after, to)
}

// shortDuration returns the text of a duration without zero minutes and seconds.
func shortDuration(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"0s", "0m"} {
		if len(s) > 2 && strings.HasSuffix(s, zero) && !strings.ContainsRune("0123456789", rune(s[len(s)-3])) {
			s = strings.TrimSuffix(s, zero)
		}
	}
	return s
}

// builtinView returns the view of the built-in chain with its reminders and its timeout.
func builtinView(t approval.BuiltinTimeout) openapi.ApprovalPolicy {
	step := func(name, from, condition string) openapi.PolicyStep {
		s := openapi.PolicyStep{Name: name, Approvers: []string{from}, Quorum: "any", Condition: core.Optional(condition)}
		if t.RemindEvery > 0 {
			s.RemindSeconds = new(int64(t.RemindEvery.Seconds()))
		}
		after := shortDuration(t.After)
		switch {
		case t.After == 0:
		case t.Action == v1alpha1.TimeoutDeny:
			s.Timeout = new(message.PolicyStepDenies(after))
		case t.Action == v1alpha1.TimeoutEscalate && name == approval.StepLeader:
			s.Timeout = new(message.PolicyStepEscalatesUp(after))
		case t.RemindEvery == 0:
			s.Timeout = new(message.PolicyStepReminds(after))
		}
		return s
	}
	return openapi.ApprovalPolicy{Name: builtinPolicy, Priority: math.MaxInt32, Builtin: true, Accepted: true, Steps: []openapi.PolicyStep{
		step(approval.StepLeader, string(approval.FromLeader), `kind in ["grant", "extend"]`),
		step(approval.StepOwner, string(approval.FromResourceOwner), `!(kind in ["class", "approval-policy"])`),
		step(
			approval.StepSecurity,
			"group:"+catalog.GroupSecurity,
			`resource.sensitivity == "high" || kind in ["offboard", "class", "approval-policy"] || kind == "mode" && toMode is weaker`,
		),
	}}
}
