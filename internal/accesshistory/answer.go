package accesshistory

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

// Answer contains the subjects that could reach the resource at an instant, according to the policies that the host cluster had.
type Answer struct {
	At time.Time
	// Onboarded reports whether the resource was protected, in Mode, which includes temporary audits. ModeKnown is false if the records do
	// not say which mode it had.
	Onboarded, ModeKnown bool
	Mode                 v1alpha1.Mode
	// ClusterModes are the modes of members that had another one.
	ClusterModes []v1alpha1.ClusterMode
	// Audit is the temporary audit that was active; nil if there was none.
	Audit *v1alpha1.TemporaryAudit
	Lines []Line
	// Gaps contains what the records do not cover. If there is a gap, further subjects may have reached the resource.
	Gaps []Gap
}

// Open reports whether the resource refused nobody, regardless of the statements.
func (a *Answer) Open() bool { return a.ModeKnown && a.Mode != v1alpha1.ModeEnforce }

// Line is a statement about the resource, for one of its subjects.
type Line struct {
	policy.Grant
	// Ticket and Item are the ticket that gave it; nil if it did not come from a ticket that was read.
	Ticket *approval.Ticket
	Item   int
	// Uncertain reports whether it is not certain that the statement existed, or that it had this content.
	Uncertain bool
	// Reached are the actions that the evaluator allowed to the subject, in the base mode. They are nil if the subject is no exact name,
	// the resource has no class, or neither the statement is certain nor the mode known.
	Reached []string
	// Decided reports whether Reached was evaluated.
	Decided bool
}

// WhoCould returns who could reach the resource at an instant that is not in the future.
func (r *Records) WhoCould(at time.Time) Answer {
	s := r.stateAt(at, nil)
	a := Answer{At: at, Onboarded: s.exists, ModeKnown: s.modeKnown, Mode: s.snapshot.EffectiveMode(r.Resource, "", at), Gaps: s.gaps}
	for _, p := range s.protections {
		for _, m := range p.Spec.ClusterModes {
			if mode := s.snapshot.EffectiveMode(r.Resource, string(m.Cluster), at); mode != a.Mode {
				a.ClusterModes = append(a.ClusterModes, v1alpha1.ClusterMode{Cluster: m.Cluster, Mode: mode})
			}
		}
		if t := p.Spec.TemporaryAudit; t != nil && at.Before(t.Until.Time) {
			a.Audit = t
		}
	}
	for _, g := range s.snapshot.WhoCanReach(r.Resource, at) {
		a.Lines = append(a.Lines, r.line(s, g))
	}
	return a
}

// line returns the line of a grant in a state.
func (r *Records) line(s *state, g policy.Grant) Line {
	l := Line{Grant: g, Uncertain: s.uncertain[g.Ref]}
	if i := s.tickets[g.Ref]; i != nil && i.get().ApplicationName == g.Subject {
		l.Ticket, l.Item = i.ticket, i.at
	}
	if !strings.HasSuffix(g.Subject, "*") && (s.modeKnown || !l.Uncertain) {
		l.Reached, l.Decided = reached(s.snapshot, g.Subject, r.Resource, g.Actions, s.at)
	}
	return l
}

// reached returns the actions that the statements and the mode of a resource allowed to a subject; false if the resource has no class.
func reached(snapshot *policy.Snapshot, subject, resource string, actions []string, at time.Time) ([]string, bool) {
	class, ok := snapshot.ResourceClassOf(resource)
	if !ok {
		return nil, false
	}
	q := policy.Query{Resources: []string{resource}, At: at}
	if n, err := policy.ParseName(subject); err == nil {
		if prefix, err := n.ParsePrefix(); err == nil {
			q.Source = prefix.Addr()
		} else {
			q.Subjects = []string{subject}
		}
	}
	out := []string{}
	for i := range class.Spec.Actions {
		a := &class.Spec.Actions[i]
		if len(a.Ports) == 0 || actions != nil && !slices.Contains(actions, a.Name) {
			continue
		}
		q.Protocol, q.Port, q.Action = a.Ports[0].Protocol, uint16(a.Ports[0].Port), ""
		if q.Protocol == "" {
			q.Protocol = v1alpha1.ProtocolTCP
		}
		if len(a.HTTP) > 0 {
			q.Action = a.Name
		}
		switch snapshot.Decide(q).Verdict {
		case policy.Denied, policy.DefaultDenied:
		default:
			out = append(out, a.Name)
		}
	}
	return out, true
}
