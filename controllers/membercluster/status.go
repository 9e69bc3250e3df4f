package membercluster

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/memberhealth"
	"github.com/acp-io/acp/controllers/statusfields"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

// facts are the properties of one member at one instant.
type facts struct {
	Cluster federation.Cluster
	Seen    federation.Observation
	Check   memberhealth.CheckResult
	// Units is nil until every unit was decided once, because a count before would be too low.
	Units *Units
	// Orphans are objects that look like ACP's and that nothing on the host requires, by name.
	Orphans []string
	// Identities is nil if they were not read.
	Identities *v1alpha1.MemberIdentities
	// Nodes is nil if the member runs no acp-node, or if its reports cannot be read.
	Nodes     *federation.NodeView
	Dataplane dataplane
	Now       metav1.Time
}

// maxDeclaration is the maximum length of a declaration in the API.
const maxDeclaration = 8192

// maxNamespace is the maximum length of a namespace's name in the API.
const maxNamespace = 253

// maxProfile is the maximum length of the name of a ClusterProfile, with its namespace, in the API.
const maxProfile = 317

// maxLabels is the maximum number of labels in the API.
const maxLabels = 128

// maxFindings is the maximum number of findings in the API.
const maxFindings = 64

// status computes the whole status of a MemberCluster. It is pure. Properties that are not known now keep their
// previous values.
func (f *facts) status(before *v1alpha1.MemberClusterStatus) v1alpha1.MemberClusterStatus {
	s := v1alpha1.MemberClusterStatus{
		Engine:            shortText(string(cmp.Or(f.Cluster.Engine, federation.EngineKubeFed))),
		KubernetesVersion: shortText(cmp.Or(f.Check.Kubernetes, before.KubernetesVersion)),
		Guard:             guardState(f.Check.Guard),
		Downgrade:         f.downgrade(before), Objects: before.Objects, PolicyMap: before.PolicyMap, Identities: before.Identities,
	}
	s.CiliumVersion, s.IstioVersion = shortText(f.Check.Cilium), shortText(f.Check.Istio)
	if len(f.Cluster.Profile) <= maxProfile {
		s.ClusterProfile = f.Cluster.Profile
	}
	if len(f.Cluster.Labels) <= maxLabels {
		s.Labels = f.Cluster.Labels
	}
	if len(f.Cluster.Istio) <= maxDeclaration {
		s.Istio = f.Cluster.Istio
	}
	if root := f.Cluster.Locations.NonDefaultIstioRoot(); len(root) <= maxNamespace {
		s.IstioRootNamespace = root
	}
	if f.Check.Kubernetes == "" { // the member did not answer
		s.CiliumVersion, s.IstioVersion, s.Guard = before.CiliumVersion, before.IstioVersion, cmp.Or(before.Guard, v1alpha1.GuardUnknown)
	}
	if f.Units != nil {
		s.Objects, s.PolicyMap = f.Units.Objects, f.Units.Heaviest
	}
	if f.Identities != nil && !sameIdentities(f.Identities, before.Identities) {
		s.Identities = f.Identities
	}
	s.Nodes = nodesOf(f.Nodes, f.Now.Time)
	s.Dataplane = f.dataplane(before.Dataplane)
	if s.PolicyMap != nil && s.Dataplane != nil {
		m := *s.PolicyMap
		m.Limit, s.PolicyMap = s.Dataplane.PolicyMapEntries, &m
	}
	state, why := f.state(s.Downgrade)
	s.State = state
	s.Message, s.MessageCode, s.MessageParams = statusfields.BoundedMessage(why)
	s.Findings = f.findings(&s)
	s.Since = before.Since
	if s.Since == nil || before.State != s.State {
		s.Since = &f.Now
	}
	ready := statusfields.False(v1alpha1.ConditionReady, string(s.State), s.Message)
	if s.State == v1alpha1.MemberClusterReady {
		ready = statusfields.True(v1alpha1.ConditionReady, string(s.State), "")
	}
	s.Conditions = statusfields.SetConditions(before.Conditions, 0, f.Now, ready)
	s.ObservedAt = before.ObservedAt
	if !equality.Semantic.DeepEqual(s, *before) {
		s.ObservedAt = &f.Now
	}
	return s
}

// state returns the worst state that applies, and what to do about it.
func (f *facts) state(mark *v1alpha1.MemberDowngrade) (v1alpha1.MemberClusterState, message.Message) {
	silent := slices.IndexFunc(f.Check.Findings, func(p preflight.Finding) bool { return p.Code == preflight.Unreachable })
	switch {
	case f.Cluster.Quarantined && f.Cluster.DowngradeMark == nil:
		return v1alpha1.MemberClusterQuarantined, message.MemberKeptApart(f.Cluster.QuarantineReason)
	case mark != nil:
		return v1alpha1.MemberClusterDowngraded, turnedToAudit(mark)
	case f.Cluster.Leaving:
		return v1alpha1.MemberClusterLeaving, message.MemberLeaving(f.Cluster.Name)
	case !f.Seen.Reachable:
		return v1alpha1.MemberClusterUnreachable, f.Seen.Message
	case silent >= 0:
		// The member can be read, but its engine cannot write to it.
		return v1alpha1.MemberClusterUnreachable, f.Check.Findings[silent].Text()
	}
	return v1alpha1.MemberClusterReady, message.Message{}
}

// downgrade returns the downgrade mark of a member, as it was read or as the registration records it. If the mark
// cannot be read, the previous value is kept.
func (f *facts) downgrade(before *v1alpha1.MemberClusterStatus) *v1alpha1.MemberDowngrade {
	mark := f.Check.Mark
	switch {
	case mark == nil && f.Cluster.DowngradeMark != nil:
		mark = f.Cluster.DowngradeMark
	case mark == nil && f.Check.Marked:
		return nil
	case mark == nil:
		return before.Downgrade
	}
	since := metav1.NewTime(mark.Since)
	return &v1alpha1.MemberDowngrade{Since: &since, By: strings.ToValidUTF8(mark.By[:min(len(mark.By), 253)], ""), Reason: statusfields.Truncate(mark.Reason)}
}

func guardState(s guard.State) v1alpha1.GuardState {
	switch s {
	case guard.Present:
		return v1alpha1.GuardPresent
	case guard.Missing:
		return v1alpha1.GuardMissing
	case guard.Changed:
		return v1alpha1.GuardChanged
	}
	return v1alpha1.GuardUnknown
}

func turnedToAudit(d *v1alpha1.MemberDowngrade) message.Message {
	switch {
	case d.By == "" && d.Reason == "":
		return message.MemberTurnedToAudit()
	case d.By == "":
		return message.MemberTurnedToAuditBySomebody(d.Reason)
	case d.Reason == "":
		return message.MemberTurnedToAuditWithoutReason(d.By)
	}
	return message.MemberTurnedToAuditBy(d.By, d.Reason)
}

// finding returns a finding for the status.
func finding(code string, severity v1alpha1.FindingSeverity, object string, m message.Message) v1alpha1.MemberFinding {
	out := v1alpha1.MemberFinding{Code: code, Severity: severity, Object: object}
	out.Message, out.MessageCode, out.MessageParams = statusfields.BoundedMessage(m)
	return out
}

// findings returns the findings of the preflight and about limits, the worst first.
func (f *facts) findings(s *v1alpha1.MemberClusterStatus) []v1alpha1.MemberFinding {
	var out []v1alpha1.MemberFinding
	for _, p := range f.Check.Findings {
		out = append(out, finding(p.Code, v1alpha1.FindingSeverity(p.Severity), p.Class, p.Text()))
	}
	out = append(out, limitFindings(s)...)
	out = append(out, orphanFindings(f.Orphans)...)
	order := []v1alpha1.FindingSeverity{v1alpha1.FindingStops, v1alpha1.FindingFails, v1alpha1.FindingWarns}
	slices.SortStableFunc(out, func(a, b v1alpha1.MemberFinding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
	return out[:min(len(out), maxFindings)]
}

// shortText returns a version or a name in the form that the API accepts.
func shortText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), 63)], "")
}

func sameIdentities(a, b *v1alpha1.MemberIdentities) bool {
	return a != nil && b != nil && a.Used == b.Used && a.Limit == b.Limit && slices.Equal(a.Labels, b.Labels)
}
