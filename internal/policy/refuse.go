package policy

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// flaw is one reason why a statement cannot be compiled.
type flaw struct {
	reason, part string
	message      message.Message
}

func (st *statement) flaw(reason, part string, m message.Message) {
	st.flaws = append(st.flaws, flaw{reason: reason, part: part, message: m})
}

// examine adds the flaws that depend on the classes. Limits of Cilium are no flaws of a statement about classes that
// Cilium does not enforce: other enforcers refuse themselves what they cannot express.
func (st *statement) examine(s *Snapshot, names *nameCache) {
	var few [4]*resourceClass
	reachable := few[:0]
	for _, r := range st.exact {
		if names.class != nil && r == names.resource {
			reachable = append(reachable, names.class)
			continue
		}
		c, ok := s.resources.of(r)
		if !ok {
			st.flaw(v1alpha1.RefusedUnknownResource, r, message.RefusalResourceUnknown())
			continue
		}
		reachable = append(reachable, c)
		if _, err := labelValue(c.stem, r); err != nil {
			st.flaw(v1alpha1.RefusedInvalidName, r, message.Of(err))
			continue
		}
		names.resource, names.class = r, c
	}
	for _, stem := range st.wild {
		n, err := ParseName(stem + "*")
		if err != nil {
			continue // not possible: a stem comes from a wildcard name
		}
		overlapping := s.resources.overlapping(n)
		if len(overlapping) == 0 {
			st.flaw(v1alpha1.RefusedUnknownResource, n.String(), message.RefusalResourcesUnknown())
		}
		reachable = append(reachable, overlapping...)
		if st.effect == Allow {
			st.examineWildcardRequests(n, overlapping)
		}
	}
	byCilium := len(reachable) == 0 || slices.ContainsFunc(reachable, (*resourceClass).byCilium)
	st.examineSubjects(s, names, byCilium)
	st.examineActions(reachable)
}

// examineSubjects adds the flaws of the subjects. byCilium reports whether Cilium enforces a class of the statement.
func (st *statement) examineSubjects(s *Snapshot, names *nameCache, byCilium bool) {
	if byCilium && s.unsupported.Groups && st.effect == Deny && !st.subjects.any && slices.ContainsFunc(s.external.subjects, st.subjects.hasName) {
		st.flaw(v1alpha1.RefusedUnsupported, "subjects", message.RefusalExternalDeny())
	}
	for _, stem := range st.subjects.stems {
		n, err := ParseName(stem + "*")
		if err != nil {
			continue // not possible: a stem comes from a wildcard name
		}
		covering := s.subjects.overlapping(n)
		if len(covering) == 0 {
			st.unknownSubject(n.String(), message.RefusalSubjectsUnknown())
		}
		if byCilium && st.effect == Allow && s.unsupported.Names &&
			slices.ContainsFunc(covering, func(c *subjectClass) bool { return len(stem) > len(c.stem) }) {
			st.flaw(v1alpha1.RefusedUnsupported, n.String(), message.RefusalPrefixUnknown(s.insteadOfPrefix(covering)))
		}
		if byCilium && st.effect == Deny && slices.ContainsFunc(covering, func(c *subjectClass) bool { return len(stem) > len(c.stem) }) {
			st.flaw(v1alpha1.RefusedUnsupported, n.String(), message.RefusalPrefixDeny(s.insteadOfPrefix(covering)))
		}
	}
	if !names.fresh {
		return
	}
	for _, name := range st.subjects.exact {
		if _, ok := names.subjects.find(name); ok {
			continue
		}
		c, ok := s.subjects.of(name)
		if !ok {
			st.unknownSubject(name, message.RefusalSubjectUnknown())
		} else if _, err := labelValue(c.stem, name); err != nil {
			st.flaw(v1alpha1.RefusedInvalidName, name, message.Of(err))
		} else {
			names.subjects.add(name)
		}
	}
}

// insteadOfPrefix returns what to write in place of a prefix of some classes. The whole class is suggested only where
// it fits.
func (s *Snapshot) insteadOfPrefix(covering []*subjectClass) message.Message {
	for i, c := range s.subjects.all {
		if !s.wholeFits[i] && slices.Contains(covering, c) {
			return message.RefusalNameEach()
		}
	}
	return message.RefusalNameEachOrClass()
}

// unknownSubject adds the flaw of a subject in no class, for example when its SubjectClass was removed. The pods that a
// deny of it meant are not known, so the deny may have meant any.
func (st *statement) unknownSubject(part string, m message.Message) {
	st.unresolvedSubject = st.unresolvedSubject || st.effect == Deny
	st.flaw(v1alpha1.RefusedUnknownSubject, part, m)
}

// examineWildcardRequests refuses an allow of HTTP requests on a wildcard. The rule would also apply to workloads that
// are not in Enforce and drop the requests that it does not match there.
func (st *statement) examineWildcardRequests(n Name, covered []*resourceClass) {
	for _, c := range covered {
		if !c.byCilium() {
			continue
		}
		var whole []v1alpha1.Port
		for i := range c.actions {
			if a := &c.actions[i]; len(a.http) == 0 && st.hasAction(a.name) {
				whole = append(whole, a.ports...)
			}
		}
		for i := range c.actions {
			a := &c.actions[i]
			if len(a.http) > 0 && st.hasAction(a.name) && !portsCover(sortPorts(whole), a.ports) {
				st.flaw(v1alpha1.RefusedUnsupported, n.String(), message.RefusalWildcardRequests())
				return
			}
		}
	}
}

// examineActions refuses an action that none of the statement's resources has, and a deny of HTTP requests where Cilium
// enforces it: Cilium's rules about requests only allow, so that it would have to deny too much or nothing.
func (st *statement) examineActions(reachable []*resourceClass) {
	if len(reachable) == 0 {
		return // the resources are invalid, which is reported already
	}
	named := func(match func(action) bool) bool {
		return slices.ContainsFunc(reachable, func(c *resourceClass) bool { return slices.ContainsFunc(c.actions, match) })
	}
	deniesRequests := func(c *resourceClass) bool {
		return c.byCilium() && slices.ContainsFunc(c.actions, func(a action) bool { return len(a.http) > 0 && st.hasAction(a.name) })
	}
	unknown := func(text string) {
		st.unresolvedAction = true
		st.flaw(v1alpha1.RefusedUnknownAction, text, message.RefusalActionUnknown())
	}
	for _, name := range st.actions {
		if !named(func(a action) bool { return a.name == name }) {
			unknown(name)
		}
	}
	for _, service := range st.services {
		if !named(func(a action) bool { return strings.HasPrefix(a.name, service+":") }) {
			unknown(service + ":*")
		}
	}
	if st.effect == Deny && slices.ContainsFunc(reachable, deniesRequests) {
		st.flaw(v1alpha1.RefusedUnsupported, "http", message.RefusalDenyRequests())
	}
}

// refusals returns each reason once, with the first part that was refused, because a status has to stay small.
func (st *statement) refusals(resource string) []Refusal {
	if !st.refused() {
		return nil
	}
	byReason := map[string][]flaw{}
	for _, f := range st.flaws {
		byReason[f.reason] = append(byReason[f.reason], f)
	}
	var out []Refusal
	for _, reason := range sortedKeys(byReason) {
		flaws := byReason[reason]
		slices.SortFunc(flaws, func(a, b flaw) int {
			return strings.Compare(a.part+"\x00"+a.message.Text, b.part+"\x00"+b.message.Text)
		})
		out = append(out, Refusal{Ref: st.ref, Reason: reason, Message: describe(flaws), Resource: resource})
	}
	return out
}

// describe returns the first of some flaws, and the number of the others.
func describe(flaws []flaw) message.Message {
	part, why := shorten(flaws[0].part), flaws[0].message.Shorten(maxPart)
	if more := len(flaws) - 1; more > 0 {
		return message.RefusalPartAndMore(part, why, more)
	}
	return message.RefusalPart(part, why)
}

// maxPart is the maximum number of bytes of each part of a refusal's message.
const maxPart = 400

// shorten truncates a text to the length that a status allows.
func shorten(s string) string {
	if len(s) <= maxPart {
		return s
	}
	return strings.ToValidUTF8(s[:maxPart], "") + "..."
}
