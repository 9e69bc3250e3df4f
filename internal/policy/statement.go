package policy

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// statement is a parsed statement. Decisions use its well-formed parts; a statement with flaws is not compiled.
type statement struct {
	ref     Ref
	effect  Effect
	written *v1alpha1.Statement
	policy  *v1alpha1.AccessControlPolicy

	subjects subjectSet
	// actions are exact names, and services are the services of "<service>:*".
	actions, services []string
	// exact are exact resources, and wild the stems of wildcard resources.
	exact, wild []string

	notBefore, notAfter time.Time
	// hours are nil if the statement counts at any hour. closed reports whether its hours are invalid, so that an allow never counts.
	hours  *Hours
	closed bool

	// inline is the storage for the one subject, action and resource that most statements have.
	inline [3]string

	flaws []flaw
	// unresolvedSubject and unresolvedAction report that a subject or an action could not be parsed, or that no class
	// covers the subject of a deny, so that the deny may have meant any.
	unresolvedSubject, unresolvedAction bool
}

// subjectSet is the parsed list of subjects.
type subjectSet struct {
	any      bool
	exact    []string // sorted
	stems    []string // of wildcard names
	prefixes []netip.Prefix
}

// simple reports whether the set contains only exact names.
func (s *subjectSet) simple() bool { return !s.any && len(s.stems) == 0 && len(s.prefixes) == 0 }

func (s *subjectSet) hasName(name string) bool {
	if s.any {
		return true
	}
	if _, ok := slices.BinarySearch(s.exact, name); ok {
		return true
	}
	return slices.ContainsFunc(s.stems, func(stem string) bool { return strings.HasPrefix(name, stem) })
}

func (s *subjectSet) hasAddress(a netip.Addr) bool {
	return a.IsValid() && slices.ContainsFunc(s.prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (st *statement) refused() bool { return len(st.flaws) > 0 }

func (st *statement) inForce(at time.Time) bool {
	return !at.Before(st.notBefore) && (st.notAfter.IsZero() || at.Before(st.notAfter)) && !st.closed && st.hours.Open(at)
}

// isBounded reports whether it depends on the time whether the statement counts.
func (st *statement) isBounded() bool {
	return !st.notBefore.IsZero() || !st.notAfter.IsZero() || st.hours != nil || st.closed
}

// hasAction reports whether the statement names the action, exactly or by its service.
func (st *statement) hasAction(name string) bool {
	if slices.Contains(st.actions, name) {
		return true
	}
	service, _, _ := strings.Cut(name, ":")
	return slices.Contains(st.services, service)
}

// parse parses a statement as written. A part that cannot be parsed becomes a flaw.
func (st *statement) parse(policy *v1alpha1.AccessControlPolicy, written *v1alpha1.Statement, names *nameCache) {
	*st = statement{ref: Ref{Policy: policy.Name, SID: written.SID}, effect: written.Effect, written: written, policy: policy}
	st.subjects.exact, st.actions, st.exact = st.inline[0:0:1], st.inline[1:1:2], st.inline[2:2:3]
	if st.effect != Allow && st.effect != Deny {
		st.effect = Deny // Deny is the safe interpretation of a value that API validation should have rejected.
		st.flaw(v1alpha1.RefusedUnsupported, string(written.Effect), message.RefusalEffect())
	}
	if written.NotBefore != nil {
		st.notBefore = written.NotBefore.Time
	}
	if written.NotAfter != nil {
		st.notAfter = written.NotAfter.Time
	}
	if written.Hours != nil {
		st.parseHours(written.Hours)
	}
	names.fresh = false
	for _, s := range written.Subjects {
		st.parseSubject(string(s), names)
	}
	for _, a := range written.Actions {
		st.parseAction(string(a))
	}
	for _, r := range written.Resources {
		st.parseResource(string(r), names)
	}
	st.subjects.exact = sortedUnique(st.subjects.exact)
	st.subjects.stems = sortedUnique(st.subjects.stems)
	st.actions, st.services = sortedUnique(st.actions), sortedUnique(st.services)
	st.exact, st.wild = sortedUnique(st.exact), sortedUnique(st.wild)
}

// parseHours sets the hours. If they are invalid, a deny counts at any hour.
func (st *statement) parseHours(written *v1alpha1.WeeklyHours) {
	hours, err := ParseHours(written)
	if err != nil {
		st.closed = st.effect == Allow
		st.flaw(v1alpha1.RefusedInvalidHours, written.TimeZone, message.Of(err))
		return
	}
	st.hours = hours
}

// nameCache caches names that were parsed before, because most names occur in many statements.
type nameCache struct {
	// subjects are exact names that a class covers and that are valid label values. fresh reports whether the statement
	// has other names, too.
	subjects numbering
	fresh    bool
	// resource is the last exact name that a class covers and that is a valid label value.
	resource string
	class    *resourceClass
}

func (st *statement) parseSubject(text string, names *nameCache) {
	if text == anyone {
		st.subjects.any = true
		return
	}
	if _, ok := names.subjects.find(text); ok {
		st.subjects.exact = append(st.subjects.exact, text)
		return
	}
	n, err := ParseName(text)
	if err != nil {
		st.unresolvedSubject = true
		st.flaw(v1alpha1.RefusedInvalidName, text, message.Of(err))
		return
	}
	switch {
	case n.IsPrefix():
		p, err := n.ParsePrefix()
		if err != nil {
			st.unresolvedSubject = true
			st.flaw(v1alpha1.RefusedInvalidName, text, message.Of(err))
			return
		}
		st.subjects.prefixes = append(st.subjects.prefixes, p)
	case n.Wildcard:
		st.subjects.stems = append(st.subjects.stems, n.stem())
	default:
		st.subjects.exact, names.fresh = append(st.subjects.exact, text), true
	}
}

func (st *statement) parseAction(text string) {
	service, verb, ok := strings.Cut(text, ":")
	switch {
	case !ok || service == "" || verb == "" || verb != "*" && strings.Contains(verb, "*"):
		st.unresolvedAction = true
		st.flaw(v1alpha1.RefusedInvalidName, text, message.RefusalActionForm())
	case verb == "*":
		st.services = append(st.services, service)
	default:
		st.actions = append(st.actions, text)
	}
}

func (st *statement) parseResource(text string, names *nameCache) {
	if names.class != nil && text == names.resource {
		st.exact = append(st.exact, text)
		return
	}
	n, err := ParseName(text)
	switch {
	case err != nil:
		st.flaw(v1alpha1.RefusedInvalidName, text, message.Of(err))
	case n.IsPrefix():
		st.flaw(v1alpha1.RefusedInvalidName, text, message.RefusalRangeResource())
	case n.Wildcard:
		st.wild = append(st.wild, n.stem())
	default:
		st.exact = append(st.exact, text)
	}
}

func sortedUnique(in []string) []string {
	if len(in) < 2 {
		return in
	}
	slices.Sort(in)
	return slices.Compact(in)
}
