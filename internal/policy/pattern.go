package policy

import (
	"net/netip"
	"strings"
	"time"
)

// exampleID is the id in an example name that a wildcard covers and no statement names.
const exampleID = "example"

// pattern is one subject or resource as a statement has it.
type pattern struct {
	anyone bool
	text   string // an exact name, or a stem
	wild   bool
	prefix netip.Prefix
}

// String returns the pattern as it is written, except that an address range is only the prefix.
func (p pattern) String() string {
	switch {
	case p.anyone:
		return anyone
	case p.prefix.IsValid():
		return p.prefix.String()
	case p.wild:
		return p.text + "*"
	default:
		return p.text
	}
}

// exact reports whether the pattern is one exact name.
func (p pattern) exact() bool { return !p.anyone && !p.wild && !p.prefix.IsValid() }

// covers reports whether p matches everything that o matches.
func (p pattern) covers(o pattern) bool {
	switch {
	case p.anyone:
		return true
	case o.anyone || p.prefix.IsValid() != o.prefix.IsValid():
		return false
	case p.prefix.IsValid():
		return contains(p.prefix, o.prefix)
	case p.wild:
		return strings.HasPrefix(o.text, p.text)
	default:
		return !o.wild && p.text == o.text
	}
}

// common returns the narrower of two patterns of which one covers the other.
func common(a, b pattern) (pattern, bool) {
	switch {
	case a.covers(b):
		return b, true
	case b.covers(a):
		return a, true
	default:
		return pattern{}, false
	}
}

// patterns returns the subjects as patterns, in a fixed order.
func (s *subjectSet) patterns() []pattern {
	var out []pattern
	if s.any {
		out = append(out, pattern{anyone: true})
	}
	for _, n := range s.exact {
		out = append(out, pattern{text: n})
	}
	for _, stem := range s.stems {
		out = append(out, pattern{text: stem, wild: true})
	}
	for _, p := range s.prefixes {
		out = append(out, pattern{prefix: p})
	}
	return out
}

func (st *statement) resourcePatterns() []pattern {
	var out []pattern
	for _, n := range st.exact {
		out = append(out, pattern{text: n})
	}
	for _, stem := range st.wild {
		out = append(out, pattern{text: stem, wild: true})
	}
	return out
}

// classesOf returns the classes that have names in common with a resource pattern.
func (s *Snapshot) classesOf(p pattern) []*resourceClass {
	if !p.wild {
		if c, ok := s.resources.of(p.text); ok {
			return []*resourceClass{c}
		}
		return nil
	}
	n, err := ParseName(p.text + "*")
	if err != nil {
		return nil
	}
	return s.resources.overlapping(n)
}

// example returns a connection from one of the subjects to one of the resources, on the first port of an action.
func (s *Snapshot) example(subject, resource pattern, a *action, c *resourceClass, at time.Time) Query {
	q := Query{Protocol: a.ports[0].Protocol, Port: uint16(a.ports[0].Port), At: at}
	name := func(p pattern, stem string) string {
		if !p.wild {
			return p.text
		}
		stem = longer(p.text, stem)
		if known := s.knownUnder(stem); len(known) > 0 {
			return known[0]
		}
		return stem + exampleID
	}
	q.Resources = []string{name(resource, c.stem)}
	switch {
	case subject.anyone:
	case subject.prefix.IsValid():
		q.Source = subject.prefix.Addr()
	default:
		q.Subjects = []string{name(subject, "")}
	}
	return q
}

func actionNamed(c *resourceClass, bit uint32) *action {
	for i := range c.actions {
		if bit&(1<<i) != 0 {
			return &c.actions[i]
		}
	}
	return nil
}

// outlasts reports whether o is in force whenever st is, from an instant on at which both are in force.
func (st *statement) outlasts(o *statement) bool {
	return (st.notAfter.IsZero() || !o.notAfter.IsZero() && !st.notAfter.Before(o.notAfter)) && st.hours.Covers(o.hours)
}
