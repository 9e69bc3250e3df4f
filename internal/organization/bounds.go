package organization

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// ClassViolations returns the bounds that a class exceeds; none if it is within them, or belongs to no organization.
func (x *Index) ClassViolations(spec *v1alpha1.ResourceClassSpec) []message.Message {
	if spec.Organization == "" {
		return nil
	}
	o := x.Get(spec.Organization)
	if o == nil {
		return []message.Message{message.OrganizationUnknown(string(spec.Organization))}
	}
	b := o.Spec.Bounds.Classes
	if b == nil {
		return []message.Message{message.OrganizationNoClasses()}
	}
	var out []message.Message
	exceeds := func(yes bool, m message.Message) {
		if yes {
			out = append(out, m)
		}
	}
	exceeds(!slices.ContainsFunc(b.Patterns, func(p v1alpha1.NamePattern) bool { return covers(p, spec.Pattern) }),
		message.OrganizationBoundPattern(string(spec.Pattern), texts(b.Patterns)))
	exceeds(!slices.Contains(b.LabelKeys, spec.LabelKey), message.OrganizationBoundLabel(string(spec.LabelKey), texts(b.LabelKeys)))
	enforcers := spec.Enforcers
	if len(enforcers) == 0 {
		enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium} // the default of the API
	}
	for _, e := range enforcers {
		exceeds(!slices.Contains(b.Enforcers, e), message.OrganizationBoundEnforcer(string(e), texts(b.Enforcers)))
	}
	for _, a := range spec.Actions {
		exceeds(len(b.Actions) > 0 && !slices.ContainsFunc(b.Actions, func(allowed v1alpha1.Action) bool { return includes(allowed, a.Name) }),
			message.OrganizationBoundAction(a.Name, texts(b.Actions)))
	}
	exceeds(spec.DefaultMode != "" && !slices.Contains(b.DefaultModes, spec.DefaultMode),
		message.OrganizationBoundMode(string(spec.DefaultMode), texts(b.DefaultModes)))
	exceeds(spec.OtherPorts == v1alpha1.OtherPortsAllow && !b.AllowOtherPorts, message.OrganizationBoundOtherPorts())
	exceeds(b.RequireWaves && (spec.Rollout == nil || len(spec.Rollout.Waves) == 0), message.OrganizationBoundWaves())
	out = append(out, placementViolations(b.Clusters, &spec.Placement)...)
	return out[:min(len(out), mostListed)]
}

// covers reports whether a pattern covers every name of another one. A pattern that cannot be parsed covers nothing.
func covers(pattern, other v1alpha1.NamePattern) bool {
	p, errP := policy.ParseName(string(pattern))
	o, errO := policy.ParseName(string(other))
	return errP == nil && errO == nil && p.Covers(o)
}

// includes reports whether an action, or a wildcard of the actions of a service, includes another action.
func includes(allowed v1alpha1.Action, action string) bool {
	if service, ok := strings.CutSuffix(string(allowed), "*"); ok {
		return strings.HasPrefix(action, service)
	}
	return string(allowed) == action
}

// AllowsSensitivity reports whether resources of a sensitivity may use the classes of an organization.
func AllowsSensitivity(o *v1alpha1.Organization, sensitivity string) bool {
	b := o.Spec.Bounds.Classes
	return b != nil && slices.Contains(b.Sensitivities, v1alpha1.Sensitivity(sensitivity))
}

// PolicyViolations returns the bounds that an approval policy exceeds; none if it is within them, or belongs to no organization.
func (x *Index) PolicyViolations(spec *v1alpha1.ApprovalPolicySpec) []message.Message {
	if spec.Organization == "" {
		return nil
	}
	o := x.Get(spec.Organization)
	if o == nil {
		return []message.Message{message.OrganizationUnknown(string(spec.Organization))}
	}
	b := o.Spec.Bounds.Approvals
	if b == nil {
		return []message.Message{message.OrganizationNoPolicies()}
	}
	var out []message.Message
	exceeds := func(yes bool, m message.Message) {
		if yes {
			out = append(out, m)
		}
	}
	exceeds(spec.BreakGlass != nil, message.OrganizationBoundBreakGlass())
	exceeds(spec.SamePersonManySteps, message.OrganizationBoundManySteps())
	exceeds(spec.ReplaceOwners && !b.AllowReplaceOwners, message.OrganizationBoundReplaceOwners())
	exceeds(!b.AllowAutoApprove && slices.ContainsFunc(spec.Steps, func(s v1alpha1.ApprovalStep) bool { return s.AutoApprove != "" }),
		message.OrganizationBoundAutoApprove())
	if b.MaxDuration != nil {
		exceeds(spec.MaxDuration == nil || spec.MaxDuration.Duration > b.MaxDuration.Duration,
			message.OrganizationBoundDuration(b.MaxDuration.Duration.String()))
	}
	return out
}

// Rights lists what an approval policy of an organization may do in addition to adding steps.
type Rights struct {
	AutoApprove, ReplaceOwners bool
	// MaxDuration limits how long access lasts; 0 if there is no limit.
	MaxDuration time.Duration
}

// RightsOf returns what an approval policy of an organization may do. The bounds limit what the policy says, so a policy that was within
// its bounds once gives nothing that they do not allow now.
func (x *Index) RightsOf(spec *v1alpha1.ApprovalPolicySpec) Rights {
	var r Rights
	if spec.MaxDuration != nil {
		r.MaxDuration = max(spec.MaxDuration.Duration, 1)
	}
	o := x.Get(spec.Organization)
	if o == nil || o.Spec.Bounds.Approvals == nil {
		return r
	}
	b := o.Spec.Bounds.Approvals
	r.AutoApprove, r.ReplaceOwners = b.AllowAutoApprove, b.AllowReplaceOwners && spec.ReplaceOwners
	if b.MaxDuration != nil {
		r.MaxDuration = min(cmp.Or(r.MaxDuration, b.MaxDuration.Duration), b.MaxDuration.Duration)
	}
	return r
}

// ClassProblem returns the problem of a class that is outside of its bounds; nil if it is within them. Decisions and compilation do not
// leave such a class out, because a revocation must still reach the members that have its resources; the portal grants no new access by it.
func (x *Index) ClassProblem(c *v1alpha1.ResourceClass) *policy.Problem {
	violations := x.ClassViolations(&c.Spec)
	if len(violations) == 0 {
		return nil
	}
	return &policy.Problem{Kind: "ResourceClass", Name: c.Name, Reason: v1alpha1.ReasonOutOfBounds, Message: message.ConditionClassOutOfBounds(violations)}
}

func texts[T ~string](list []T) []string {
	out := make([]string, 0, min(len(list), mostListed))
	for _, x := range list[:min(len(list), mostListed)] {
		out = append(out, string(x))
	}
	return out
}

// PolicyProblem returns the problem of an approval policy that is outside of its bounds; nil if it is within them.
func (x *Index) PolicyProblem(p *v1alpha1.ApprovalPolicy) *policy.Problem {
	violations := x.PolicyViolations(&p.Spec)
	if len(violations) == 0 {
		return nil
	}
	return &policy.Problem{Kind: "ApprovalPolicy", Name: p.Name, Reason: v1alpha1.ReasonOutOfBounds, Message: message.ConditionPolicyOutOfBounds(violations)}
}

// Problems returns the problems of organizations, and of the classes and approval policies that are outside of their bounds.
func (x *Index) Problems(classes []*v1alpha1.ResourceClass, policies []*v1alpha1.ApprovalPolicy) []policy.Problem {
	var out []policy.Problem
	for _, o := range x.All() {
		if ok, m := x.Acceptance(o); !ok {
			out = append(out, policy.Problem{Kind: "Organization", Name: o.Name, Reason: v1alpha1.ReasonTeamConflict, Message: m})
		}
	}
	for _, c := range classes {
		if p := x.ClassProblem(c); p != nil {
			out = append(out, *p)
		}
	}
	for _, o := range policies {
		if p := x.PolicyProblem(o); p != nil {
			out = append(out, *p)
		}
	}
	return out
}
