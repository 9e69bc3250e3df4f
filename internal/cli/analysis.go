package cli

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// remark is what is said about one statement beside another one.
type remark struct {
	kind    string
	ref     policy.Ref
	other   policy.Ref
	message string
	example query
}

const (
	kindShadowed      = "shadowed"
	kindRedundant     = "redundant"
	kindContradictory = "contradictory"
)

// entry is a statement that may still count.
type entry struct {
	ref policy.Ref
	*v1alpha1.Statement
	// from and until bound the time that is left of it; until is zero when it does not expire.
	from, until time.Time
}

// analyze compares the statements that have names in common: an allow that a deny covers is shadowed, a statement that
// another one of its effect covers is redundant, and an allow and a deny that meet are contradictory. It compares names as
// written, so it may miss that several statements together cover one, and never says so wrongly. Left out are statements
// that are over, and those in skip.
func analyze(s *policy.Snapshot, in policy.Input, skip map[policy.Ref]bool, at time.Time) []remark {
	var all []*entry
	for _, p := range in.Policies {
		for i := range p.Spec.Statements {
			e := newEntry(p.Name, &p.Spec.Statements[i], at)
			if !skip[e.ref] && (e.until.IsZero() || at.Before(e.until)) {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return compareRefs(a.ref, b.ref) })
	exact, wild := map[v1alpha1.ResourceName][]int{}, []int{}
	for i, e := range all {
		isWild := false
		for _, r := range e.Resources {
			if strings.HasSuffix(string(r), "*") {
				isWild = true
			} else {
				exact[r] = append(exact[r], i)
			}
		}
		if isWild {
			wild = append(wild, i)
		}
	}
	var out []remark
	for i, e := range all {
		near := slices.Clone(wild)
		if slices.Contains(wild, i) {
			near = nil // those that it meets find it
			for _, j := range wild {
				if j > i {
					near = append(near, j)
				}
			}
		}
		for _, r := range e.Resources {
			for _, j := range exact[r] {
				if j > i {
					near = append(near, j)
				}
			}
		}
		slices.Sort(near)
		for _, j := range slices.Compact(near) {
			if r, ok := compare(s, e, all[j]); ok {
				out = append(out, r)
			}
		}
	}
	return out
}

func compareRefs(a, b policy.Ref) int {
	return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.SID, b.SID))
}

func newEntry(policyName string, st *v1alpha1.Statement, at time.Time) *entry {
	e := &entry{ref: policy.Ref{Policy: policyName, SID: st.SID}, Statement: st, from: at}
	if st.NotBefore != nil && st.NotBefore.After(at) {
		e.from = st.NotBefore.Time
	}
	if st.NotAfter != nil {
		e.until = st.NotAfter.Time
	}
	return e
}

// compare says what there is to say about two statements.
func compare(s *policy.Snapshot, a, b *entry) (remark, bool) {
	example, meet := meeting(s, a, b)
	if !meet {
		return remark{}, false
	}
	if a.Effect == b.Effect {
		if covers(a, b) {
			a, b = b, a // of two that are the same, the later is the one too many
		} else if !covers(b, a) {
			return remark{}, false
		}
		return remark{kindRedundant, a.ref, b.ref, "everything that it says is said by " + b.ref.String(), example}, true
	}
	if a.Effect == v1alpha1.EffectDeny {
		a, b = b, a
	}
	if covers(b, a) {
		return remark{kindShadowed, a.ref, b.ref, "the deny " + b.ref.String() + " wins wherever the resource is enforced, in all that it allows", example}, true
	}
	return remark{kindContradictory, a.ref, b.ref, "the deny " + b.ref.String() + " takes back a part of what it allows", example}, true
}

// covers tells whether a says all that b does, whenever b does.
func covers(a, b *entry) bool {
	return !a.from.After(b.from) && (a.until.IsZero() || !b.until.IsZero() && !a.until.Before(b.until)) &&
		all(b.Subjects, a.Subjects, subjectCovers) && all(b.Resources, a.Resources, nameCovers) && all(b.Actions, a.Actions, actionCovers)
}

// all tells whether each of the parts is covered by one of the wholes.
func all[T ~string](parts, wholes []T, covers func(whole, part string) bool) bool {
	for _, p := range parts {
		if !slices.ContainsFunc(wholes, func(w T) bool { return covers(string(w), string(p)) }) {
			return false
		}
	}
	return true
}

// shared is the narrower of the first two that have something in common.
func shared[T ~string](a, b []T, covers func(whole, part string) bool) (string, bool) {
	for _, x := range a {
		for _, y := range b {
			if covers(string(x), string(y)) {
				return string(y), true
			}
			if covers(string(y), string(x)) {
				return string(x), true
			}
		}
	}
	return "", false
}

// meeting is a connection that both statements are about, at a time when both are.
func meeting(s *policy.Snapshot, a, b *entry) (query, bool) {
	from := a.from
	if b.from.After(from) {
		from = b.from
	}
	for _, e := range []*entry{a, b} {
		if !e.until.IsZero() && !from.Before(e.until) {
			return query{}, false
		}
	}
	subject, ok := shared(a.Subjects, b.Subjects, subjectCovers)
	if !ok {
		return query{}, false
	}
	resource, ok := shared(a.Resources, b.Resources, nameCovers)
	if !ok {
		return query{}, false
	}
	action, ok := shared(a.Actions, b.Actions, actionCovers)
	if !ok {
		return query{}, false
	}
	q := query{Resources: []string{strings.Replace(resource, "*", example, 1)}, At: from.UTC().Format(time.RFC3339)}
	class, ok := s.ResourceClassOf(resource)
	if !ok {
		return query{}, false
	}
	i := slices.IndexFunc(class.Spec.Actions, func(c v1alpha1.ClassAction) bool { return actionCovers(action, c.Name) })
	if i < 0 || len(class.Spec.Actions[i].Ports) == 0 {
		return query{}, false
	}
	port := class.Spec.Actions[i].Ports[0]
	q.Port, q.Protocol = uint16(port.Port), port.Protocol //nolint:gosec // the schema bounds ports
	if p, ok := prefix(subject); ok {
		q.SourceIP = p.Addr().String()
	} else if subject != "*" {
		q.Subjects = []string{strings.Replace(subject, "*", example, 1)}
	}
	return q, true
}

func nameCovers(whole, part string) bool {
	w, err := policy.ParseName(whole)
	if err != nil {
		return false
	}
	p, err := policy.ParseName(part)
	return err == nil && w.Covers(p)
}

// subjectCovers knows that "*" is anyone, and that a range holds ranges.
func subjectCovers(whole, part string) bool {
	if whole == "*" || part == "*" {
		return whole == "*"
	}
	w, isRange := prefix(whole)
	if p, ok := prefix(part); ok || isRange {
		return ok && isRange && w.Bits() <= p.Bits() && w.Contains(p.Addr())
	}
	return nameCovers(whole, part)
}

func prefix(name string) (netip.Prefix, bool) {
	n, err := policy.ParseName(name)
	if err != nil || !n.IsPrefix() {
		return netip.Prefix{}, false
	}
	p, err := n.ParsePrefix()
	return p, err == nil
}

func actionCovers(whole, part string) bool {
	if service, ok := strings.CutSuffix(whole, ":*"); ok {
		return strings.HasPrefix(part, service+":")
	}
	return whole == part
}
