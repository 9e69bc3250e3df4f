package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Compile returns the units of all resources that are in Audit or Enforce in some member, and of all wildcards that an
// allow names, by resource name.
func (s *Snapshot) Compile(at time.Time) []Unit {
	names := make([]string, 0, len(s.protected)+len(s.wildUnits))
	for r := range s.protected {
		names = append(names, r)
	}
	for w := range s.wildUnits {
		names = append(names, w)
	}
	slices.Sort(names)
	out := make([]Unit, 0, len(names))
	for _, r := range names {
		if u, ok := s.CompileResource(r, at); ok {
			out = append(out, u)
		}
	}
	return out
}

// CompileResource returns the unit of one resource, or of one wildcard as written in Unit.Resource. It returns false if
// the resource is not onboarded, in Observe everywhere, or without class; or if no allow names the wildcard, or no
// known name is covered by it. False must not be taken as a reason to remove objects from the members: a resource that
// lost its class has to stay closed.
func (s *Snapshot) CompileResource(resource string, at time.Time) (Unit, bool) {
	if strings.HasSuffix(resource, "*") {
		u, ok := s.wildcardUnit(resource, at)
		if !ok {
			return Unit{}, false
		}
		out := *u
		out.Rules, out.Placement = slices.Clone(u.Rules), *u.Placement.DeepCopy()
		return out, true
	}
	p := s.protected[resource]
	c, ok := s.resources.of(resource)
	if p == nil || !ok {
		return Unit{}, false
	}
	value, err := labelValue(c.stem, resource)
	if err != nil {
		return Unit{}, false // such a resource is not protectable, so it is not in s.protected
	}
	u := newUnit(resource, c)
	u.LabelValue, u.Mode = value, p.mode("", at)
	strictest := u.Mode
	for _, name := range p.named() {
		cluster := string(name)
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
	s.openOtherPorts(&u, c, at)
	s.fill(&u, c, s.statementsFor(resource), s.overriders(resource, "", c, at, nil), at, nil)
	if slices.ContainsFunc(u.Enforcers, func(e v1alpha1.EnforcerName) bool { return e != v1alpha1.EnforcerCilium }) {
		u = s.WithStatements(u, at)
	}
	return u, true
}

// newUnit returns a unit with the properties of the class.
func newUnit(resource string, c *resourceClass) Unit {
	spec := &c.object.Spec
	u := Unit{ID: UnitID(resource), Resource: resource, Class: c.object.Name, LabelKey: string(spec.LabelKey),
		OtherPorts: v1alpha1.OtherPortsDeny, Placement: *spec.Placement.DeepCopy(), Enforcers: slices.Sorted(slices.Values(spec.Enforcers))}
	if len(u.Enforcers) == 0 {
		u.Enforcers = []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium}
	}
	return u
}

// fill adds the statements to the unit that are in force, can be pushed and fit, as if the supposed resources were in
// Enforce.
func (s *Snapshot) fill(u *Unit, c *resourceClass, about []*statement, overriders map[*statement][]v1alpha1.Port, at time.Time, supposed []string) {
	held, refused := s.selectStatements(u.Resource, c, about, overriders, at)
	u.Rules = s.rulesOf(c, held)
	var inherited int
	if !u.Wildcard {
		u.Inherited, inherited = s.inherited(u.Resource, c, at, supposed)
	}
	if c.byCilium() {
		refused = append(refused, s.fit(u, c, held, inherited)...)
	}
	if u.OtherPortsRefusal != nil {
		refused = append(refused, *u.OtherPortsRefusal)
	}
	slices.SortFunc(refused, compareRefusals)
	u.Refused = refused
	for i := range u.Rules {
		u.From = append(u.From, u.Rules[i].From...)
	}
	u.From = sortedRefs(u.From)
}

// openOtherPorts sets the ports that are open for every source. A class that shares its label key with another class
// opens none, because all of its workloads carry the other class's label. While a deny may have meant one of these ports, none is open.
func (s *Snapshot) openOtherPorts(u *Unit, c *resourceClass, at time.Time) {
	if !c.opensOtherPorts {
		return
	}
	if u.OtherPortsRefusal = s.closesOtherPorts(u.Resource, at); u.OtherPortsRefusal != nil {
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

// selectStatements returns the statements in force that make up the unit, and the refusals of statements that cannot be
// part of it. A statement that only Cilium cannot express is part of a unit that Cilium does not enforce.
func (s *Snapshot) selectStatements(
	resource string,
	c *resourceClass,
	about []*statement,
	overriders map[*statement][]v1alpha1.Port,
	at time.Time,
) (selectStatements []*statement, refused []Refusal) {
	for _, st := range about {
		switch {
		case !st.inForce(at):
		case st.flawed() || st.refused() && c.byCilium():
			refused = append(refused, st.refusals(resource)...)
		default:
			if deny := s.overriderOf(st, c, overriders); deny != nil {
				refused = append(refused, Refusal{Ref: st.ref, Resource: resource, Reason: v1alpha1.RefusedShadowingDeny,
					Message: message.RefusalShadowingDeny(deny.ref.String())})
				continue
			}
			selectStatements = append(selectStatements, st)
		}
	}
	return selectStatements, refused
}

// overriderOf returns the first refused deny that could have overridden an allow, or nil.
func (s *Snapshot) overriderOf(allow *statement, c *resourceClass, overriders map[*statement][]v1alpha1.Port) *statement {
	var first *statement
	if allow.effect == Deny || len(overriders) == 0 {
		return nil
	}
	for deny, ports := range overriders {
		if portsOverlap(ports, c.portsOf(allow)) && s.mayShareSource(deny, allow) &&
			(first == nil || deny.ref.Compare(first.ref) < 0) {
			first = deny
		}
	}
	return first
}

// statementsFor returns the statements that cover the resource: all that name it exactly, and the denies by a wildcard.
// An allow by a wildcard belongs to the unit of its wildcard. The result has no duplicates and is ordered by ref.
func (s *Snapshot) statementsFor(resource string) []*statement {
	numbers := s.numbersAbout(resource, func(st *statement) bool { return st.effect == Deny })
	out := make([]*statement, len(numbers))
	for i, n := range numbers {
		out[i] = s.statements[n]
	}
	return out
}
