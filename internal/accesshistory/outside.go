package accesshistory

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/ledger"
)

// addOutside adds the changes outside of the portal that the ledger has.
func (r *Records) addOutside(entries []ledger.Entry) {
	byObject := map[string][]externalchanges.Recording{}
	for _, e := range entries {
		if x, ok := externalchanges.ReadEntry(e); ok {
			byObject[e.Object] = append(byObject[e.Object], x)
		}
	}
	for object, list := range byObject {
		o := r.timelineOf(list[0].Kind, list[0].Name)
		o.changes = append(o.changes, outsideChanges(list)...)
		if o.kind == kindPolicy && slices.ContainsFunc(o.changes, func(c change) bool { return c.names(r.Resource) }) {
			r.named[object] = true
		}
	}
}

// outsideChanges returns the changes that entries about one object record.
func outsideChanges(list []externalchanges.Recording) []change {
	var out, contents []change
	var later []externalchanges.Recording
	for _, x := range list {
		switch x.Form {
		case "":
			out = append(out, change{external: true, at: x.At, since: x.Since, created: x.Created, deleted: x.Deleted, actor: x.User})
		case externalchanges.ContentLater:
			later = append(later, x)
		default:
			contents = append(contents, newChange(x))
		}
	}
	for i := range contents {
		c := &contents[i]
		later = slices.DeleteFunc(later, func(x externalchanges.Recording) bool {
			inside := x.UID == c.uid && x.First >= c.first && x.Last <= c.last
			if inside {
				c.absorb(x)
			}
			return inside
		})
	}
	for _, x := range later { // the entry that has the content was not read
		contents = append(contents, newChange(x))
	}
	bound(contents)
	return append(out, contents...)
}

// newChange returns the change that an entry with the content, or with the reason why it has none, records.
func newChange(x externalchanges.Recording) change {
	c := change{external: true, at: x.At, since: x.Since, created: x.Created, deleted: x.Deleted, restored: x.Restored, actor: x.User, uid: x.UID,
		first: x.First, last: x.Last, objectCreated: x.ObjectCreated}
	switch x.Form {
	case externalchanges.ContentSpec:
		c.before, c.after, c.covered = x.Before, x.After, !c.since.IsZero()
	case externalchanges.ContentStatements:
		var before, after bool
		c.was, before = statementsOf(x.Before)
		c.is, after = statementsOf(x.After)
		c.covered = before && after && !c.since.IsZero()
	}
	return c
}

// absorb adds to a change one whose content it contains.
func (c *change) absorb(x externalchanges.Recording) {
	if x.Since.Before(c.since) {
		c.since = x.Since
	}
	c.created = c.created || x.Created
	c.covered = c.covered && !c.since.IsZero()
}

// statementsOf returns the statements of a list by sid; false if it cannot be read.
func statementsOf(list json.RawMessage) (map[string]*v1alpha1.Statement, bool) {
	out := map[string]*v1alpha1.Statement{}
	if list == nil {
		return out, true
	}
	var all []v1alpha1.Statement
	if json.Unmarshal(list, &all) != nil {
		return nil, false
	}
	for i := range all {
		out[all[i].SID] = &all[i]
	}
	return out, true
}

// bound narrows the times of changes of one name by their order: a generation was written before the next one, and an object was deleted
// before the next one with its name was created.
func bound(changes []change) {
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.uid, b.uid), cmp.Compare(a.first, b.first)) })
	if !slices.ContainsFunc(changes, func(c change) bool { return c.restored }) { // otherwise generations are used twice
		for i := len(changes) - 2; i >= 0; i-- {
			if c, next := &changes[i], &changes[i+1]; c.uid == next.uid && next.at.Before(c.at) {
				c.at = next.at
			}
		}
		for i := 1; i < len(changes); i++ {
			if before, c := &changes[i-1], &changes[i]; c.uid == before.uid && before.since.After(c.since) && !c.since.IsZero() {
				c.since = before.since
			}
		}
	}
	for i := range changes {
		if c := &changes[i]; c.objectCreated.After(c.since) && !c.since.IsZero() {
			c.since = c.objectCreated
		}
	}
	for i := range changes {
		c := &changes[i]
		for k := range changes {
			next := &changes[k]
			if !c.deleted || !next.created || next.uid == c.uid || c.since.IsZero() {
				continue
			}
			end := next.at
			if known := next.objectCreated.Add(externalchanges.CreationPrecision); !next.objectCreated.IsZero() && known.Before(end) {
				end = known
			}
			if !end.Before(c.since) && end.Before(c.at) {
				c.at = end
			}
		}
		if c.since.After(c.at) {
			c.since = c.at
		}
	}
}

// compareChanges orders changes by their times. At the same time, generations of an object are in order, and an object was deleted before the
// next one was created.
func compareChanges(a, b change) int {
	if a.at.Equal(b.at) && a.uid != "" && b.uid != "" {
		switch {
		case a.uid == b.uid:
			return cmp.Compare(a.first, b.first)
		case a.deleted != b.deleted && a.deleted:
			return -1
		case a.deleted != b.deleted:
			return 1
		}
	}
	return a.at.Compare(b.at)
}

// mayPrecede reports whether a change that was recorded after an instant may have been made before it. It is false for entries of earlier
// versions, which do not say it.
func (c *change) mayPrecede(at time.Time) bool { return c.uid != "" && !at.Before(c.since) }

// single reports whether the change is one write, so that the object had no content other than those before and after it. Before a deletion
// that nobody reported, the object may have been changed further.
func (c *change) single() bool { return c.first == c.last && (!c.deleted || c.actor != "") }

// names reports whether a statement that the change wrote or removed is about a resource.
func (c *change) names(resource string) bool {
	for _, list := range []map[string]*v1alpha1.Statement{c.was, c.is} {
		for _, st := range list {
			if slices.ContainsFunc(st.Resources, func(name v1alpha1.ResourceName) bool { return names(string(name), resource) }) {
				return true
			}
		}
	}
	return false
}

// protects reports whether a change of a protection says that it protects a resource.
func (c *change) protects(resource string) bool {
	for _, text := range []json.RawMessage{c.before, c.after} {
		var spec v1alpha1.ProtectedResourceSpec
		if c.covered && text != nil && json.Unmarshal(text, &spec) == nil && string(spec.Resource) == resource {
			return true
		}
	}
	return false
}

// uncovered returns the first change outside of the portal after an instant before which the content of the object is not known; nil if it
// is known. A creation, and a deletion whose content is recorded, say everything about the object before, whatever happened to it later.
// about reports whether the object matters only as it is before and after a change that may have been made before the instant.
func (o *timeline) uncovered(at time.Time, about bool) *change {
	if o == nil {
		return nil
	}
	for i := range o.changes {
		c := &o.changes[i]
		switch {
		case !c.external || !c.at.After(at):
		case c.mayPrecede(at) && (about || !c.single()):
			return c
		case c.created:
			return nil
		case !c.covered:
			return c
		case c.deleted:
			return nil
		}
	}
	return nil
}

// hasCovered reports whether the content of a change outside of the portal is recorded.
func (o *timeline) hasCovered() bool {
	return o != nil && slices.ContainsFunc(o.changes, func(c change) bool { return c.covered })
}
