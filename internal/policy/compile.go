package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Compile makes the units of all resources that are in Audit or Enforce somewhere, by resource name.
func (s *Snapshot) Compile(at time.Time) []Unit {
	var out []Unit
	for _, r := range sortedKeys(s.protected) {
		if u, ok := s.CompileResource(r, at); ok {
			out = append(out, u)
		}
	}
	return out
}

// CompileResource makes the unit of one resource. False: it is not onboarded, in Observe everywhere, or without class.
// False is no order to remove what is in the members: a resource that lost its class has to stay as closed as it was.
func (s *Snapshot) CompileResource(resource string, at time.Time) (Unit, bool) {
	p := s.protected[resource]
	c, ok := s.resources.of(resource)
	if p == nil || !ok {
		return Unit{}, false
	}
	value, err := labelValue(c.stem, resource)
	if err != nil {
		return Unit{}, false // such a resource is not protectable, so not in s.protected
	}
	spec := &c.object.Spec
	u := Unit{
		ID: UnitID(resource), Resource: resource, Class: c.object.Name,
		LabelKey: string(spec.LabelKey), LabelValue: value,
		Mode:       p.mode("", at),
		OtherPorts: v1alpha1.OtherPortsDeny,
		Placement:  *spec.Placement.DeepCopy(),
		Enforcers:  slices.Sorted(slices.Values(spec.Enforcers)),
	}
	strictest := u.Mode
	for cluster := range p.clusters() {
		mode := p.mode(cluster, at)
		strictest = stricter(strictest, mode)
		if mode != u.Mode {
			if u.ClusterModes == nil {
				u.ClusterModes = map[string]v1alpha1.Mode{}
			}
			u.ClusterModes[cluster] = mode
		}
	}
	if strictest == v1alpha1.ModeObserve {
		return Unit{}, false
	}
	if len(u.Enforcers) == 0 {
		u.Enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}
	}
	s.openOtherPorts(&u, c)
	held, refused := s.held(resource, c, at)
	u.Refused = refused
	u.Rules = rulesOf(s, c, held)
	for _, r := range u.Rules {
		u.From = append(u.From, r.From...)
	}
	u.From = sortedRefs(u.From)
	if slices.ContainsFunc(u.Enforcers, func(e v1alpha1.EnforcerName) bool { return e != v1alpha1.EnforcerCilium }) {
		u = s.WithStatements(u, at)
	}
	return u, true
}

// openOtherPorts fills in the ports for everyone. A class that shares its label key with another one opens none: all of
// its workloads carry the other class's label.
func (s *Snapshot) openOtherPorts(u *Unit, c *resourceClass) {
	if !c.opensOtherPorts {
		return
	}
	u.OtherPorts = v1alpha1.OtherPortsAllow
	for _, other := range s.resources.all {
		if other != c {
			u.ForeignKeys = append(u.ForeignKeys, string(other.object.Spec.LabelKey))
		}
	}
	u.ForeignKeys = sortedUnique(u.ForeignKeys)
	if slices.Contains(u.ForeignKeys, u.LabelKey) {
		return
	}
	var taken []v1alpha1.Port
	for i := range c.actions {
		taken = append(taken, c.actions[i].ports...)
	}
	u.OpenPorts = otherPorts(taken)
}

// held are the statements in force that make up the unit, and the refusals of those that should but cannot.
func (s *Snapshot) held(resource string, c *resourceClass, at time.Time) (held []*statement, refused []Refusal) {
	overriders := s.overriders(resource, c, at)
	for _, st := range s.about(resource) {
		switch {
		case !st.inForce(at):
		case st.refused():
			refused = append(refused, st.refusals(resource)...)
		default:
			if deny := s.overriderOf(st, c, overriders); deny != nil {
				refused = append(refused, Refusal{Ref: st.ref, Resource: resource, Reason: v1alpha1.RefusedShadowingDeny,
					Message: fmt.Sprintf("left out because the deny %s is refused and could have overridden it: correct or remove that deny", deny.ref)})
				continue
			}
			held = append(held, st)
		}
	}
	slices.SortFunc(refused, compareRefusals)
	return held, refused
}

// overriderOf is the first refused deny that could have overridden an allow, or nil.
func (s *Snapshot) overriderOf(allow *statement, c *resourceClass, overriders map[*statement][]v1alpha1.Port) *statement {
	var first *statement
	if allow.effect == Deny {
		return nil
	}
	for deny, ports := range overriders {
		if portsOverlap(ports, c.portsOf(allow)) && s.mayShareAPod(deny, allow) &&
			(first == nil || compareRefs(deny.ref, first.ref) < 0) {
			first = deny
		}
	}
	return first
}

// about are the statements that cover the resource: by its exact name, and the denies by a wildcard. A wildcard allow
// belongs to the unit of its wildcard. Each once, by ref.
func (s *Snapshot) about(resource string) []*statement {
	seen := map[*statement]bool{}
	if found := s.exact[resource]; found != nil {
		found.all(func(st *statement) { seen[st] = true })
	}
	for _, w := range s.wild[headOf(resource)] {
		if strings.HasPrefix(resource, w.stem) {
			w.all(func(st *statement) {
				if st.effect == Deny {
					seen[st] = true
				}
			})
		}
	}
	out := make([]*statement, 0, len(seen))
	for st := range seen {
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b *statement) int { return compareRefs(a.ref, b.ref) })
	return out
}

// rulesOf turns statements into rules: one per effect and action, those of the same peers joined.
func rulesOf(s *Snapshot, c *resourceClass, held []*statement) []Rule {
	byPeers := map[string]*Rule{}
	for _, effect := range []Effect{Allow, Deny} {
		for i := range c.actions {
			a := &c.actions[i]
			var names []string
			var from []Ref
			for _, st := range held {
				if st.effect == effect && st.hasAction(a.name) {
					names = append(names, st.subjects.exact...)
					from = append(from, st.ref)
				}
			}
			if len(names) == 0 {
				continue
			}
			names = sortedUnique(names)
			key := string(effect) + "\x00" + strings.Join(names, "\x00")
			if len(a.http) > 0 {
				key += "\x00http " + a.name // its ports must not get the requests of another action
			}
			r := byPeers[key]
			if r == nil {
				r = &Rule{Effect: effect, Subjects: s.selectors(names), HTTP: slices.Clone(a.http)}
				byPeers[key] = r
			}
			r.Ports = append(r.Ports, a.ports...)
			r.From = append(r.From, from...)
		}
	}
	var out []Rule
	for _, key := range sortedKeys(byPeers) {
		r := byPeers[key]
		r.Ports, r.From = sortPorts(r.Ports), sortedRefs(r.From)
		out = append(out, *r)
	}
	slices.SortStableFunc(out, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Effect, b.Effect), slices.CompareFunc(a.Ports, b.Ports, comparePorts), cmp.Compare(len(a.HTTP), len(b.HTTP)))
	})
	return out
}

// selectors groups exact subject names by the label that carries them. Every name has a class and a legal value, or
// its statement would have been refused.
func (s *Snapshot) selectors(names []string) []SubjectSelector {
	values := map[string][]string{}
	for _, n := range names {
		if c, ok := s.subjects.of(n); ok {
			key := string(c.object.Spec.LabelKey)
			values[key] = append(values[key], strings.TrimPrefix(n, c.stem))
		}
	}
	var out []SubjectSelector
	for _, key := range sortedKeys(values) {
		out = append(out, SubjectSelector{LabelKey: key, Values: sortedUnique(values[key])})
	}
	return out
}
