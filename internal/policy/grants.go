package policy

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// WhoCanReach returns what the statements allow and deny on a resource, by its exact name or by a wildcard, as one
// Grant per subject as written. Statements that are not yet in force are included as not counting; expired statements
// are not included.
func (s *Snapshot) WhoCanReach(resource string, at time.Time) []Grant {
	var out []Grant
	for _, number := range s.numbersAbout(resource, func(*statement) bool { return true }) {
		st := s.statements[number]
		if st.expired(at) {
			continue
		}
		for _, r := range st.written.Resources {
			if !nameCovers(string(r), resource) {
				continue
			}
			for _, subject := range st.written.Subjects {
				out = append(out, s.grant(st, string(subject), string(r), resource, at))
			}
		}
	}
	return sortedGrants(out)
}

// WhatCanReach returns what the statements allow and deny for a subject, by its exact name, by a wildcard or by "*", as
// one Grant per resource as written. An address range is found by its exact name only.
func (s *Snapshot) WhatCanReach(subject string, at time.Time) []Grant {
	var out []Grant
	for _, number := range s.numbersBy(subject) {
		st := s.statements[number]
		if st.expired(at) {
			continue
		}
		for _, sub := range st.written.Subjects {
			if string(sub) != anyone && !nameCovers(string(sub), subject) {
				continue
			}
			for _, r := range st.written.Resources {
				out = append(out, s.grant(st, string(sub), string(r), string(r), at))
			}
		}
	}
	return sortedGrants(out)
}

// Grants iterates over all statements, with one Grant per subject and resource as written, by policy and sid. Expired
// statements are left out. There may be many more grants than statements, so callers should stop when they have enough.
func (s *Snapshot) Grants(at time.Time) iter.Seq[Grant] {
	return func(yield func(Grant) bool) {
		for _, st := range s.statements {
			if st.expired(at) {
				continue
			}
			for _, sub := range st.written.Subjects {
				for _, r := range st.written.Resources {
					if !yield(s.grant(st, string(sub), string(r), string(r), at)) {
						return
					}
				}
			}
		}
	}
}

func (st *statement) expired(at time.Time) bool {
	return !st.notAfter.IsZero() && !at.Before(st.notAfter)
}

// nameCovers reports whether a name as written in a statement covers an exact name.
func nameCovers(written, name string) bool {
	if stem, wild := strings.CutSuffix(written, "*"); wild {
		return stem != "" && strings.HasPrefix(name, stem)
	}
	return written == name
}

// grant returns the Grant of one pair. queried is the exact resource of the query, or the resource as written.
func (s *Snapshot) grant(st *statement, subject, resource, queried string, at time.Time) Grant {
	wild := strings.HasSuffix(resource, "*")
	g := Grant{Ref: st.ref, Effect: st.effect, Subject: subject, Resource: resource, Wildcard: wild,
		NotBefore: st.notBefore, NotAfter: st.notAfter, Hours: st.written.Hours}
	if c, ok := s.resources.of(strings.TrimSuffix(queried, "*")); ok {
		for i := range c.actions {
			if st.hasAction(c.actions[i].name) {
				g.Actions = append(g.Actions, c.actions[i].name)
			}
		}
	} else {
		for _, a := range st.written.Actions {
			g.Actions = append(g.Actions, string(a))
		}
		slices.Sort(g.Actions)
	}
	mode := s.EffectiveMode(queried, "", at)
	switch {
	case !st.inForce(at):
	case st.effect == Deny:
		// A wildcard deny counts wherever its resources are in Enforce, which no single mode shows.
		g.Counting = mode == v1alpha1.ModeEnforce || queried == resource && wild
	case st.effect == Allow:
		g.Counting = wild || mode != v1alpha1.ModeObserve
	}
	return g
}

// numbersBy returns the numbers of the statements that may name a subject, sorted.
func (s *Snapshot) numbersBy(subject string) []uint32 {
	var exact []uint32
	if id, ok := s.index.subjects.find(subject); ok {
		exact = s.index.bySubject.of(id)
	}
	return sortedNumbers(slices.Concat(exact, s.index.anySubject))
}

func sortedGrants(grants []Grant) []Grant {
	slices.SortFunc(grants, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Resource, b.Resource),
			a.Ref.Compare(b.Ref), cmp.Compare(a.Effect, b.Effect))
	})
	return grants
}
