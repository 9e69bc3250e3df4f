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
	// ActionInstructed records that the waves of a rollout of a resource got an instruction.
	ActionInstructed = "resource.waves-instructed"
	// ActionClassInstructed records that the waves of a change of a class got an instruction.
	ActionClassInstructed = "class.waves-instructed"
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

// Row is the ledger's record of an object that exists.
type Row struct {
	Key
	UID        string
	Generation int64
}

// RecordedObject is a Row with the content that the ledger has recorded.
type RecordedObject struct {
	Row
	Content
	// At is an instant at which the object was like this; zero if it is not known.
	At time.Time
}

// LiveObject is an object in the host cluster. An object that is being deleted counts as absent.
type LiveObject struct {
	Row
	Content
	// Digest is the hash of the spec. It is empty if it is unknown, because a later spec has replaced it.
	Digest string
	// Manager is the field manager of the last write. The writer chooses that name.
	Manager string
	// Version is the resource version.
	Version string
}

// OwnChange is a change that the portal made itself.
type OwnChange struct {
	UID        string
	Generation int64 // or Deletion
}

// Observation is one observation of the object with a name.
type Observation struct {
	// Before is the object as the ledger has recorded it, and Current the object as it exists. Either is nil if there is no such object.
	Before  *RecordedObject
	Current *LiveObject
	// Intermediate are objects with this name that the watch reported in between, with their last reported generation.
	Intermediate []Row
	// Contents are the contents that the watch reported, by UID and generation.
	Contents map[string]map[int64]Content
	// Changes are the changes that the webhook's Events report.
	Changes []event.Change
	// The changes were made after Since, which is zero if that is not known, and before At. Current was read after ReadAt.
	Since, ReadAt, At time.Time
}

// Lines returns ledger entries for the difference between what the ledger has recorded and what was observed. The
// portal's own changes have entries already and get none.
func (o Observation) Lines(own map[OwnChange]bool) []ledger.Entry {
	var out []ledger.Entry
	row := o.Before
	if row != nil && (o.Current == nil || o.Current.UID != row.UID) {
		last := row.Generation
		for _, g := range o.Intermediate {
			if g.UID == row.UID {
				last = max(last, g.Generation)
			}
		}
		for _, c := range o.Changes {
			if c.UID == row.UID && c.Operation == event.Delete {
				last = max(last, c.Generation)
			}
		}
		v := o.version(row.Key, row.UID, own)
		v.begin(row.Generation, row.Content)
		out = append(out, v.entries(last, true)...)
		row = nil
	}
	for _, g := range o.Intermediate {
		if o.Before != nil && g.UID == o.Before.UID || o.Current != nil && g.UID == o.Current.UID || own[OwnChange{g.UID, Recorded}] {
			continue
		}
		v := o.version(g.Key, g.UID, own)
		out = append(out, v.entries(g.Generation, true)...)
	}
	if o.Current == nil {
		return out
	}
	v := o.version(o.Current.Key, o.Current.UID, own)
	v.current = o.Current
	if row != nil {
		v.begin(row.Generation, row.Content)
	}
	return append(out, v.entries(o.Current.Generation, false)...)
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
	current *LiveObject // nil if the object does not exist any more
	// known is the generation that the ledger has recorded; 0 if it has none.
	known int64
	// points are the generations of which it is known what the object was. Generation 0 is before its creation, and Deletion after its
	// deletion.
	points     map[int64]point
	created    time.Time
	since, now time.Time
}

// version returns the object with a UID, of which the ledger has recorded nothing.
func (o *Observation) version(k Key, uid string, own map[OwnChange]bool) *version {
	v := &version{key: k, uid: uid, own: own, changes: o.Changes, since: o.Since, now: o.At, points: map[int64]point{0: {}, Deletion: {}}}
	for generation, c := range o.Contents[uid] {
		v.add(generation, c)
	}
	return v
}

// begin sets what the ledger has recorded.
func (v *version) begin(generation int64, c Content) {
	v.known = generation
	v.add(generation, c)
}

func (v *version) add(generation int64, c Content) {
	if c.Spec != nil {
		v.points[generation] = point{c.Spec}
	}
	if !c.Created.IsZero() {
		v.created = c.Created
	}
}

// span is the generations of one entry.
type span struct {
	first, last int64
	entry       ledger.Entry
}

// entries returns the entries about the object up to its last generation and, if it is gone, about its deletion.
func (v *version) entries(last int64, gone bool) []ledger.Entry {
	if v.current != nil {
		v.add(last, v.current.Content)
	}
	var spans []span
	switch {
	case last < v.known: // The host cluster was restored from a backup.
		e := v.line(ActionUpdated, nil, map[string]string{"generation": number(last), "before": number(v.known)})
		before, had := v.points[v.known]
		after, has := v.points[last]
		if had && has {
			addContent(e.Details, v.key.Kind, before, after)
		} else {
			e.Details[detailContent] = string(ContentUnknown)
		}
		return []ledger.Entry{v.described(e)}
	case gone:
		spans = v.spans(last, v.between(Recorded-1))
		if end := max(last, v.known); !v.own[OwnChange{v.uid, Deletion}] {
			spans = append(spans, span{Deletion, Deletion, v.deletion(end)})
		}
	default:
		spans = v.spans(last, v.matching(last))
	}
	v.addContents(spans, last)
	var out []ledger.Entry
	for _, s := range spans {
		if v.current != nil && s.last == last {
			s.entry = v.described(s.entry)
		}
		out = append(out, s.entry)
	}
	return out
}

// described adds to an entry what is known about the last write.
func (v *version) described(e ledger.Entry) ledger.Entry {
	for key, value := range map[string]string{"manager": v.current.Manager, "resourceVersion": v.current.Version} {
		if value != "" {
			e.Details[key] = value
		}
	}
	return e
}

// matching returns the reported changes by generation, without those that cannot have made the last one: a request may have been admitted
// and not stored, so one with another content did not make the object that exists.
func (v *version) matching(last int64) map[int64][]event.Change {
	out := v.between(last)
	if v.current.Digest == "" {
		return out
	}
	made := slices.DeleteFunc(out[last], func(c event.Change) bool { return c.Digest != v.current.Digest })
	if out[last] = made; len(made) == 0 {
		delete(out, last)
	}
	return out
}

// between returns the reported changes after the known generation by generation, without the portal's own.
func (v *version) between(last int64) map[int64][]event.Change {
	out := map[int64][]event.Change{}
	for _, c := range v.changes {
		if c.UID == v.uid && c.Operation != event.Delete && c.Generation > v.known && c.Generation <= last && !v.own[OwnChange{v.uid, c.Generation}] {
			out[c.Generation] = append(out[c.Generation], c)
		}
	}
	for len(out) > maxAttributed { // The other changes are recorded with an unknown actor.
		delete(out, slices.Min(slices.Collect(maps.Keys(out))))
	}
	return out
}

// spans returns the entries for the generations after the known one up to the last, in order: one for each reported generation, and one for
// each run of generations that nobody reported. The portal's own generations have none.
func (v *version) spans(last int64, reported map[int64][]event.Change) []span {
	explained := slices.Collect(maps.Keys(reported))
	for o := range v.own {
		if o.UID == v.uid && o.Generation > v.known && o.Generation <= last {
			explained = append(explained, o.Generation)
		}
	}
	slices.Sort(explained)
	var out []span
	next := v.known + 1
	for _, generation := range explained {
		out = append(out, v.unreported(next, generation-1)...)
		if by := reported[generation]; by != nil {
			action := ActionUpdated
			if generation == 1 {
				action = ActionCreated
			}
			out = append(out, span{generation, generation, v.line(action, by, map[string]string{"generation": number(generation)})})
		}
		next = generation + 1
	}
	return append(out, v.unreported(next, last)...)
}

// unreported returns the entries for a run of generations that nobody reported. The creation has an entry of its own, and so has each
// generation whose content the watch reported.
func (v *version) unreported(first, last int64) []span {
	var out []span
	if first == 1 && last >= 1 {
		out = append(out, span{1, 1, v.line(ActionCreated, nil, map[string]string{"generation": "1"})})
		first = 2
	}
	for first <= last {
		end, known := v.oldest(first, last)
		if !known {
			end = last
		}
		out = append(out, span{first, end, v.line(ActionUpdated, nil, map[string]string{"generation": rangeOf(first, end)})})
		first = end + 1
	}
	return out
}

// deletion returns the entry for the deletion after a generation.
func (v *version) deletion(generation int64) ledger.Entry {
	var by []event.Change
	for _, c := range v.changes {
		if c.UID == v.uid && c.Operation == event.Delete {
			by = append(by, c)
		}
	}
	return v.line(ActionDeleted, by, map[string]string{"generation": number(generation)})
}

// addContents adds the changed content to the entries. If the content between two entries is not known, because no watch reported it, the
// later entry has the content of both changes.
func (v *version) addContents(spans []span, last int64) {
	top := max(last, v.known)
	for _, s := range spans {
		if s.last != Deletion {
			top = max(top, s.last)
		}
	}
	from, first := v.known, 0 // the generation before the entries that wait for their content, and the first of these
	for n := range spans {
		if first == n { // the portal's own generations in between are not part of the change
			from = v.newest(from, spans[n].first-1)
		}
		next := top
		if n+1 < len(spans) {
			next = spans[n+1].first - 1
		}
		to, known := v.oldest(spans[n].last, next)
		if !known {
			continue
		}
		v.addContent(spans[first:n+1], from, to, top)
		from, first = to, n+1
	}
	for ; first < len(spans); first++ {
		spans[first].entry.Details[detailContent] = string(ContentUnknown)
	}
}

// addContent adds to the last of some entries the content of all changes after one generation up to another. top is the last generation of
// the object.
func (v *version) addContent(spans []span, from, to, top int64) {
	before, had := v.points[from]
	s := spans[len(spans)-1]
	since, exact := v.earliest(spans, min(to, top)-from)
	form := ContentLater
	if !had || !exact && since.IsZero() { // Without the time, it is not known when the content before was there.
		form = ContentUnknown
	}
	for _, each := range spans {
		each.entry.Details[detailContent] = string(form)
	}
	if form == ContentUnknown {
		return
	}
	addContent(s.entry.Details, v.key.Kind, before, v.points[to])
	begin, end := s.first, s.last
	if s.last == Deletion {
		begin, end = top+1, to
	}
	if from+1 != begin || to != end {
		s.entry.Details[detailCovers] = rangeOf(from+1, min(to, top))
	}
	if !exact {
		s.entry.Details[detailSince] = since.UTC().Format(time.RFC3339Nano)
	}
}

// earliest returns an instant before which none of the changes of the entries was made; zero if it is not known. exact reports whether the
// instant follows from the last entry alone. generations is the number of generations that the entries contain, including those that the
// portal made at other times.
func (v *version) earliest(spans []span, generations int64) (since time.Time, exact bool) {
	for i, s := range spans {
		at := s.entry.At
		if s.entry.Actor == Unknown {
			at = v.since
			if s.first == 1 && s.last == 1 && !v.created.IsZero() {
				at = v.created
			}
		}
		if i == 0 || at.Before(since) {
			since = at
		}
		if s.last != Deletion {
			generations -= s.last - s.first + 1
		}
	}
	if generations > 0 && v.since.Before(since) {
		since = v.since
	}
	return since, len(spans) == 1 && generations <= 0 && (spans[0].entry.Actor != Unknown || !since.IsZero())
}

// newest returns the newest known generation between two, or the low one, known or not.
func (v *version) newest(low, high int64) int64 {
	for generation := range v.points {
		if generation > low && generation <= high {
			low = generation
		}
	}
	return low
}

// oldest returns the oldest known generation between two; false if there is none.
func (v *version) oldest(low, high int64) (out int64, known bool) {
	for generation := range v.points {
		if generation >= low && generation <= max(low, high) && (!known || generation < out) {
			out, known = generation, true
		}
	}
	return out, known
}

// line returns an entry whose actor is the user who sent the matching request. If several users did, the actor is
// unknown, and the details name all of them.
func (v *version) line(action string, by []event.Change, details map[string]string) ledger.Entry {
	e := ledger.Entry{At: v.now, Actor: Unknown, Action: action, Object: v.key.Kind + "/" + v.key.Name, Details: details}
	details["uid"] = v.uid
	if !v.created.IsZero() {
		details[detailCreatedAt] = v.created.UTC().Format(time.RFC3339)
	}
	users := map[string]bool{}
	for _, c := range by {
		users[userPrefix+c.User] = true
	}
	names := slices.Sorted(maps.Keys(users))
	switch {
	case len(names) == 1:
		e.Actor, e.At = names[0], by[len(by)-1].At
		return e
	case len(names) > 1:
		details["oneOf"] = strings.Join(names[:min(len(names), 10)], ", ")
	}
	v.addSince(details)
	return e
}

func (v *version) addSince(details map[string]string) {
	if !v.since.IsZero() {
		details[detailSince] = v.since.UTC().Format(time.RFC3339Nano)
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
