package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// refusedDeny is a deny that is not compiled. Every allow that it could have overridden must be left out with it, or
// the refusal would open a resource.
type refusedDeny struct {
	*statement
	// enforced are the resources in Enforce that the deny covers. A pod may carry the labels of several classes, so the
	// deny could also override allows of resources of other classes.
	enforced []classed
	// unclassed reports whether the deny covers a resource in Enforce whose class is missing, so that neither the pods nor
	// the ports that it meant are known.
	unclassed bool
}

// classed is a resource with its class.
type classed struct {
	resource string
	class    *resourceClass
}

func (s *Snapshot) newRefusedDeny(st *statement) refusedDeny {
	d := refusedDeny{statement: st}
	d.unclassed = slices.ContainsFunc(s.unclassed, st.isAbout)
	add := func(resource string) {
		p := s.protected[resource]
		if c, ok := s.resources.of(resource); ok && p != nil && p.everEnforced() {
			d.enforced = append(d.enforced, classed{resource, c})
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
	}
	return d
}

// everEnforced reports whether the resource is in Enforce in some member once temporary audits are over.
func (p *protection) everEnforced() bool {
	return slices.ContainsFunc(p.objects, func(o *v1alpha1.ProtectedResource) bool { return everEnforced(&o.Spec) })
}

func (st *statement) coversByWildcard(resource string) bool {
	return slices.ContainsFunc(st.wild, func(stem string) bool { return strings.HasPrefix(resource, stem) })
}

func (st *statement) isAbout(resource string) bool {
	_, exact := slices.BinarySearch(st.exact, resource)
	return exact || st.coversByWildcard(resource)
}

// overriders returns the refused denies in force that may concern the pods of a resource, each with the ports that it
// may have meant there. For a wildcard it returns those that concern any of its pods; stem is then the wildcard's stem.
// The supposed resources are treated as in Enforce. A deny that only Cilium refuses does not concern the classes that other
// enforcers alone enforce.
func (s *Snapshot) overriders(resource, stem string, c *resourceClass, at time.Time, supposed []string) map[*statement][]v1alpha1.Port {
	out := map[*statement][]v1alpha1.Port{}
	for _, d := range s.refusedDenies {
		if !d.inForce(at) {
			continue
		}
		concerns := func(other *resourceClass) bool { return d.flawed() || c.byCilium() && other.byCilium() }
		if stem == "" && d.isAbout(resource) && concerns(c) {
			out[d.statement] = append(out[d.statement], c.portsOf(d.statement)...)
		}
		if d.unclassed {
			out[d.statement] = append(out[d.statement], c.allPorts()...)
		}
		var seen []*resourceClass
		for _, e := range d.enforcedIf(s, supposed) {
			if slices.Contains(seen, e.class) || !concerns(e.class) || e.class == c && (stem == "" || !strings.HasPrefix(e.resource, stem)) {
				continue
			}
			seen = append(seen, e.class)
			out[d.statement] = append(out[d.statement], e.class.portsOf(d.statement)...)
		}
	}
	return out
}

// closesOtherPorts returns the reason why ports without an action may not be open on a resource: a deny in force whose ports are not known,
// for example because its action was removed from the class, may have meant any of them. It returns nil if there is no such deny.
func (s *Snapshot) closesOtherPorts(resource string, at time.Time) *Refusal {
	for _, d := range s.refusedDenies {
		if !d.inForce(at) {
			continue
		}
		switch {
		case d.unclassed:
			return &Refusal{Ref: d.ref, Reason: v1alpha1.RefusedUnknownResource, Resource: resource, Message: message.UnitOtherPortsUnclassed(d.ref.String())}
		case d.unresolvedAction && d.isAbout(resource):
			return &Refusal{Ref: d.ref, Reason: v1alpha1.RefusedUnknownAction, Resource: resource, Message: message.UnitOtherPortsUnknown(d.ref.String())}
		}
	}
	return nil
}

// enforcedIf returns the resources in Enforce that the deny covers, including the supposed ones.
func (d *refusedDeny) enforcedIf(s *Snapshot, supposed []string) []classed {
	out := d.enforced[:len(d.enforced):len(d.enforced)]
	for _, r := range supposed {
		if c, ok := s.resources.of(r); ok && d.isAbout(r) {
			out = append(out, classed{r, c})
		}
	}
	return out
}

// portsOf returns the ports that a statement names on the class. An unresolved action may have meant any port.
func (c *resourceClass) portsOf(st *statement) []v1alpha1.Port {
	var out []v1alpha1.Port
	for i := range c.actions {
		if st.unresolvedAction || st.hasAction(c.actions[i].name) {
			out = append(out, c.actions[i].ports...)
		}
	}
	return out
}

// allPorts returns the ports of every action.
func (c *resourceClass) allPorts() []v1alpha1.Port {
	var out []v1alpha1.Port
	for i := range c.actions {
		out = append(out, c.actions[i].ports...)
	}
	return out
}

// mayShareSource reports whether a source exists that both a deny and an allow may match.
func (s *Snapshot) mayShareSource(deny, allow *statement) bool {
	d, a := &deny.subjects, &allow.subjects
	if deny.unresolvedSubject || d.any || a.any {
		return true
	}
	denied := s.podLabels(d)
	for _, x := range s.podLabels(a) {
		if slices.ContainsFunc(denied, x.canShareAPodWith) {
			return true
		}
	}
	for _, p := range a.prefixes {
		if slices.ContainsFunc(d.prefixes, p.Overlaps) {
			return true
		}
	}
	// An address outside the fleet also has the name of its workload.
	return len(a.prefixes) > 0 && slices.ContainsFunc(s.external.subjects, d.hasName) ||
		len(d.prefixes) > 0 && slices.ContainsFunc(s.external.subjects, a.hasName)
}

// podLabels returns the labels by which pods carry the names of a set.
func (s *Snapshot) podLabels(set *subjectSet) []podLabel {
	var out []podLabel
	for _, n := range set.exact {
		if c, ok := s.subjects.of(n); ok {
			out = append(out, podLabelOf(c, n, false))
		}
	}
	for _, stem := range set.stems {
		if n, err := ParseName(stem + "*"); err == nil {
			for _, c := range s.subjects.overlapping(n) {
				out = append(out, podLabelOf(c, stem, true))
			}
		}
	}
	return out
}

// podLabel is the label by which pods carry a name, or any name with a prefix.
type podLabel struct {
	key, value string
	prefix     bool
}

// podLabelOf returns the label of a name, or of the stem of a wildcard, which may be wider than the class.
func podLabelOf(c *subjectClass, name string, prefix bool) podLabel {
	value, _ := strings.CutPrefix(name, c.stem)
	if len(name) < len(c.stem) {
		value = ""
	}
	return podLabel{key: string(c.object.Spec.LabelKey), value: value, prefix: prefix}
}

// canShareAPodWith reports whether one pod can carry both labels: always if the keys differ, and for the same key if
// one value covers the other.
func (x podLabel) canShareAPodWith(o podLabel) bool {
	return x.key != o.key || x.value == o.value || o.prefix && strings.HasPrefix(x.value, o.value) ||
		x.prefix && strings.HasPrefix(o.value, x.value)
}
