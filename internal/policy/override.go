package policy

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// refusedDeny is a deny that is not compiled. Every allow that it could have overridden has to go with it, or the
// refusal would open something.
type refusedDeny struct {
	*statement
	// enforced are the classes of the resources in Enforce that it is about. A pod may carry the labels of several
	// classes, so the deny could also override the allows of resources of other classes.
	enforced []*resourceClass
}

func (s *Snapshot) newRefusedDeny(st *statement) refusedDeny {
	d := refusedDeny{statement: st}
	add := func(resource string) {
		p := s.protected[resource]
		c, ok := s.resources.of(resource)
		if ok && p != nil && p.everEnforced() && !slices.Contains(d.enforced, c) {
			d.enforced = append(d.enforced, c)
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

// everEnforced tells whether the resource is in Enforce somewhere once temporary audits are over.
func (p *protection) everEnforced() bool {
	for _, o := range p.objects {
		if o.Spec.Mode == v1alpha1.ModeEnforce {
			return true
		}
		for _, m := range o.Spec.ClusterModes {
			if m.Mode == v1alpha1.ModeEnforce {
				return true
			}
		}
	}
	return false
}

func (st *statement) coversByWildcard(resource string) bool {
	return slices.ContainsFunc(st.wild, func(stem string) bool { return strings.HasPrefix(resource, stem) })
}

func (st *statement) isAbout(resource string) bool {
	_, exact := slices.BinarySearch(st.exact, resource)
	return exact || st.coversByWildcard(resource)
}

// overriders are the refused denies in force that may concern the pods of a resource, each with the ports that it may
// have meant there.
func (s *Snapshot) overriders(resource string, c *resourceClass, at time.Time) map[*statement][]v1alpha1.Port {
	out := map[*statement][]v1alpha1.Port{}
	for _, d := range s.refusedDenies {
		if !d.inForce(at) {
			continue
		}
		if d.isAbout(resource) {
			out[d.statement] = append(out[d.statement], c.portsOf(d.statement)...)
		}
		for _, other := range d.enforced {
			if other != c {
				out[d.statement] = append(out[d.statement], other.portsOf(d.statement)...)
			}
		}
	}
	return out
}

// portsOf are the ports that a statement names on the class. An action that cannot be understood may have meant any.
func (c *resourceClass) portsOf(st *statement) []v1alpha1.Port {
	var out []v1alpha1.Port
	for i := range c.actions {
		if st.vagueAction || st.hasAction(c.actions[i].name) {
			out = append(out, c.actions[i].ports...)
		}
	}
	return out
}

// mayShareAPod tells whether a pod can be both a subject of the deny and one of the allow. Only allows of exact names
// are compiled, and address ranges never match pods, so a range shares none.
func (s *Snapshot) mayShareAPod(deny, allow *statement) bool {
	if deny.vagueSubject || deny.subjects.any {
		return true
	}
	var denied []carrier
	for _, n := range deny.subjects.exact {
		if c, ok := s.subjects.of(n); ok {
			denied = append(denied, carrierOf(c, n, false))
		}
	}
	for _, stem := range deny.subjects.stems {
		if n, err := ParseName(stem + "*"); err == nil {
			for _, c := range s.subjects.overlapping(n) {
				denied = append(denied, carrierOf(c, stem, true))
			}
		}
	}
	for _, n := range allow.subjects.exact {
		if c, ok := s.subjects.of(n); ok && slices.ContainsFunc(denied, carrierOf(c, n, false).isOnAPodWith) {
			return true
		}
	}
	return false
}

// carrier is the label by which pods carry a name, or any name with a prefix.
type carrier struct {
	key, value string
	prefix     bool
}

// carrierOf a name, or of the stem of a wildcard, which may be wider than the class.
func carrierOf(c *subjectClass, name string, prefix bool) carrier {
	value, _ := strings.CutPrefix(name, c.stem)
	if len(name) < len(c.stem) {
		value = ""
	}
	return carrier{key: string(c.object.Spec.LabelKey), value: value, prefix: prefix}
}

// isOnAPodWith tells whether one pod can carry the exact name and o: always under different labels, and under the same
// label if the value is the same.
func (x carrier) isOnAPodWith(o carrier) bool {
	return x.key != o.key || x.value == o.value || o.prefix && strings.HasPrefix(x.value, o.value)
}
