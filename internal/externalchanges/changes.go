// Package externalchanges records in the ledger what was done to ACP's objects outside of the portal: with kubectl, from a Git
// repository, by anybody who may write them. It decides what the ledger entries say and when they are written; the host cluster
// and the store are behind interfaces.
package externalchanges

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/externalchanges/event"
	"github.com/acp-io/acp/internal/ledger"
)

// The actions of the lines.
const (
	ActionCreated = "object.created"
	ActionUpdated = "object.updated"
	ActionDeleted = "object.deleted"
)

const (
	// Unknown is the actor of a change that nobody told of, or that more than one may have made.
	Unknown = "unknown"
	// userPrefix is before the names of Kubernetes' users: that one has the name of a person of the catalog does not make
	// the two the same.
	userPrefix = "kubernetes:"
	// mostTold bounds the lines with a name that one look at an object makes.
	mostTold = 100
)

const (
	// Deletion is the generation under which the portal notes that it deleted an object itself.
	Deletion = int64(1<<63 - 1)
	// Recorded is the generation under which a store notes that the end of an object is in the ledger.
	Recorded = Deletion - 1
)

// Key names an object.
type Key struct{ Kind, Name string }

// Row is what the ledger knows of an object that exists.
type Row struct {
	Key
	UID        string
	Generation int64
}

// Seen is an object as it is in the host cluster. One that is being deleted is not there any more.
type Seen struct {
	Row
	// Digest is that of the spec; empty: it is not known, because a later one is there already.
	Digest string
	// Manager is the field manager that wrote last. It is what the writer said of itself.
	Manager string
}

// Own is a change that the portal made itself.
type Own struct {
	UID        string
	Generation int64 // or Deletion
}

// Look is one look at an object's name.
type Look struct {
	// Before is what the ledger knows, and Seen what is there; nil: nothing.
	Before *Row
	Seen   *Seen
	// Gone are objects of this name that the watch showed in between, with the last generation that it showed.
	Gone []Row
	// Changes are what the webhook told.
	Changes []event.Change
	At      time.Time
}

// Lines tells what happened between what the ledger knows of an object and what was seen of it. The portal's own changes
// have lines of their own already.
func (l Look) Lines(own map[Own]bool) []ledger.Entry {
	row, seen, changes, now := l.Before, l.Seen, l.Changes, l.At
	var out []ledger.Entry
	if row != nil && (seen == nil || seen.UID != row.UID) {
		v := version{key: row.Key, uid: row.UID, own: own, changes: changes, now: now}
		out = append(out, v.told(v.between(row.Generation, Recorded-1), nil)...)
		out = append(out, v.end(row.Generation)...)
		row = nil
	}
	for _, g := range l.Gone {
		if l.Before != nil && g.UID == l.Before.UID || seen != nil && g.UID == seen.UID || own[Own{g.UID, Recorded}] {
			continue
		}
		v := version{key: g.Key, uid: g.UID, own: own, changes: changes, now: now}
		out = append(out, v.until(0, &Seen{Row: g})...)
		out = append(out, v.end(g.Generation)...)
	}
	if seen == nil {
		return out
	}
	known := int64(0)
	if row != nil {
		known = row.Generation
	}
	v := version{key: seen.Key, uid: seen.UID, own: own, changes: changes, now: now}
	return append(out, v.until(known, seen)...)
}

// UIDs are those of all objects that the look is about.
func (l Look) UIDs() map[string]bool {
	out := map[string]bool{}
	for _, g := range l.Gone {
		out[g.UID] = true
	}
	if l.Before != nil {
		out[l.Before.UID] = true
	}
	if l.Seen != nil {
		out[l.Seen.UID] = true
	}
	return out
}

// version is one life of an object, from its creation to its deletion.
type version struct {
	key     Key
	uid     string
	own     map[Own]bool
	changes []event.Change
	now     time.Time
}

// until tells the changes after a known generation to the one that was seen.
func (v version) until(known int64, seen *Seen) []ledger.Entry {
	switch {
	case seen.Generation == known:
		return nil
	case seen.Generation < known: // the host cluster was restored from a backup
		return []ledger.Entry{v.line(ActionUpdated, nil, map[string]string{"generation": number(seen.Generation), "before": number(known), "manager": seen.Manager})}
	}
	told := v.between(known, seen.Generation)
	if seen.Digest != "" {
		// A request may have been admitted and not stored. What has another content is not what is there.
		last := slices.DeleteFunc(told[seen.Generation], func(c event.Change) bool { return c.Digest != seen.Digest })
		if told[seen.Generation] = last; len(last) == 0 {
			delete(told, seen.Generation)
		}
	}
	out := []ledger.Entry{}
	first := known + 1
	explained := int64(len(told))
	for o := range v.own {
		if o.UID == v.uid && o.Generation > known && o.Generation <= seen.Generation {
			explained++
		}
	}
	if known == 0 { // its creation gets a line of its own
		if first = 2; told[1] == nil && !v.own[Own{v.uid, 1}] {
			explained++
			details := map[string]string{"generation": "1"}
			if seen.Generation == 1 {
				details["manager"] = seen.Manager
			}
			out = append(out, v.line(ActionCreated, nil, details))
		}
	}
	out = append(out, v.told(told, seen)...)
	if explained < seen.Generation-known {
		details := map[string]string{"manager": seen.Manager, "generation": number(seen.Generation)}
		if first < seen.Generation {
			details["generation"] = number(first) + "-" + number(seen.Generation)
		}
		out = append(out, v.line(ActionUpdated, nil, details))
	}
	return out
}

// between groups what was told by generation, without the portal's own.
func (v version) between(after, last int64) map[int64][]event.Change {
	out := map[int64][]event.Change{}
	for _, c := range v.changes {
		if c.UID == v.uid && c.Operation != event.Delete && c.Generation > after && c.Generation <= last && !v.own[Own{v.uid, c.Generation}] {
			out[c.Generation] = append(out[c.Generation], c)
		}
	}
	for len(out) > mostTold { // the others are told as unknown
		delete(out, slices.Min(slices.Collect(maps.Keys(out))))
	}
	return out
}

func (v version) told(told map[int64][]event.Change, seen *Seen) []ledger.Entry {
	var out []ledger.Entry
	for _, generation := range slices.Sorted(maps.Keys(told)) {
		action := ActionUpdated
		if generation == 1 {
			action = ActionCreated
		}
		details := map[string]string{"generation": number(generation)}
		if seen != nil && generation == seen.Generation {
			details["manager"] = seen.Manager
		}
		out = append(out, v.line(action, told[generation], details))
	}
	return out
}

// end tells the deletion, unless the portal made it.
func (v version) end(generation int64) []ledger.Entry {
	if v.own[Own{v.uid, Deletion}] {
		return nil
	}
	var by []event.Change
	for _, c := range v.changes {
		if c.UID == v.uid && c.Operation == event.Delete {
			by = append(by, c)
		}
	}
	return []ledger.Entry{v.line(ActionDeleted, by, map[string]string{"generation": number(generation)})}
}

// line names who sent a request that fits. If several did, it names nobody as the actor, and all of them.
func (v version) line(action string, by []event.Change, details map[string]string) ledger.Entry {
	e := ledger.Entry{At: v.now, Actor: Unknown, Action: action, Object: v.key.Kind + "/" + v.key.Name, Details: details}
	details["uid"] = v.uid
	if details["manager"] == "" {
		delete(details, "manager")
	}
	users := map[string]bool{}
	for _, c := range by {
		users[userPrefix+c.User] = true
	}
	names := slices.Sorted(maps.Keys(users))
	switch {
	case len(names) == 1:
		e.Actor, e.At = names[0], by[len(by)-1].At
	case len(names) > 1:
		details["oneOf"] = strings.Join(names[:min(len(names), 10)], ", ")
	}
	return e
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
