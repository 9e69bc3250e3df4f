package policy

import (
	"cmp"
	"slices"
	"time"
)

// Change is a connection that becomes possible or impossible.
type Change struct {
	// Subject is a name, a wildcard, an address range or "*" as a statement has it; "*" stands for all that no other
	// statement names.
	Subject string
	// Resource is an exact name.
	Resource, Action string
	Before, After    Word
}

// Compare lists what becomes possible or impossible from one snapshot to the other, in the base modes: for every resource
// that is onboarded or named in either, the subjects that its statements name. Sorted.
func Compare(old, new *Snapshot, at time.Time) []Change {
	var out []Change
	for _, resource := range comparedResources(old, new) {
		subjects := map[pattern]struct{}{{anyone: true}: {}}
		for _, s := range [2]*Snapshot{old, new} {
			for _, n := range s.numbersAbout(resource, func(*statement) bool { return true }) {
				for _, p := range s.statements[n].subjects.patterns() {
					subjects[p] = struct{}{}
				}
			}
		}
		for sub := range subjects {
			out = compareActions(out, old, new, sub, pattern{text: resource}, at)
		}
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Action, b.Action))
	})
	return out
}

// comparedResources are the resources about which anything may differ.
func comparedResources(old, new *Snapshot) []string {
	d := new.delta
	if d.parent != old.identity {
		d = deltaOf(old, new)
	}
	var names []string
	if d.all {
		for _, s := range [2]*Snapshot{old, new} {
			names = append(names, s.index.resources.names...)
		}
		return sortedUnique(names)
	}
	names = append(names, d.protected...)
	for _, st := range d.statements {
		names = append(names, st.exact...)
		for _, stem := range st.wild {
			for _, s := range [2]*Snapshot{old, new} {
				names = s.protectedUnder(names, stem)
			}
		}
	}
	return sortedUnique(names)
}

// compareActions decides each action of the resource's class before and after. An action that only one of the two
// snapshots has is asked of both, by its port.
func compareActions(out []Change, old, new *Snapshot, subject, resource pattern, at time.Time) []Change {
	done := map[string]bool{}
	for _, s := range [2]*Snapshot{new, old} {
		for _, c := range s.classesOf(resource) {
			for i := range c.actions {
				a := &c.actions[i]
				if done[a.name] {
					continue
				}
				done[a.name] = true
				q := new.example(subject, resource, a, c, at)
				if subject.wild {
					q.Subjects = []string{subject.text + exampleID} // one that is not named, too
				}
				before, after := old.Decide(q).Word, new.Decide(q).Word
				if before.through() != after.through() {
					out = append(out, Change{Subject: subject.String(), Resource: resource.text, Action: a.name, Before: before, After: after})
				}
			}
		}
	}
	return out
}
