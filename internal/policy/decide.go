package policy

import (
	"net/netip"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Sentences for Decision.Reason, one for each way to a word.
const (
	reasonDenied             = "a deny matches, and its resource is enforced"
	reasonAllowed            = "an allow matches"
	reasonOtherPort          = "the resource's class opens the ports that none of its actions names"
	reasonDefaultDenied      = "nothing allows it, and the resource is enforced"
	reasonAuditDenied        = "let through because of Audit: in Enforce, a deny would refuse it"
	reasonAuditDefaultDenied = "let through because of Audit: in Enforce, nothing would allow it"
	reasonUnmanaged          = "no resource is in Audit or Enforce"
)

// Decide says what the statements mean for one connection or request. It does not ask whether an enforcer can express
// them: see Refusals and Unit.Refused for what is not pushed.
func (s *Snapshot) Decide(q Query) Decision {
	v := verdict{q: &q, source: s.sourceOf(&q)}
	for _, r := range q.Resources {
		mode := s.EffectiveMode(r, q.Cluster, q.At)
		v.enforce = v.enforce || mode == v1alpha1.ModeEnforce
		v.audit = v.audit || mode == v1alpha1.ModeAudit
		c, ok := s.resources.of(r)
		if !ok {
			continue // without a class it has no actions, so no statement matches
		}
		v.visit(s, r, c, mode)
	}
	return v.decision(s.otherPortOpen(&q))
}

// source is who a query comes from.
type source struct {
	names []string
	// contested are names that only denies may use.
	contested []string
	address   netip.Addr
}

func (s *Snapshot) sourceOf(q *Query) source {
	src := source{names: q.Subjects, address: plain(q.Source)}
	switch owners := s.external.lookup(src.address); len(owners) {
	case 0:
	case 1:
		src.names = append(src.names[:len(src.names):len(src.names)], owners[0])
	default:
		src.contested = owners
	}
	return src
}

func (src *source) isOneOf(subjects *subjectSet, effect Effect) bool {
	if subjects.any || subjects.hasAddress(src.address) {
		return true
	}
	for _, n := range src.names {
		if subjects.hasName(n) {
			return true
		}
	}
	if effect == Deny {
		for _, n := range src.contested {
			if subjects.hasName(n) {
				return true
			}
		}
	}
	return false
}

// verdict gathers what matches.
type verdict struct {
	q      *Query
	source source

	enforce, audit bool
	// denies on enforced resources, denies on audited ones, and allows that count.
	denies, auditDenies, allows []Ref
}

// visit looks at the statements about one resource.
func (v *verdict) visit(s *Snapshot, resource string, c *resourceClass, mode v1alpha1.Mode) {
	var buf [2][8]string
	allowed, denied := buf[0][:0], buf[1][:0]
	for i := range c.actions {
		if a := &c.actions[i]; a.matches(v.q, Allow) {
			allowed = append(allowed, a.name)
			if a.matches(v.q, Deny) {
				denied = append(denied, a.name)
			}
		}
	}
	if len(allowed) == 0 {
		return
	}
	look := func(found *candidates, byWildcard bool) {
		found.each(&v.source, func(st *statement) {
			actions := allowed
			if st.effect == Deny {
				actions = denied
			}
			for _, a := range actions {
				if st.hasAction(a) && st.inForce(v.q.At) && v.source.isOneOf(&st.subjects, st.effect) {
					v.count(st, mode, byWildcard)
					return
				}
			}
		})
	}
	if found := s.exact[resource]; found != nil {
		look(found, false)
	}
	list := s.wild[headOf(resource)]
	for i := range list {
		if strings.HasPrefix(resource, list[i].stem) {
			look(&list[i].candidates, true)
		}
	}
}

// each calls f for every statement that may be about the source, possibly more than once.
func (c *candidates) each(src *source, f func(*statement)) {
	if len(c.bySubject) > 0 {
		for _, names := range [2][]string{src.names, src.contested} {
			for _, n := range names {
				for _, st := range c.bySubject[n] {
					f(st)
				}
			}
		}
	}
	for _, st := range c.broad {
		f(st)
	}
}

// count keeps a matching statement where it counts.
func (v *verdict) count(st *statement, mode v1alpha1.Mode, byWildcard bool) {
	switch {
	case st.effect == Deny && mode == v1alpha1.ModeEnforce:
		v.denies = append(v.denies, st.ref)
	case st.effect == Deny && mode == v1alpha1.ModeAudit:
		v.auditDenies = append(v.auditDenies, st.ref)
	case st.effect == Allow && (byWildcard || mode != v1alpha1.ModeObserve):
		v.allows = append(v.allows, st.ref)
	}
}

// decision weighs what was found. A deny that only Audit keeps from counting makes the connection audited even when an
// allow lets it through now: it is what would break on the way to Enforce.
func (v *verdict) decision(otherPortOpen bool) Decision {
	switch {
	case len(v.denies) > 0:
		return Decision{Word: Denied, Reason: reasonDenied, Statements: sortedRefs(v.denies)}
	case len(v.allows) > 0 && len(v.auditDenies) > 0:
		return Decision{Word: Audited, Reason: reasonAuditDenied, Statements: sortedRefs(v.auditDenies)}
	case len(v.allows) > 0:
		return Decision{Word: Allowed, Reason: reasonAllowed, Statements: sortedRefs(v.allows)}
	case !v.enforce && !v.audit:
		return Decision{Word: Unmanaged, Reason: reasonUnmanaged}
	case otherPortOpen:
		return Decision{Word: Allowed, Reason: reasonOtherPort}
	case v.enforce:
		return Decision{Word: DefaultDenied, Reason: reasonDefaultDenied}
	case len(v.auditDenies) > 0:
		return Decision{Word: Audited, Reason: reasonAuditDenied, Statements: sortedRefs(v.auditDenies)}
	default:
		return Decision{Word: Audited, Reason: reasonAuditDefaultDenied}
	}
}

// otherPortOpen tells whether the destination's only class opens the port for everyone.
func (s *Snapshot) otherPortOpen(q *Query) bool {
	var only *resourceClass
	for _, r := range q.Resources {
		c, ok := s.resources.of(r)
		if !ok || only != nil && only != c {
			return false
		}
		only = c
	}
	return only != nil && only.opensOtherPorts && only.portInNoAction(q.Protocol, q.Port)
}
