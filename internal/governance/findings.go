package governance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/membertally"
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
	// MemberDowngraded is a member whose policies an operator changed to allow all traffic.
	MemberDowngraded FindingKind = "downgraded"
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
	return []FindingKind{Leak, Drift, Orphan, Overridden, Quarantined, MemberDowngraded, Unreachable,
		Preflight, Guard, NotPushed, Rejected, Disagreement, Capacity}
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
	// LeftOut is how many further findings of the kind this one stands for; 0 for a finding of its own.
	LeftOut int
}

// Key orders findings by severity and kind, and is unique. One that stands for others is the first of its kind.
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
	keys := make([]string, len(in))
	order := make([]int, len(in))
	for i := range in {
		keys[i], order[i] = in[i].Key(), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	out := make([]Finding, 0, len(in))
	for i, at := range order {
		if i == 0 || keys[at] != keys[order[i-1]] {
			out = append(out, in[at])
		}
	}
	return out
}

// maxOfKind is the maximum number of findings of one kind about units in members, of which a fleet can have millions.
const maxOfKind = 2000

// Findings returns the findings from the statuses that the adapter wrote, not sorted; those about a member alone if one is named. Of a kind
// with very many findings about units in members, one more finding says how many are left out. Findings from flows are added by the caller.
func Findings(in policy.Input, members []*v1alpha1.MemberCluster, problems []policy.Problem, member string) []Finding {
	f := findings{member: member, reported: map[string]bool{}, left: map[FindingKind]int{}, kept: map[FindingKind]int{}}
	for _, m := range members {
		f.reported[m.Name] = true
		f.add(ofMember(m)...)
	}
	for resource, s := range statuses(in) {
		f.ofStatus(resource, s)
	}
	f.unreported(in)
	for kind, n := range f.left {
		f.all = append(f.all, Finding{Kind: kind, Severity: v1alpha1.FindingFails, Message: message.FindingMoreLeftOut(n), Member: member, LeftOut: n})
	}
	if member != "" { // what follows is about the host
		return f.all
	}
	rejected := func(kind, name, resource string, conditions []metav1.Condition) {
		f.add(rejected(problems, kind, name, resource, conditions)...)
	}
	for _, r := range in.Resources {
		rejected("ProtectedResource", r.Name, string(r.Spec.Resource), r.Status.Conditions)
	}
	for _, p := range in.Policies {
		f.add(refusals(p)...)
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
	return f.all
}

// findings collects findings about members.
type findings struct {
	all []Finding
	// member is the only member whose findings are wanted; empty for all.
	member string
	// reported has the members with a report of their own, which says what concerns the whole member.
	reported map[string]bool
	// quarantined and unreachable are the members in which units are in these states.
	quarantined, unreachable membertally.Tally
	// kept and left count the findings about units in members.
	kept, left map[FindingKind]int
}

func (f *findings) add(in ...Finding) {
	for i := range in {
		if f.member == "" || in[i].Member == f.member {
			f.all = append(f.all, in[i])
		}
	}
}

// ofStatus adds the findings of one unit. Facts about the whole member are collected for one finding.
func (f *findings) ofStatus(resource string, s status) {
	if f.member != "" {
		if c, ok := s.Member(v1alpha1.ClusterName(f.member)); ok {
			f.ofAlike(&c, []v1alpha1.ClusterName{c.Name})
			if kind, ok := kindsOfStates[c.State]; ok && f.room(kind, 1) > 0 {
				f.all = append(f.all, ofState(kind, resource, &c))
			}
		}
		return
	}
	room := map[v1alpha1.MemberState]int{}
	for c, names := range s.Alike() {
		f.ofAlike(&c, names)
		if kind, ok := kindsOfStates[c.State]; ok {
			room[c.State] += f.room(kind, len(names))
		}
	}
	if len(room) == 0 {
		return
	}
	for c := range s.In(func(state v1alpha1.MemberState) bool { return room[state] > 0 }) {
		if room[c.State] > 0 { // no room may be left within a group
			room[c.State]--
			f.all = append(f.all, ofState(kindsOfStates[c.State], resource, &c))
		}
	}
}

// room returns for how many of n more findings of a kind there is room, and counts them.
func (f *findings) room(kind FindingKind, n int) int {
	kept := min(n, maxOfKind-f.kept[kind])
	f.kept[kind] += kept
	if n > kept {
		f.left[kind] += n - kept
	}
	return kept
}

func (f *findings) ofAlike(c *v1alpha1.ClusterState, names []v1alpha1.ClusterName) {
	switch c.State {
	case v1alpha1.MemberQuarantined:
		f.quarantined.Add(names, 1)
	case v1alpha1.MemberUnreachable:
		f.unreachable.Add(names, 1)
	}
}

// unreported adds the findings of members without a report of their own, as the first unit says.
func (f *findings) unreported(in policy.Input) {
	quarantined := f.quarantined.Counts()
	report := func(name string, state v1alpha1.MemberState, kind FindingKind, severity v1alpha1.FindingSeverity) {
		for _, s := range statuses(in) {
			if c, ok := s.Member(v1alpha1.ClusterName(name)); ok && c.State == state {
				x := ofState(kind, "", &c)
				x.Severity = severity
				f.add(x)
				return
			}
		}
	}
	for name := range quarantined {
		if !f.reported[name] {
			report(name, v1alpha1.MemberQuarantined, Quarantined, v1alpha1.FindingStops)
		}
	}
	for name := range f.unreachable.Counts() {
		if !f.reported[name] && quarantined[name] == 0 {
			report(name, v1alpha1.MemberUnreachable, Unreachable, v1alpha1.FindingFails)
		}
	}
}

// kindsOfStates are the kinds of the findings about one unit in one member.
var kindsOfStates = map[v1alpha1.MemberState]FindingKind{
	v1alpha1.MemberLeaked:     Leak,
	v1alpha1.MemberDrifted:    Drift,
	v1alpha1.MemberOverridden: Overridden,
}

func ofState(kind FindingKind, resource string, c *v1alpha1.ClusterState) Finding {
	f := Finding{
		Kind:     kind,
		Severity: v1alpha1.FindingFails,
		Message:  cmp.Or(message.Restore(c.Message, c.MessageCode, c.MessageParams), message.FindingReasonLeftOut()),
		Member:   string(c.Name),
		Resource: resource,
	}
	if c.Since != nil {
		f.Since = c.Since.Time
	}
	return f
}

// refusals returns the findings about statements that are left out in the members.
func refusals(p *v1alpha1.AccessControlPolicy) []Finding {
	var out []Finding
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
	return out
}

// rejected returns a finding if an object is not accepted. The condition has no code, so the message is computed again.
func rejected(problems []policy.Problem, kind, name, resource string, conditions []metav1.Condition) []Finding {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAccepted)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return []Finding{
		{
			Kind:     Rejected,
			Severity: v1alpha1.FindingFails,
			Message:  AcceptanceOf(problems, kind, name, c.Message),
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
		f.Kind = MemberDowngraded
	case v1alpha1.MemberClusterUnreachable:
		f.Kind = Unreachable
	default:
		return out
	}
	return append(out, f)
}
