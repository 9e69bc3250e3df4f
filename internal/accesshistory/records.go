package accesshistory

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/policy"
)

// Kinds of objects whose changes outside of the portal the ledger records, as in the objects of its lines.
const (
	kindPolicy     = "AccessControlPolicy"
	kindProtection = approval.ObjectProtectedResource
	kindClass      = approval.ObjectResourceClass
)

// Records contains the recorded history of the access to one resource. It must not be changed after the first query.
type Records struct {
	Resource string // its name
	Now      time.Time
	// Present are the objects of the host cluster. The methods do not change them.
	Present policy.Input
	// Snapshot is the snapshot of Present.
	Snapshot *policy.Snapshot
	// Tickets contains the tickets about the resource and about classes, with their events, in no order.
	Tickets []*approval.Ticket
	// Lines are the ledger's entries about changes of objects outside of the portal and about the resource itself, in no order.
	Lines []ledger.Entry
	// Begin is the time of the ledger's first line. Nothing is recorded before it.
	Begin time.Time
	// Restored are the times at which the portal's database was restored from a backup, so that later records were lost.
	Restored []time.Time
	// Unread is the instant up to which not all records were read, because there are too many; zero if all were read.
	Unread time.Time

	indexed bool
	items   []*item
	objects map[string]*timeline
	audits  []auditLine
	// policies are the present policies by name, protections the present protections of the resource by name.
	policies    map[string]*v1alpha1.AccessControlPolicy
	protected   map[string]*v1alpha1.ProtectedResource
	namesByKind map[string][]string // of the recorded objects, sorted
	// named are the policies, as KIND/NAME, of which a recorded change outside of the portal contains a statement about the resource, and
	// protections the names of the resource's ProtectedResources, present and past, sorted.
	named       map[string]bool
	protections []string
}

// item is an item of a ticket that grants access to the resource, with what happened to its statement.
type item struct {
	ticket *approval.Ticket
	at     int
	events []approval.Event // those that say whether the statement exists, in order
}

func (i *item) get() *approval.Item { return &i.ticket.Items[i.at] }

// lastEvent returns the last event up to an instant, and whether there are later ones.
func (i *item) lastEvent(at time.Time) (last *approval.Event, later bool) {
	for k := range i.events {
		if i.events[k].At.After(at) {
			return last, true
		}
		last = &i.events[k]
	}
	return last, false
}

// change is one recorded change of an object.
type change struct {
	at       time.Time
	external bool // outside of the portal
	created  bool // the object did not exist before
	deleted  bool
	// actor is the user of an external change; empty if it is unknown, so that the change may be older than its record.
	actor string
	// before and after are the specs of a change by a ticket, and of a covered one of another kind than policies.
	before, after json.RawMessage
	ticket        *approval.Ticket
	item          int
	effective     time.Time // when the change was effective; zero if it is not

	// The following are details of an external change.

	// since is an instant before which the change was not made, at if its time is exact, and zero if that is not known.
	since time.Time
	// covered reports whether the content before and after the change is recorded, and since is known.
	covered bool
	// uid identifies the object; it is empty in records of earlier versions. first and last are the generations that the change contains.
	uid         string
	first, last int64
	restored    bool // the generation is an earlier one
	// objectCreated is when the object was created; zero if it is not known.
	objectCreated time.Time
	// was and is are the statements of a policy that the change removed or replaced, and that it added or replaced, by sid.
	was, is map[string]*v1alpha1.Statement
}

// timeline contains the changes of the object with one name, in order.
type timeline struct {
	kind, name string
	changes    []change
}

func key(kind, name string) string { return kind + "/" + name }

// auditLine is a ledger line about a temporary audit of the resource.
type auditLine struct {
	entry ledger.Entry
	until time.Time
}

// index sorts the records by their subjects.
func (r *Records) index() {
	if r.indexed {
		return
	}
	r.indexed, r.objects, r.named = true, map[string]*timeline{}, map[string]bool{}
	r.policies = make(map[string]*v1alpha1.AccessControlPolicy, len(r.Present.Policies))
	for _, p := range r.Present.Policies {
		r.policies[p.Name] = p
	}
	r.protected = map[string]*v1alpha1.ProtectedResource{}
	for _, t := range r.Tickets {
		for i := range t.Items {
			switch it := &t.Items[i]; {
			case t.Kind.Access() && it.ResourceName == r.Resource:
				r.items = append(r.items, newItem(t, i))
			case it.Change != nil && it.WrittenGeneration > 0:
				r.addTicketChange(t, i)
			}
		}
	}
	slices.SortFunc(r.items, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.ticket.Number, b.ticket.Number), cmp.Compare(a.at, b.at))
	})
	r.addOutside(r.Lines)
	for _, e := range r.Lines {
		if strings.HasPrefix(e.Action, "resource.temporary-audit") {
			until, _ := time.Parse(time.RFC3339, e.Details["until"])
			r.audits = append(r.audits, auditLine{e, until})
		}
	}
	for _, p := range r.Present.Resources {
		if string(p.Spec.Resource) == r.Resource {
			r.protected[p.Name] = p
			r.timelineOf(kindProtection, p.Name).addCreation(p.CreationTimestamp.Time)
		}
	}
	for _, c := range r.Present.ResourceClasses {
		r.timelineOf(kindClass, c.Name).addCreation(c.CreationTimestamp.Time)
	}
	for _, o := range r.objects {
		slices.SortStableFunc(o.changes, compareChanges)
	}
	r.namesByKind = map[string][]string{}
	for _, o := range r.objects {
		r.namesByKind[o.kind] = append(r.namesByKind[o.kind], o.name)
	}
	for _, names := range r.namesByKind {
		slices.Sort(names)
	}
	r.protections = r.findProtections()
	slices.SortStableFunc(r.audits, func(a, b auditLine) int { return a.entry.At.Compare(b.entry.At) })
}

func newItem(t *approval.Ticket, i int) *item {
	out := &item{ticket: t, at: i}
	for _, e := range t.Events {
		if e.Item != i && (e.Item != approval.WholeTicket || len(t.Items) > 1) {
			continue
		}
		switch e.Kind {
		case approval.EventWritten, approval.EventEffective, approval.EventFailed, approval.EventRevokeWritten:
			out.events = append(out.events, e)
		}
	}
	slices.SortStableFunc(out.events, func(a, b approval.Event) int { return a.At.Compare(b.At) })
	return out
}

// addTicketChange adds the change of an object by a ticket, if it is about an object that the answers depend on.
func (r *Records) addTicketChange(t *approval.Ticket, i int) {
	it := &t.Items[i]
	switch it.Change.Kind {
	case kindProtection:
		if it.ResourceName != r.Resource {
			return
		}
	case kindClass:
	default:
		return
	}
	c := change{created: it.Change.Verb == approval.VerbCreate, deleted: it.Change.Verb == approval.VerbDelete, before: it.Change.Before,
		after: it.Change.After, ticket: t, item: i}
	c.at, c.effective = changeTimes(t, i)
	if !c.at.IsZero() {
		r.timelineOf(it.Change.Kind, it.Change.Name).add(c)
	}
}

// changeTimes returns when the change of an item was written first, and when every member had it; zero if it was not, or does not have it.
func changeTimes(t *approval.Ticket, item int) (written, effective time.Time) {
	for _, e := range t.Events {
		switch {
		case e.Item != item:
		case e.Kind == approval.EventWritten && written.IsZero():
			written = e.At
		case e.Kind == approval.EventEffective:
			effective = e.At
		}
	}
	return written, effective
}

func (r *Records) timelineOf(kind, name string) *timeline {
	o := r.objects[key(kind, name)]
	if o == nil {
		o = &timeline{kind: kind, name: name}
		r.objects[key(kind, name)] = o
	}
	return o
}

func (o *timeline) add(c change) { o.changes = append(o.changes, c) }

// recordingDelay bounds the time between the creation of an object by a ticket and the record of the ticket.
const recordingDelay = 2 * time.Minute

// addCreation adds the creation of the present object, unless a ticket or a change outside of the portal explains it.
func (o *timeline) addCreation(at time.Time) {
	if !slices.ContainsFunc(o.changes, func(c change) bool {
		return c.ticket != nil && c.created && !c.at.Before(at) && c.at.Sub(at) < recordingDelay ||
			c.external && c.created && !at.IsZero() && c.objectCreated.Equal(at)
	}) {
		o.add(change{at: at, created: true})
	}
}

// around returns the last change up to an instant and the first one after it; nil if there is none.
func (o *timeline) around(at time.Time) (before, after *change) {
	if o == nil {
		return nil, nil
	}
	for i := range o.changes {
		if o.changes[i].at.After(at) {
			return before, &o.changes[i]
		}
		before = &o.changes[i]
	}
	return before, nil
}

// externalAfter returns the first change outside of the portal after an instant; nil if there is none.
func (o *timeline) externalAfter(at time.Time) *change {
	if o == nil {
		return nil
	}
	for i := range o.changes {
		if o.changes[i].external && o.changes[i].at.After(at) {
			return &o.changes[i]
		}
	}
	return nil
}

// content is the known part of the content of an object at an instant.
type content struct {
	exists bool
	// known reports whether exists and spec are certain.
	known bool
	// spec is the content in canonical JSON; nil if the present object has it.
	spec json.RawMessage
	// at is when the object had all of the spec, as it is recorded; zero if it did not have all, because tickets leave out temporary audits.
	at    time.Time
	cause *change // the change after which the content is not known
}

// contentAt returns the content of an object at an instant. A ticket's change contains the content before and after it, and was written
// only because the object had the former. So do changes outside of the portal, unless they were not recorded with their content.
func (o *timeline) contentAt(at, now time.Time, present bool) content {
	before, after := o.around(at)
	switch {
	case after == nil:
		return content{exists: present, known: true, at: now}
	case after.mayPrecede(at):
	case after.created, after.objectCreated.After(at):
		return content{known: true}
	case after.covered:
		return content{exists: true, known: before != nil || !after.objectCreated.IsZero(), spec: after.before, at: after.at, cause: after}
	case !after.external:
		// Without an earlier record it is not certain that the object existed already.
		return content{exists: true, known: before != nil, spec: after.before, cause: after}
	case before != nil && before.ticket != nil && (after.actor != "" || after.uid != ""):
		// The change is not older than known, so the content is still that of the ticket.
		return content{exists: !before.deleted, known: true, spec: before.after}
	case before != nil && before.covered && after.uid != "":
		return content{exists: !before.deleted, known: true, spec: before.after, at: before.at}
	}
	return content{exists: present, at: now, cause: after}
}

// findProtections returns the names of the resource's ProtectedResources, present and past, sorted.
func (r *Records) findProtections() []string {
	var names []string
	for _, name := range r.namesByKind[kindProtection] {
		o := r.objects[key(kindProtection, name)]
		if name == policy.PolicyNameFor(r.Resource) || r.protected[name] != nil ||
			slices.ContainsFunc(o.changes, func(c change) bool { return c.ticket != nil || c.protects(r.Resource) }) {
			names = append(names, name)
		}
	}
	return names
}
