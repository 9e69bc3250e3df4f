package policy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// rulesOf compiles statements into rules: one per effect and action. Rules with the same peers are joined.
func (s *Snapshot) rulesOf(c *resourceClass, held []*statement) []Rule {
	var out []Rule
	var keys []string
	for _, effect := range [2]Effect{Allow, Deny} {
		for i := range c.actions {
			a := &c.actions[i]
			var all subjectSet
			var from []Ref
			for _, st := range held {
				if st.effect == effect && st.hasAction(a.name) {
					all.add(&st.subjects)
					from = append(from, st.ref)
				}
			}
			r := Rule{Effect: effect}
			if !s.peers(&r, &all) {
				continue // the statement matches no source, such as a prefix that no known name begins with
			}
			key := r.peerKey()
			if len(a.http) > 0 {
				key += "\x00http " + a.name // the ports must not get the requests of another action
			}
			at := slices.Index(keys, key)
			if at < 0 {
				r.HTTP = slices.Clone(a.http)
				at, keys, out = len(out), append(keys, key), append(out, r)
			}
			out[at].Ports = append(out[at].Ports, a.ports...)
			out[at].From = append(out[at].From, from...)
		}
	}
	order := make([]int, len(out))
	for i := range out {
		out[i].Ports, out[i].From = sortPorts(out[i].Ports), sortedRefs(out[i].From)
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(a.Effect, b.Effect), slices.CompareFunc(a.Ports, b.Ports, comparePorts),
			cmp.Compare(len(a.HTTP), len(b.HTTP)), cmp.Compare(keys[i], keys[j]))
	})
	var sorted []Rule
	for _, i := range order {
		sorted = append(sorted, out[i])
	}
	return sorted
}

// add adds the subjects of another set.
func (s *subjectSet) add(o *subjectSet) {
	s.any = s.any || o.any
	s.exact = append(s.exact, o.exact...)
	s.stems = append(s.stems, o.stems...)
	s.prefixes = append(s.prefixes, o.prefixes...)
}

// peers sets the peers of a rule. Every exact name has a class and a valid value, or its statement would have been
// refused. It returns false if the rule matches no source.
func (s *Snapshot) peers(r *Rule, set *subjectSet) bool {
	if set.any {
		r.Anyone = true
		return true
	}
	whole, exact := s.expand(sortedUnique(set.stems), sortedUnique(set.exact))
	byKey := map[string]*SubjectSelector{}
	selector := func(c *subjectClass) *SubjectSelector {
		key := string(c.object.Spec.LabelKey)
		if byKey[key] == nil {
			byKey[key] = &SubjectSelector{LabelKey: key}
		}
		return byKey[key]
	}
	groups := s.groups()
	for _, c := range whole {
		selector(c).Any = true
		if !s.unsupported.Groups && slices.ContainsFunc(s.external.subjects, func(n string) bool { return strings.HasPrefix(n, c.stem) }) {
			r.ExternalClasses = append(r.ExternalClasses, UnitID(c.stem+"*"))
		}
	}
	for _, n := range exact {
		c, ok := s.subjects.of(n)
		if !ok || slices.Contains(whole, c) {
			continue
		}
		if sel := selector(c); !sel.Any {
			sel.Values = append(sel.Values, strings.TrimPrefix(n, c.stem))
		}
		if g := groups[n]; g != nil {
			r.External = append(r.External, g.ID)
		}
	}
	for _, key := range sortedKeys(byKey) {
		sel := byKey[key]
		sel.Values = sortedUnique(sel.Values)
		r.Subjects = append(r.Subjects, *sel)
	}
	slices.Sort(r.External)
	slices.Sort(r.ExternalClasses)
	r.Prefixes = withoutWholeFamily(set.prefixes)
	slices.SortFunc(r.Prefixes, netip.Prefix.Compare)
	r.Prefixes = slices.Compact(r.Prefixes)
	return r.HasPeers()
}

// expand returns the classes that a stem covers wholly. For narrower stems it adds the known names that they cover.
func (s *Snapshot) expand(stems, exact []string) (whole []*subjectClass, names []string) {
	for _, stem := range stems {
		n, err := ParseName(stem + "*")
		if err != nil {
			continue // not possible: a stem comes from a wildcard name
		}
		for _, c := range s.subjects.overlapping(n) {
			if len(stem) <= len(c.stem) {
				if !slices.Contains(whole, c) {
					whole = append(whole, c)
				}
				continue
			}
			for _, name := range s.knownUnder(stem) {
				if _, err := labelValue(c.stem, name); err == nil {
					exact = append(exact, name)
				}
			}
		}
	}
	return whole, sortedUnique(exact)
}

// peerKey returns a key that is equal for rules with the same effect and peers.
func (r *Rule) peerKey() string {
	var b strings.Builder
	b.WriteString(string(r.Effect))
	if r.Anyone {
		b.WriteString("\x00*")
	}
	for _, sel := range r.Subjects {
		b.WriteString("\x00label ")
		b.WriteString(sel.LabelKey)
		if sel.Any {
			b.WriteString("\x00*")
		}
		for _, v := range sel.Values {
			b.WriteByte(0)
			b.WriteString(v)
		}
	}
	for _, p := range r.Prefixes {
		b.WriteString("\x00range ")
		b.WriteString(p.String())
	}
	for _, id := range r.External {
		b.WriteString("\x00group ")
		b.WriteString(id)
	}
	for _, id := range r.ExternalClasses {
		b.WriteString("\x00groups ")
		b.WriteString(id)
	}
	return b.String()
}
