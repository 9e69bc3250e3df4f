package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// shortage describes what the units of a resource's workloads lack, during one epoch.
type shortage struct {
	epoch epoch
	any   bool
	// closed reports whether the unit does not open the ports of no action.
	closed bool
	// closedBy is the refused deny that closes these ports; nil if there is another reason.
	closedBy *Refusal
	// refused contains what the resource's own unit lacks, by statement.
	refused map[Ref][]Refusal
	// wildcards contains the shortages of the units of the wildcards that cover the resource, by name.
	wildcards map[string]*wildcardShortage
}

// wildcardShortage describes what the unit of a wildcard lacks for one resource.
type wildcardShortage struct {
	refused map[Ref][]Refusal
	// unknown reports whether the unit does not select the resource because no workload or object has the name of the resource.
	unknown bool
}

// shortageOf returns what the units lack, or would lack if the supposed resources, which include this one, were in
// Enforce. It is computed once per epoch for each resource of the snapshot. It returns nil for a resource without
// class.
func (s *Snapshot) shortageOf(resource string, at time.Time, supposed []string) *shortage {
	kept, key := &s.shortages, resource
	if supposed != nil {
		kept = &s.supposedShortages
		if len(s.refusedDenies) == 0 {
			supposed = []string{resource} // the others make no difference
		} else if len(supposed) > 1 {
			key += " " + strings.Join(supposed, " ")
		}
	}
	epoch := s.epoch(at)
	if found, ok := kept.Load(key); ok && found.(*shortage).epoch == epoch {
		return found.(*shortage)
	}
	c, ok := s.resources.of(resource)
	if !ok {
		return nil
	}
	sh := s.newShortage(resource, c, at, supposed)
	sh.epoch = epoch
	if _, ok := s.index.resources.find(resource); ok { // other names come from workloads and have no number
		kept.Store(key, sh)
	}
	return sh
}

func (s *Snapshot) newShortage(resource string, c *resourceClass, at time.Time, supposed []string) *shortage {
	if s.surelyComplete(resource, c, at) {
		return &shortage{}
	}
	sh := &shortage{wildcards: map[string]*wildcardShortage{}}
	if supposed != nil {
		u := newUnit(resource, c)
		s.openOtherPorts(&u, c, at)
		s.fill(&u, c, s.statementsFor(resource), s.overriders(resource, "", c, at, supposed), at, supposed)
		sh.ofUnit(&u, c)
	} else if u, ok := s.CompileResource(resource, at); ok {
		sh.ofUnit(&u, c)
	}
	sh.any = len(sh.refused) > 0 || sh.closed || s.narrow && !s.namesUnknown && s.isNarrowAbout(resource)
	for _, w := range s.index.wildcards[headOf(resource)] {
		if !strings.HasPrefix(resource, w.stem) {
			continue
		}
		name := longer(w.stem, c.stem) + "*"
		if sh.wildcards[name] == nil {
			sh.wildcards[name] = s.wildcardShortageOf(name, resource, c, at, supposed)
		}
		sh.any = sh.any || sh.wildcards[name].unknown || len(sh.wildcards[name].refused) > 0
	}
	return sh
}

// ofUnit records what the resource's own unit lacks.
func (sh *shortage) ofUnit(u *Unit, c *resourceClass) {
	sh.refused, sh.closed, sh.closedBy = byRef(u.Refused), c.opensOtherPorts && u.OtherPorts != v1alpha1.OtherPortsAllow, u.OtherPortsRefusal
}

// isNarrowAbout reports whether an allow that covers a resource has a prefix as subject that stands for known names
// only.
func (s *Snapshot) isNarrowAbout(resource string) bool {
	numbers := s.numbersAbout(resource, func(st *statement) bool { return st.effect == Allow })
	return slices.ContainsFunc(numbers, func(n uint32) bool { return s.isNarrow(s.statements[n]) })
}

// wildcardShortageOf returns what the unit of a wildcard lacks for a resource. A supposed resource is onboarded, so its
// name is known.
func (s *Snapshot) wildcardShortageOf(name, resource string, c *resourceClass, at time.Time, supposed []string) *wildcardShortage {
	out := &wildcardShortage{unknown: supposed == nil && len(name) > len(c.stem)+1 && !s.isKnown(resource)}
	if u, ok := s.wildcardUnitIf(name, at, supposed); ok {
		out.refused = byRef(u.Refused)
		return out
	}
	// There is no unit: all its statements are refused, or none of its names is known.
	var refused []Refusal
	for _, st := range s.wildUnits[name] {
		if st.inForce(at) {
			refused = append(refused, st.refusals(name)...)
		}
	}
	out.refused = byRef(refused)
	return out
}

// surelyComplete reports whether the units of a resource certainly lack nothing, without compiling its own: no refusal
// concerns it, and its exact subjects are so few that they fit regardless of how their rules are joined. This is the
// case for nearly all resources.
func (s *Snapshot) surelyComplete(resource string, c *resourceClass, at time.Time) bool {
	if len(s.refusedDenies) > 0 || s.unsupported != (Unsupported{}) || c.opensOtherPorts || len(c.capacities) > 1 {
		return false
	}
	in := &c.capacities[0]
	room := in.maps[0].limit()
	for _, w := range s.index.wildcards[headOf(resource)] {
		if !strings.HasPrefix(resource, w.stem) {
			continue
		}
		name := longer(w.stem, c.stem) + "*"
		if s.wildUnits[name] == nil {
			continue // no allow names it
		}
		u, ok := s.wildcardUnit(name, at)
		if !ok || len(u.Refused) > 0 || len(u.LabelValues) > 0 && !s.isKnown(resource) || slices.ContainsFunc(u.Rules, hasAddresses) {
			return false
		}
		room -= u.Entries
	}
	for _, i := range s.numbersAbout(resource, func(*statement) bool { return true }) {
		st := s.statements[i]
		if st.refused() || s.narrow && !s.namesUnknown && s.isNarrow(st) {
			return false
		}
		if st.effect == Allow && !slices.Contains(st.exact, resource) {
			continue // the allow is in the unit of its wildcard
		}
		if !st.subjects.simple() {
			return false
		}
		for _, name := range st.subjects.exact {
			if _, outside := slices.BinarySearch(s.external.subjects, name); outside {
				return false
			}
		}
		if room -= in.atMost(len(st.subjects.exact)) * c.masked; room < 0 {
			return false
		}
	}
	return room >= 0
}

func byRef(refused []Refusal) map[Ref][]Refusal {
	if len(refused) == 0 {
		return nil
	}
	out := make(map[Ref][]Refusal, len(refused))
	for _, r := range refused {
		out[r.Ref] = append(out[r.Ref], r)
	}
	return out
}
