package governance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Bounds of a search for indirect paths.
const (
	mostSteps  = 6
	mostChains = 10
	mostLooked = 2_000
)

// Path describes how one name can reach another.
type Path struct {
	// Decisions contains the decision about each action of the target in each of the searched clusters, and in all others.
	Decisions []ActionDecision
	// Direct contains the allows between the two names, and Against the denies, ordered by Key.
	Direct, Against []Edge
	// Chains contains indirect paths, the shortest first: the resource of each step is the subject of the next.
	Chains [][]Edge
	// Cut reports whether there may be more or longer chains.
	Cut bool
}

// ActionDecision is the decision about a new connection with one action.
type ActionDecision struct {
	// Cluster is empty for every member without a mode of its own.
	Cluster string
	Action  string
	Mode    v1alpha1.Mode
	policy.Decision
}

// FindPath returns the paths between two exact names; from may also be an address range. Clusters are the members in
// which the resource has a mode of its own.
func FindPath(s *policy.Snapshot, from, to string, clusters []string, at time.Time) (Path, error) {
	target, err := policy.ParseName(to)
	switch {
	case err != nil:
		return Path{}, err
	case target.Wildcard || target.IsPrefix():
		return Path{}, fmt.Errorf("%w %q: the target must be one exact name", policy.ErrInvalidName, to)
	}
	source, err := policy.ParseName(from)
	switch {
	case err != nil:
		return Path{}, err
	case source.Wildcard:
		return Path{}, fmt.Errorf("%w %q: the source must be one exact name", policy.ErrInvalidName, from)
	}
	f := finder{describer: describer{s: s, at: at, resources: map[string]seen{}, subjects: map[string]Kind{}}}
	p := Path{Decisions: actionDecisions(s, source, to, clusters, at)}
	for _, g := range s.WhoCanReach(to, at) {
		if !Covers(g.Subject, from) {
			continue
		}
		if e := f.edge(g); g.Effect == policy.Deny {
			p.Against = append(p.Against, e)
		} else {
			p.Direct = append(p.Direct, e)
		}
	}
	if !source.IsPrefix() {
		p.Chains, p.Cut = f.chains(from, to)
	}
	return p, nil
}

// actionDecisions returns the decision for each action of the resource's class, in its base mode and in each of the clusters.
func actionDecisions(s *policy.Snapshot, source policy.Name, to string, clusters []string, at time.Time) []ActionDecision {
	class, ok := s.ResourceClassOf(to)
	if !ok {
		return nil
	}
	var out []ActionDecision
	for _, c := range append([]string{""}, clusters...) {
		for _, a := range class.Spec.Actions {
			if len(a.Ports) == 0 {
				continue
			}
			q := policy.Query{Resources: []string{to}, Cluster: c, Protocol: a.Ports[0].Protocol, Port: uint16(a.Ports[0].Port), At: at}
			if q.Protocol == "" {
				q.Protocol = v1alpha1.ProtocolTCP
			}
			if prefix, err := source.ParsePrefix(); err == nil {
				q.Source = prefix.Addr()
			} else {
				q.Subjects = []string{source.String()}
			}
			out = append(out, ActionDecision{Cluster: c, Action: a.Name, Mode: s.EffectiveMode(to, c, at), Decision: effective(s, &q)})
		}
	}
	return out
}

// effective returns the decision as the members have it.
func effective(s *policy.Snapshot, q *policy.Query) policy.Decision {
	d := s.DecideEffective(q)
	return d.Decision
}

type finder struct {
	describer
	looked int
}

// way is a chain under construction.
type way struct {
	steps []Edge
	names []string
}

// chains searches breadth-first over names that are a resource of one statement and a subject of another.
func (f *finder) chains(from, to string) (found [][]Edge, cut bool) {
	between := f.between(from, to)
	if len(between) == 0 {
		return nil, false
	}
	candidates := append(between, to)
	open := []way{{names: []string{from}}}
	for len(open) > 0 {
		w := open[0]
		open = open[1:]
		last := w.names[len(w.names)-1]
		for _, name := range candidates {
			if slices.Contains(w.names, name) || len(w.steps) == 0 && name == to {
				continue // a cycle, or not an exact name
			}
			if f.looked++; f.looked > mostLooked || len(found) == mostChains {
				return found, true
			}
			e, ok := f.step(last, name)
			switch {
			case !ok:
			case name == to:
				found = append(found, append(slices.Clone(w.steps), e))
			case len(w.steps)+2 <= mostSteps: // including the last step
				open = append(open, way{append(slices.Clone(w.steps), e), append(slices.Clone(w.names), name)})
			default:
				cut = true
			}
		}
	}
	return found, cut
}

// between returns the names that can be in the middle, which are both clients and servers, sorted.
func (f *finder) between(from, to string) []string {
	names := map[string]bool{}
	for _, w := range f.s.Statements() {
		for _, sub := range w.Statement.Subjects {
			name := string(sub)
			if name == from || name == to || names[name] || strings.HasSuffix(name, "*") {
				continue
			}
			if _, ok := f.s.ResourceClassOf(name); ok {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// step returns an allow in force from one name to another.
func (f *finder) step(from, to string) (Edge, bool) {
	for _, g := range f.s.WhoCanReach(to, f.at) {
		if g.Effect == policy.Allow && g.Counting && Covers(g.Subject, from) {
			return f.edge(g), true
		}
	}
	return Edge{}, false
}
