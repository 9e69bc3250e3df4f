package insight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Propose summarizes the clients of a resource as a policy that a user can read, correct and request. It changes
// nothing.
func Propose(ctx context.Context, r Reader, in ProposeInput) (Proposal, error) {
	if in.Snapshot == nil || in.Resource == "" {
		return Proposal{}, errors.New("propose a policy: the policies and the resource are needed")
	}
	if in.Until.IsZero() {
		in.Until = in.Now
	}
	if in.Since.IsZero() {
		in.Since = in.Until.Add(-DefaultWindow)
	}
	g := newGathering(&in)
	err := r.Totals(ctx, audit.Filter{Since: in.Since, Until: in.Until, Resources: []string{in.Resource}}, func(t audit.Total) error {
		g.add(&t)
		return nil
	})
	if err != nil {
		return Proposal{}, fmt.Errorf("propose a policy for %s: %w", in.Resource, err)
	}
	watch, err := WatchedDays(ctx, r, in.Since, in.Until, nil)
	if err != nil {
		return Proposal{}, fmt.Errorf("propose a policy for %s: %w", in.Resource, err)
	}
	return g.finish(watch.DaysObserved()), nil
}

// Refine returns the part of a proposal that concerns clients first seen at or after in.Reviewed that have access only
// because the resource is in Audit.
func Refine(ctx context.Context, r Reader, in RefineInput) (Proposal, error) {
	p, err := Propose(ctx, r, in.ProposeInput)
	if err != nil {
		return Proposal{}, err
	}
	old := func(s FlowEvidence) bool { return s.First.Before(in.Reviewed) }
	p.Lines = slices.DeleteFunc(p.Lines, func(l ProposalLine) bool { return l.State != StateAudited || old(l.Evidence) })
	p.Unattributed = slices.DeleteFunc(p.Unattributed, func(l UnattributedLine) bool { return l.State != StateAudited || old(l.Evidence) })
	p.UnknownPorts = slices.DeleteFunc(p.UnknownPorts, func(u UnknownPort) bool { return u.Open || old(u.Evidence) })
	p.Policy = p.PolicyFor(ProposalLine.Wanted)
	return p, nil
}

// gathering sums up edges as they are read.
type gathering struct {
	in           *ProposeInput
	decider      *decider
	lines        map[clientKey]*line
	unattributed map[string]*line
	ports        map[portKey]*line
}

type clientKey struct{ action, subject string }

// portKey identifies where a client was seen. action is the HTTP action, and empty for connections.
type portKey struct {
	protocol v1alpha1.Protocol
	port     uint16
	action   string
}

func portOf(e *audit.Edge) portKey {
	at := portKey{protocol: e.Protocol, port: e.Port}
	if e.Protocol == audit.ProtocolHTTP {
		at.action = e.Action
	}
	return at
}

// line collects the data of one client, source or port.
type line struct {
	count        int64
	first, last  time.Time
	days         map[time.Time]struct{}
	clusters     map[string]struct{}
	decisions    map[policy.Verdict]int64
	states       map[State]bool
	refused      bool // a deny refused a part of it
	requests     bool // one of its ports has HTTP actions only
	requestsSeen bool // requests of the action were seen
	statements   map[policy.Ref]struct{}
	ports        map[portKey]int64
	clients      map[string]struct{}
	open         bool
	// alive reports whether connections from before the window are still in use. MinCount does not apply to them.
	alive bool
}

func newGathering(in *ProposeInput) *gathering {
	return &gathering{
		in:           in,
		decider:      newDecider(newPolicyState(in.Snapshot, in.Now)),
		lines:        map[clientKey]*line{},
		unattributed: map[string]*line{},
		ports:        map[portKey]*line{},
	}
}

func (g *gathering) add(t *audit.Total) {
	if t.Subject == "" && t.Source == ownNode {
		return // no policy refuses it
	}
	policies := g.decider.states[0]
	port := portOf(&t.Edge)
	action, requests := policies.actionOf(g.in.Resource, port)
	state, by := g.state(&t.Edge)
	if action == "" {
		l := entry(g.ports, port)
		l.see(t, state, by)
		l.clients[cmp.Or(t.Subject, t.Source)] = struct{}{}
		l.open = state == StateCovered
	}
	switch {
	case t.Subject == "":
		l := entry(g.unattributed, t.Source)
		l.see(t, state, by)
		l.ports[port] += t.Count
	case action != "":
		l := entry(g.lines, clientKey{action, t.Subject})
		l.see(t, state, by)
		l.requests = l.requests || requests
		l.requestsSeen = l.requestsSeen || port.protocol == audit.ProtocolHTTP
	}
}

// state evaluates what the members have now, and what they would have in Enforce.
func (g *gathering) state(e *audit.Edge) (State, policy.Decision) {
	says := g.decider.decide(e, asEnforced)
	by := says.of[0]
	if says.why == nil {
		switch {
		case isKept(by.Verdict):
			return StateCovered, by
		case by.Verdict == policy.Denied:
			return StateDenied, by
		}
	}
	now := g.decider.decide(e, asIs)
	switch now.of[0].Verdict {
	case policy.Audited:
		return StateAudited, policy.Decision{}
	case policy.Denied, policy.DefaultDenied:
		return StateDenied, policy.Decision{}
	}
	return StateNew, policy.Decision{}
}

func entry[K comparable](m map[K]*line, key K) *line {
	l := m[key]
	if l == nil {
		l = &line{days: map[time.Time]struct{}{}, clusters: map[string]struct{}{}, decisions: map[policy.Verdict]int64{}, states: map[State]bool{},
			statements: map[policy.Ref]struct{}{}, ports: map[portKey]int64{}, clients: map[string]struct{}{}}
		m[key] = l
	}
	return l
}

func (l *line) see(t *audit.Total, state State, by policy.Decision) {
	if l.first.IsZero() || t.FirstSeen.Before(l.first) {
		l.first = t.FirstSeen
	}
	l.alive = l.alive || t.Count == 0
	l.last = audit.Later(l.last, t.LastSeen)
	l.count += t.Count
	for _, d := range t.Days {
		l.days[d] = struct{}{}
	}
	l.clusters[t.Cluster] = struct{}{}
	l.decisions[t.Decision] += t.Count
	l.states[state] = true
	l.refused = l.refused || by.Verdict == policy.Denied
	for _, ref := range by.Statements {
		l.statements[ref] = struct{}{}
	}
}

// state combines the states in several members, or under several names: a state that an allow would change takes
// precedence.
func (l *line) state() State {
	for _, s := range []State{StateAudited, StateNew, StateDenied} {
		if l.states[s] {
			return s
		}
	}
	return StateCovered
}

func (l *line) evidence(observed int) FlowEvidence {
	return FlowEvidence{
		Count:        l.count,
		First:        l.first,
		Last:         l.last,
		Days:         len(l.days),
		DaysObserved: max(observed, len(l.days)),
		Clusters:     sortedKeys(l.clusters),
		Decisions:    l.decisions,
	}
}

func (g *gathering) finish(observed int) Proposal {
	p := Proposal{
		Resource:     g.in.Resource,
		Since:        g.in.Since,
		Until:        g.in.Until,
		Lines:        []ProposalLine{},
		Unattributed: []UnattributedLine{},
		UnknownPorts: []UnknownPort{},
	}
	for key, l := range g.lines {
		if l.count < g.in.MinCount && !l.alive {
			continue
		}
		line := ProposalLine{
			Subject:  key.subject,
			Action:   key.action,
			Requests: l.requests && !l.requestsSeen,
			State:    l.state(),
			Evidence: l.evidence(observed),
		}
		if line.State == StateCovered || line.State == StateDenied && l.refused {
			line.Statements = slices.SortedFunc(maps.Keys(l.statements), policy.Ref.Compare)
		}
		p.Lines = append(p.Lines, line)
	}
	for source, l := range g.unattributed {
		u := UnattributedLine{Source: source, State: l.state(), Evidence: l.evidence(observed), Ports: []PortSeen{}}
		for port, count := range l.ports {
			action, _ := g.decider.states[0].actionOf(g.in.Resource, port)
			u.Ports = append(u.Ports, PortSeen{Protocol: port.protocol, Port: port.port, Action: action, Count: count})
		}
		slices.SortFunc(u.Ports, func(a, b PortSeen) int {
			return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Action, b.Action))
		})
		p.Unattributed = append(p.Unattributed, u)
	}
	for port, l := range g.ports {
		p.UnknownPorts = append(
			p.UnknownPorts,
			UnknownPort{Protocol: port.protocol, Port: port.port, Open: l.open, Clients: sortedKeys(l.clients), Evidence: l.evidence(observed)},
		)
	}
	slices.SortFunc(p.Lines, func(a, b ProposalLine) int {
		return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.Subject, b.Subject))
	})
	slices.SortFunc(p.Unattributed, func(a, b UnattributedLine) int { return cmp.Compare(a.Source, b.Source) })
	slices.SortFunc(p.UnknownPorts, func(a, b UnknownPort) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	p.Policy = p.PolicyFor(ProposalLine.Wanted)
	return p
}
