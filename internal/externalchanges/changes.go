// Package externalchanges records in the ledger what was done to ACP's objects outside the portal: with kubectl, from a
// Git repository, or by any other writer. It decides what the ledger entries say and when they are written; the host
// cluster and the store are behind interfaces.
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

// Actions of the ledger entries.
const (
	// ActionCreated records that an object was created.
	ActionCreated = "object.created"
	// ActionUpdated records that the spec of an object was changed.
	ActionUpdated = "object.updated"
	// ActionDeleted records that an object was deleted.
	ActionDeleted = "object.deleted"
)

const (
	// Unknown is the actor of a change that no Event reported, or that several users may have made.
	Unknown = "unknown"
	// userPrefix marks the names of Kubernetes users, because a user and a person of the catalog may have the same name
	// without being the same.
	userPrefix = "kubernetes:"
	// maxAttributed bounds the entries with a user's name that one observation of an object makes.
	maxAttributed = 100
)

const (
	// Deletion is the generation under which the portal records that it deleted an object itself.
	Deletion = int64(1<<63 - 1)
	// Recorded is the generation under which a store records that the ledger has an object's deletion.
	Recorded = Deletion - 1
)

// Key identifies an object.
type Key struct{ Kind, Name string }

// Row is what the ledger has recorded about an object that exists.
type Row struct {
	Key
	UID        string
	Generation int64
}

// LiveObject is an object in the host cluster. An object that is being deleted counts as absent.
type LiveObject struct {
	Row
	// Digest is the hash of the spec. It is empty if it is unknown, because a later spec has replaced it.
	Digest string
	// Manager is the field manager of the last write. The writer chooses that name.
	Manager string
}

// OwnChange is a change that the portal made itself.
type OwnChange struct {
	UID        string
	Generation int64 // or Deletion
}

// Observation is one observation of the object with a name.
type Observation struct {
	// Before is what the ledger has recorded, and Current what exists. Either is nil if there is nothing.
	Before  *Row
	Current *LiveObject
	// Intermediate are objects with this name that the watch reported in between, with their last reported generation.
	Intermediate []Row
	// Changes are the changes that the webhook's Events report.
	Changes []event.Change
	At      time.Time
}

// Lines returns ledger entries for the difference between what the ledger has recorded and what was observed. The
// portal's own changes have entries already and get none.
func (o Observation) Lines(own map[OwnChange]bool) []ledger.Entry {
	row, seen, changes, now := o.Before, o.Current, o.Changes, o.At
	var out []ledger.Entry
	if row != nil && (seen == nil || seen.UID != row.UID) {
		v := version{key: row.Key, uid: row.UID, own: own, changes: changes, now: now}
		out = append(out, v.entries(v.between(row.Generation, Recorded-1), nil)...)
		out = append(out, v.end(row.Generation)...)
		row = nil
	}
	for _, g := range o.Intermediate {
		if o.Before != nil && g.UID == o.Before.UID || seen != nil && g.UID == seen.UID || own[OwnChange{g.UID, Recorded}] {
			continue
		}
		v := version{key: g.Key, uid: g.UID, own: own, changes: changes, now: now}
		out = append(out, v.until(0, &LiveObject{Row: g})...)
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

// UIDs returns the UIDs of all objects in the observation.
func (o Observation) UIDs() map[string]bool {
	out := map[string]bool{}
	for _, g := range o.Intermediate {
		out[g.UID] = true
	}
	if o.Before != nil {
		out[o.Before.UID] = true
	}
	if o.Current != nil {
		out[o.Current.UID] = true
	}
	return out
}

// version is one object from its creation to its deletion.
type version struct {
	key     Key
	uid     string
	own     map[OwnChange]bool
	changes []event.Change
	now     time.Time
}

// until returns the entries for the changes after a known generation up to the observed one.
func (v version) until(known int64, seen *LiveObject) []ledger.Entry {
	switch {
	case seen.Generation == known:
		return nil
	case seen.Generation < known: // The host cluster was restored from a backup.
		return []ledger.Entry{
			v.line(ActionUpdated, nil, map[string]string{"generation": number(seen.Generation), "before": number(known), "manager": seen.Manager}),
		}
	}
	reported := v.between(known, seen.Generation)
	if seen.Digest != "" {
		// A request may have been admitted and not stored. One with another content did not make the object that
		// exists.
		last := slices.DeleteFunc(reported[seen.Generation], func(c event.Change) bool { return c.Digest != seen.Digest })
		if reported[seen.Generation] = last; len(last) == 0 {
			delete(reported, seen.Generation)
		}
	}
	out := []ledger.Entry{}
	first := known + 1
	explained := int64(len(reported))
	for o := range v.own {
		if o.UID == v.uid && o.Generation > known && o.Generation <= seen.Generation {
			explained++
		}
	}
	if known == 0 { // The creation has an entry of its own.
		if first = 2; reported[1] == nil && !v.own[OwnChange{v.uid, 1}] {
			explained++
			details := map[string]string{"generation": "1"}
			if seen.Generation == 1 {
				details["manager"] = seen.Manager
			}
			out = append(out, v.line(ActionCreated, nil, details))
		}
	}
	out = append(out, v.entries(reported, seen)...)
	if explained < seen.Generation-known {
		details := map[string]string{"manager": seen.Manager, "generation": number(seen.Generation)}
		if first < seen.Generation {
			details["generation"] = number(first) + "-" + number(seen.Generation)
		}
		out = append(out, v.line(ActionUpdated, nil, details))
	}
	return out
}

// between returns the reported changes by generation, without the portal's own.
func (v version) between(after, last int64) map[int64][]event.Change {
	out := map[int64][]event.Change{}
	for _, c := range v.changes {
		if c.UID == v.uid && c.Operation != event.Delete && c.Generation > after && c.Generation <= last && !v.own[OwnChange{v.uid, c.Generation}] {
			out[c.Generation] = append(out[c.Generation], c)
		}
	}
	for len(out) > maxAttributed { // The other changes are recorded with an unknown actor.
		delete(out, slices.Min(slices.Collect(maps.Keys(out))))
	}
	return out
}

// entries returns an entry for each generation of which changes were reported.
func (v version) entries(reported map[int64][]event.Change, seen *LiveObject) []ledger.Entry {
	var out []ledger.Entry
	for _, generation := range slices.Sorted(maps.Keys(reported)) {
		action := ActionUpdated
		if generation == 1 {
			action = ActionCreated
		}
		details := map[string]string{"generation": number(generation)}
		if seen != nil && generation == seen.Generation {
			details["manager"] = seen.Manager
		}
		out = append(out, v.line(action, reported[generation], details))
	}
	return out
}

// end returns the entry for the deletion, unless the portal made it.
func (v version) end(generation int64) []ledger.Entry {
	if v.own[OwnChange{v.uid, Deletion}] {
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

// line returns an entry whose actor is the user who sent the matching request. If several users did, the actor is
// unknown, and the details name all of them.
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
