package governance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// FindingKind classifies a finding.
type FindingKind string

const (
	// Leak is an object in a member in which it should not be.
	Leak FindingKind = "leak"
	// Drift is an object in a member that differs from what ACP wrote, or is gone.
	Drift FindingKind = "drift"
	// Orphan is an object with ACP's name or label that no object on the host requires.
	Orphan FindingKind = "orphan"
	// Overridden is a policy not managed by ACP that allows more traffic to the pods of a resource.
	Overridden FindingKind = "overridden"
	// Quarantined is a member that KubeFed does not write to, because it would block the distribution to all members.
	Quarantined FindingKind = "quarantined"
	// Downgraded is a member whose policies an operator changed to allow all traffic.
	Downgraded FindingKind = "downgraded"
	// Unreachable is a member that cannot be read.
	Unreachable FindingKind = "unreachable"
	// Preflight is a finding of the preflight of a member.
	Preflight FindingKind = "preflight"
	// Guard is a guard of a member that is missing, changed or unreadable.
	Guard FindingKind = "guard"
	// NotPushed is a statement that cannot be translated as written and is left out in the members.
	NotPushed FindingKind = "refused"
	// Rejected is an object on the host that is not valid and has no effect.
	Rejected FindingKind = "rejected"
	// Disagreement is traffic that the dataplane treated differently from what the policies say.
	Disagreement FindingKind = "disagreement"
	// Capacity is a table of a dataplane that is almost full: identities or policy maps.
	Capacity FindingKind = "capacity"
)

// FindingKinds returns all kinds.
func FindingKinds() []FindingKind {
	return []FindingKind{Leak, Drift, Orphan, Overridden, Quarantined, Downgraded, Unreachable, Preflight, Guard, NotPushed, Rejected, Disagreement, Capacity}
}

// Finding is a problem that should be examined.
type Finding struct {
	Kind     FindingKind
	Severity v1alpha1.FindingSeverity
	Message  message.Message
	// Member, Resource, the statement and Object identify what the finding is about; each may be empty.
	Member, Resource string
	Statement        policy.Ref
	Object           string
	Since            time.Time
	// Count is the number of connections, for a disagreement.
	Count int64
}

// Key orders findings by severity and kind, and is unique.
func (f *Finding) Key() string {
	rank := map[v1alpha1.FindingSeverity]int{v1alpha1.FindingStops: 0, v1alpha1.FindingFails: 1, v1alpha1.FindingWarns: 2}[f.Severity]
	return fmt.Sprintf(
		"%d/%02d/%s",
		rank,
		slices.Index(FindingKinds(), f.Kind),
		strings.Join([]string{f.Member, f.Resource, f.Statement.Policy, f.Statement.SID, f.Object}, "/"),
	)
}

// SortFindings sorts findings by Key and removes duplicates.
func SortFindings(in []Finding) []Finding {
	slices.SortStableFunc(in, func(a, b Finding) int { return cmp.Compare(a.Key(), b.Key()) })
	return slices.CompactFunc(in, func(a, b Finding) bool { return a.Key() == b.Key() })
}

// Findings returns the findings from the statuses that the adapter wrote, not sorted. Findings from flows are added by
// the caller.
func Findings(in policy.Input, members []*v1alpha1.MemberCluster) []Finding {
	var out []Finding
	known := map[string]bool{}
	problems := sync.OnceValue(func() []policy.Problem { return policy.NewSnapshot(in).Problems() }) // needed only if an object is rejected
	rejected := func(kind, name, resource string, conditions []metav1.Condition) {
		out = append(out, rejected(problems, kind, name, resource, conditions)...)
	}
	for _, m := range members {
		known[m.Name] = true
		out = append(out, ofMember(m)...)
	}
	for _, r := range in.Resources {
		for c := range r.Status.All() {
			out = append(out, ofState(string(r.Spec.Resource), &c, known)...)
		}
		rejected("ProtectedResource", r.Name, string(r.Spec.Resource), r.Status.Conditions)
	}
	for _, p := range in.Policies {
		for i := range p.Status.Units {
			u := &p.Status.Units[i]
			if !strings.HasSuffix(string(u.Resource), "*") {
				continue // its ProtectedResource reports the same
			}
			for c := range u.All() {
				out = append(out, ofState(string(u.Resource), &c, known)...)
			}
		}
		for _, r := range p.Status.Refused {
			out = append(
				out,
				Finding{
					Kind:      NotPushed,
					Severity:  v1alpha1.FindingFails,
					Message:   message.Restore(r.Message, r.MessageCode, r.MessageParams),
					Statement: policy.Ref{Policy: p.Name, SID: r.SID},
					Object:    r.Reason,
				},
			)
		}
		for _, sid := range p.Status.RefusedOthers {
			out = append(
				out,
				Finding{
					Kind:      NotPushed,
					Severity:  v1alpha1.FindingFails,
					Message:   message.FindingRefusalLeftOut(),
					Statement: policy.Ref{Policy: p.Name, SID: sid},
				},
			)
		}
		if len(p.Status.Refused) == 0 {
			rejected("AccessControlPolicy", p.Name, "", p.Status.Conditions)
		}
	}
	for _, c := range in.ResourceClasses {
		rejected("ResourceClass", c.Name, "", c.Status.Conditions)
	}
	for _, c := range in.SubjectClasses {
		rejected("SubjectClass", c.Name, "", c.Status.Conditions)
	}
	return out
}

// ofState returns the findings of one unit in one member. What applies to the whole member is reported once, with the
// member.
func ofState(resource string, c *v1alpha1.ClusterState, known map[string]bool) []Finding {
	f := Finding{
		Severity: v1alpha1.FindingFails,
		Message:  cmp.Or(message.Restore(c.Message, c.MessageCode, c.MessageParams), message.FindingReasonLeftOut()),
		Member:   string(c.Name),
		Resource: resource,
	}
	if c.Since != nil {
		f.Since = c.Since.Time
	}
	switch c.State {
	case v1alpha1.MemberLeaked:
		f.Kind = Leak
	case v1alpha1.MemberDrifted:
		f.Kind = Drift
	case v1alpha1.MemberOverridden:
		f.Kind = Overridden
	case v1alpha1.MemberQuarantined, v1alpha1.MemberUnreachable:
		if known[f.Member] {
			return nil
		}
		known[f.Member] = true
		f.Kind, f.Resource = Unreachable, ""
		if c.State == v1alpha1.MemberQuarantined {
			f.Kind, f.Severity = Quarantined, v1alpha1.FindingStops
		}
	default:
		return nil
	}
	return []Finding{f}
}

// rejected returns a finding if an object is not accepted. The condition has no code, so the message is computed again.
func rejected(problems func() []policy.Problem, kind, name, resource string, conditions []metav1.Condition) []Finding {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAccepted)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return []Finding{
		{
			Kind:     Rejected,
			Severity: v1alpha1.FindingFails,
			Message:  AcceptanceOf(problems(), kind, name, c.Message),
			Resource: resource,
			Object:   kind + "/" + name,
			Since:    c.LastTransitionTime.Time,
		},
	}
}

// AcceptanceOf returns the message of the condition Accepted of an object, which has only a text: the problem of a snapshot that has this
// text, or why a class in use cannot be deleted, or else the text without a code.
func AcceptanceOf(problems []policy.Problem, kind, name, text string) message.Message {
	for _, of := range []func(string) message.Message{message.ConditionResourceClassInUse, message.ConditionSubjectClassInUse} {
		if m, ok := message.OfNamedText(text, of); ok {
			return m
		}
	}
	candidates := []message.Message{message.ConditionDeleteFromObserve()}
	for i := range problems {
		if p := &problems[i]; p.Kind == kind && p.Name == name {
			candidates = append(candidates, p.Message)
		}
	}
	return message.OfText(text, candidates...)
}

// codes are the finding codes that do not come from the preflight.
var codes = map[string]FindingKind{
	v1alpha1.FindingIdentitiesFilling: Capacity,
	v1alpha1.FindingIdentitiesFull:    Capacity,
	v1alpha1.FindingPolicyMapFilling:  Capacity,
}

func ofMember(m *v1alpha1.MemberCluster) []Finding {
	s := &m.Status
	var out []Finding
	for _, f := range s.Findings {
		kind, ok := codes[f.Code]
		switch {
		case ok:
		case strings.HasPrefix(f.Code, "Guard"):
			kind = Guard
		case strings.HasPrefix(f.Code, "Orphan"):
			kind = Orphan
		default:
			kind = Preflight
		}
		object := f.Code
		if f.Object != "" {
			object += " " + f.Object
		}
		out = append(
			out,
			Finding{Kind: kind, Severity: f.Severity, Message: message.Restore(f.Message, f.MessageCode, f.MessageParams), Member: m.Name, Object: object},
		)
	}
	f := Finding{Severity: v1alpha1.FindingFails, Member: m.Name, Message: message.Restore(s.Message, s.MessageCode, s.MessageParams)}
	if s.Since != nil {
		f.Since = s.Since.Time
	}
	switch s.State {
	case v1alpha1.MemberClusterQuarantined:
		f.Kind, f.Severity = Quarantined, v1alpha1.FindingStops
	case v1alpha1.MemberClusterDowngraded:
		f.Kind = Downgraded
	case v1alpha1.MemberClusterUnreachable:
		f.Kind = Unreachable
	default:
		return out
	}
	return append(out, f)
}
