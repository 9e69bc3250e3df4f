package policy

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Translator determines what an enforcer other than Cilium leaves out of the units in the members. This package does not
// import enforcers; registry.FleetOf adds the translators of the built-in ones to the input.
type Translator interface {
	// Prepare returns the translation for the members of a fleet. denying are units that together contain every deny in
	// effect of the enforcer's classes, because a deny that is left out of one unit may concern the allows of another.
	Prepare(fleet []Cluster, denying []Unit) Translation
	// Enforces reports whether the enforcer refuses connections of a protocol at all.
	Enforces(protocol v1alpha1.Protocol) bool
}

// Translation is a Translator that is prepared for a fleet. It is safe for concurrent use.
type Translation interface {
	// Profile returns a text that is the same for members in which the same is left out of every unit. The member ""
	// stands for members that are not in the fleet.
	Profile(member string) string
	// Limits returns what is left out of a unit, which must have its Statements, in a member.
	Limits(u *Unit, member string) UnitLimits
}

// UnitLimits describes what an enforcer leaves out of a unit in a member.
type UnitLimits struct {
	// Refused are the statements that are left out as a whole.
	Refused []Refusal
	// Narrowed are the statements of which only addresses are left out.
	Narrowed map[Ref]NarrowedStatement
	// OtherPorts is the reason why the ports of no action stay closed although the class opens them; nil if they do not.
	OtherPorts *Refusal
}

// NarrowedStatement is a statement of which some addresses are left out.
type NarrowedStatement struct {
	Refusal Refusal
	// Kept are the address ranges that are not left out.
	Kept []AddressRange
}

// contains reports whether an address is in the range.
func (r *AddressRange) contains(a netip.Addr) bool {
	return r.Prefix.Contains(a) && !slices.ContainsFunc(r.Except, func(x netip.Prefix) bool { return x.Contains(a) })
}

// LeftOutOtherEnforcer is the reason for an allow that does not count because it is about resources that another
// enforcer closes. It is not a reason of the API, because the statement itself is pushed.
const LeftOutOtherEnforcer = "OtherEnforcer"

// setTranslators determines the enforcers of each class that have a translator.
func (s *Snapshot) setTranslators(translators map[v1alpha1.EnforcerName]Translator) {
	s.translators = translators
	for _, c := range s.resources.all {
		for _, name := range c.object.Spec.Enforcers {
			if name != v1alpha1.EnforcerCilium && translators[name] != nil {
				c.others = append(c.others, name)
			}
		}
		slices.Sort(c.others)
		c.others = slices.Compact(c.others)
		s.hasOthers = s.hasOthers || len(c.others) > 0
	}
}

// isEnforcedBy reports whether decisions about what the members have evaluate the class for an enforcer. A class whose
// enforcers have no translator is evaluated for Cilium.
func (c *resourceClass) isEnforcedBy(name v1alpha1.EnforcerName) bool {
	if name == v1alpha1.EnforcerCilium {
		return c.byCilium() || len(c.others) == 0
	}
	return slices.Contains(c.others, name)
}

// hasOtherEnforcers reports whether an enforcer other than Cilium enforces one of the resources.
func (s *Snapshot) hasOtherEnforcers(resources []string) bool {
	return s.hasOthers && slices.ContainsFunc(resources, func(r string) bool {
		c, ok := s.resources.of(r)
		return ok && len(c.others) > 0
	})
}

// EnforcersOf returns the enforcers of the resources, sorted, so that Cilium is first.
func (s *Snapshot) EnforcersOf(resources []string) []v1alpha1.EnforcerName {
	var out []v1alpha1.EnforcerName
	for _, r := range resources {
		c, ok := s.resources.of(r)
		if !ok || c.isEnforcedBy(v1alpha1.EnforcerCilium) {
			out = append(out, v1alpha1.EnforcerCilium)
		}
		if ok {
			out = append(out, c.others...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// enforcedBy returns the resources that an enforcer enforces. Resources in no class belong to Cilium.
func (s *Snapshot) enforcedBy(resources []string, name v1alpha1.EnforcerName) []string {
	var out []string
	for _, r := range resources {
		if c, ok := s.resources.of(r); ok && c.isEnforcedBy(name) || !ok && name == v1alpha1.EnforcerCilium {
			out = append(out, r)
		}
	}
	return out
}

// severities order the verdicts of several enforcers: a connection has to be let through by each.
var severities = map[Verdict]int{Unmanaged: 0, Allowed: 1, Audited: 2, DefaultDenied: 3, Denied: 4}

// decideByEnforcers decides for each enforcer of the resources by what the members have of it, and returns the strictest
// decision with its view, and the verdict of Cilium alone. If supposed is true, the resources of the query are treated as
// in Enforce.
func (s *Snapshot) decideByEnforcers(q *Query, written []Ref, supposed bool) (strictest Decision, cilium Verdict, by effectiveView) {
	cilium = Unmanaged
	for i, name := range s.EnforcersOf(q.Resources) {
		part := *q
		part.Resources = s.enforcedBy(q.Resources, name)
		x := effectiveView{s: s, at: q.At, hasOtherClasses: len(part.Resources) < len(q.Resources)}
		if supposed {
			x.supposed = part.Resources
		}
		var d Decision
		if name == v1alpha1.EnforcerCilium {
			d = s.decideByCilium(&part, &x, written)
			cilium = d.Verdict
		} else {
			d = s.decideByOther(name, &part, &x, written)
		}
		if i == 0 || severities[d.Verdict] > severities[strictest.Verdict] {
			strictest, by = d, x
			by.addOtherEnforcer(name, q, &part, written)
		}
	}
	return strictest, cilium, by
}

// decideByCilium decides by what the members have of Cilium.
func (s *Snapshot) decideByCilium(q *Query, x *effectiveView, written []Ref) (d Decision) {
	s.decide(&d, q, nil, x.supposed != nil)
	x.unidentified = s.unidentifiedSubjects(q)
	if x.unidentified != nil || x.hasOtherClasses || s.leavesOut(q, x.supposed) {
		d = Decision{}
		s.decideEffective(&d, q, x, nil)
	}
	s.applyAddressDeny(&d, q, x, written, x.supposed)
	return d
}

// decideByOther decides by what the members have of an enforcer with a translator.
func (s *Snapshot) decideByOther(name v1alpha1.EnforcerName, q *Query, x *effectiveView, written []Ref) (d Decision) {
	x.other = &otherEnforcer{name: name, cluster: q.Cluster, translation: s.translation(name, q.At, x.supposed)}
	s.decideEffective(&d, q, x, nil)
	if q.Protocol == "" || s.translators[name].Enforces(q.Protocol) {
		return d
	}
	if d.Verdict != Unmanaged {
		d = Decision{Verdict: Unmanaged, Reason: ReasonProtocolNotEnforced}
	}
	for _, r := range q.Resources {
		x.begin(r)
		for _, ref := range written {
			if x.other.limits != nil {
				x.leftOut = append(x.leftOut, x.other.limits.refused[ref]...)
			}
		}
	}
	return d
}

// addOtherEnforcer adds the allows that do not count because they are about resources that the enforcer does not
// enforce, unless another reason is known.
func (v *effectiveView) addOtherEnforcer(name v1alpha1.EnforcerName, whole, part *Query, written []Ref) {
	if len(v.leftOut) > 0 || len(part.Resources) == len(whole.Resources) {
		return
	}
	for _, ref := range written {
		v.leftOut = append(v.leftOut, Refusal{Ref: ref, Reason: LeftOutOtherEnforcer,
			Message: message.RefusalOtherEnforcer(string(name), part.Resources)})
	}
}

// otherEnforcer is the enforcer of a view, if it is not Cilium.
type otherEnforcer struct {
	name        v1alpha1.EnforcerName
	cluster     string
	translation *preparedTranslation
	// limits are the limits of the current resource; nil if it has no class.
	limits *enforcerLimits
}

// refusals returns why a statement about the current resource does not match a source in the member; none if it does.
func (o *otherEnforcer) refusals(st *statement, src *source) []Refusal {
	if o.limits == nil {
		return nil
	}
	if refused := o.limits.refused[st.ref]; len(refused) > 0 {
		return refused
	}
	n, ok := o.limits.Narrowed[st.ref]
	if !ok || !src.address.IsValid() || st.subjects.any || slices.ContainsFunc(n.Kept, func(r AddressRange) bool { return r.contains(src.address) }) {
		return nil
	}
	return []Refusal{n.Refusal}
}

// possibleNames returns the names with a prefix that statements are translated for. A program that does not read the
// members' names adds those in statements, because a prefix then stands for every name that it covers.
func (s *Snapshot) possibleNames(stem string) []string {
	known := s.knownUnder(stem)
	if !s.namesUnknown {
		return known
	}
	return sortedUnique(
		slices.Concat(known, slices.DeleteFunc(slices.Clone(s.index.subjects.names), func(n string) bool { return !strings.HasPrefix(n, stem) })),
	)
}

// preparedTranslation is a translation during one epoch.
type preparedTranslation struct {
	Translation
	// typical caches the typical members by class.
	typical sync.Map
	epoch   epoch
	// supposed identifies the resources that are treated as in Enforce.
	supposed string
}

// enforcerLimits are the limits of a unit in members with one profile, during one epoch.
type enforcerLimits struct {
	UnitLimits
	epoch epoch
	// refused contains the statements that are left out as a whole.
	refused map[Ref][]Refusal
}

type translationKey struct {
	enforcer v1alpha1.EnforcerName
	supposed string
}

type limitsKey struct {
	enforcer                    v1alpha1.EnforcerName
	resource, profile, supposed string
	isSupposed                  bool
}

// translation returns the prepared translator of an enforcer, as if the supposed resources were in Enforce.
func (s *Snapshot) translation(name v1alpha1.EnforcerName, at time.Time, supposed []string) *preparedTranslation {
	key, epoch := translationKey{enforcer: name}, s.epoch(at)
	if len(supposed) > 1 { // the denies of a single one concern its own unit, which has them
		key.supposed = strings.Join(supposed, " ")
	} else {
		supposed = nil
	}
	if kept, ok := s.translations.Load(key); ok && kept.(*preparedTranslation).epoch == epoch {
		return kept.(*preparedTranslation)
	}
	t := &preparedTranslation{Translation: s.translators[name].Prepare(s.fleet, s.denyingUnits(name, at, supposed)), epoch: epoch, supposed: key.supposed}
	s.translations.Store(key, t)
	return t
}

// Translator returns the translator of an enforcer, or nil.
func (s *Snapshot) Translator(name v1alpha1.EnforcerName) Translator { return s.translators[name] }

// DenyingUnits returns units of the enforcer's classes, each with one deny in effect: one for each deny and each class
// that has a covered resource in Enforce in some member. Together they have every deny that may concern the allows of
// other units.
func (s *Snapshot) DenyingUnits(name v1alpha1.EnforcerName, at time.Time) []Unit {
	return s.denyingUnits(name, at, nil)
}

// denyingUnits is DenyingUnits as if the supposed resources were in Enforce.
func (s *Snapshot) denyingUnits(name v1alpha1.EnforcerName, at time.Time, supposed []string) []Unit {
	var out []Unit
	for _, st := range s.statements {
		if st.effect != Deny || !st.inForce(at) || st.flawed() {
			continue
		}
		var seen []*resourceClass
		add := func(resource string) {
			c, ok := s.resources.of(resource)
			if !ok || !c.isEnforcedBy(name) || slices.Contains(seen, c) {
				return
			}
			if p := s.protected[resource]; !slices.Contains(supposed, resource) && (p == nil || !p.enforcedSomewhere(at)) {
				return
			}
			seen = append(seen, c)
			if x := s.unitStatement(st, c, s.possibleNames); len(x.Actions) > 0 {
				u := newUnit(resource, c)
				u.Mode, u.Statements = v1alpha1.ModeEnforce, []UnitStatement{x}
				out = append(out, u)
			}
		}
		for _, r := range st.exact {
			add(r)
		}
		if len(st.wild) > 0 {
			for r := range s.protected {
				if st.coversByWildcard(r) {
					add(r)
				}
			}
			for _, r := range supposed {
				if st.coversByWildcard(r) {
					add(r)
				}
			}
		}
	}
	return out
}

// enforcedSomewhere reports whether the resource is in Enforce in some member at an instant.
func (p *protection) enforcedSomewhere(at time.Time) bool {
	if p.mode("", at) == v1alpha1.ModeEnforce {
		return true
	}
	return slices.ContainsFunc(p.named(), func(c v1alpha1.ClusterName) bool { return p.mode(string(c), at) == v1alpha1.ModeEnforce })
}

// limitsOf returns what an enforcer leaves out of a resource's unit in a member; nil for a resource in no class.
func (s *Snapshot) limitsOf(x *effectiveView, resource string) *enforcerLimits {
	c, ok := s.resources.of(resource)
	if !ok {
		return nil
	}
	member := x.other.cluster
	if member == "" {
		member = x.other.translation.typicalMember(s, c)
	}
	key := limitsKey{
		enforcer:   x.other.name,
		resource:   resource,
		profile:    x.other.translation.Profile(member),
		supposed:   x.other.translation.supposed,
		isSupposed: x.supposed != nil,
	}
	if kept, ok := s.limits.Load(key); ok && kept.(*enforcerLimits).epoch == x.other.translation.epoch {
		return kept.(*enforcerLimits)
	}
	u := newUnit(resource, c)
	u.Mode = v1alpha1.ModeEnforce
	s.openOtherPorts(&u, c, x.at)
	u = s.withStatements(u, x.at, x.supposed, s.possibleNames)
	l := &enforcerLimits{UnitLimits: x.other.translation.Limits(&u, member), epoch: x.other.translation.epoch}
	l.refused = byRef(l.Refused)
	for _, st := range s.allStatementsFor(resource) {
		if st.inForce(x.at) && st.flawed() {
			if l.refused == nil {
				l.refused = map[Ref][]Refusal{}
			}
			l.refused[st.ref] = append(l.refused[st.ref], st.refusals(resource)...)
		}
	}
	if _, ok := s.index.resources.find(resource); ok { // other names come from workloads and have no number
		s.limits.Store(key, l)
	}
	return l
}

// typicalMember returns a member in which a class is placed and in which the same is left out as in most of these
// members; "" if no such member is known.
func (t *preparedTranslation) typicalMember(s *Snapshot, c *resourceClass) string {
	if kept, ok := t.typical.Load(c); ok {
		return kept.(string)
	}
	typical, most := "", 0
	count := map[string]int{}
	first := map[string]string{}
	for i := range s.fleet {
		name := s.fleet[i].Name
		if !c.isPlacedIn(s, name) {
			continue
		}
		p := t.Profile(name)
		if count[p]++; count[p] == 1 {
			first[p] = name
		}
		if count[p] > most {
			typical, most = first[p], count[p]
		}
	}
	t.typical.Store(c, typical)
	return typical
}
