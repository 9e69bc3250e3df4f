package accesshistory

import (
	"context"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/policy"
)

// Bounds of what one request reads.
const (
	mostTickets      = 1000
	mostClassTickets = 200
	mostLines        = 2000 // of one action or one object
	mostRestores     = 50
)

// Reader reads the records about resources.
type Reader struct {
	Tickets interface {
		List(ctx context.Context, f approval.Filter) ([]*approval.Ticket, error)
	}
	Ledger ledger.Reader
}

// Read returns the records about a resource that queries about instants from since on need. present and snapshot are the present state of
// the host cluster. It reads a bounded number of tickets and lines; Records.Unread says what is missing.
func (r *Reader) Read(ctx context.Context, e catalog.Entity, present policy.Input, snapshot *policy.Snapshot, since, now time.Time) (*Records, error) {
	out := &Records{Resource: e.Name, Now: now, Present: present, Snapshot: snapshot}
	for _, f := range []approval.Filter{
		{Resource: e.ID, Limit: mostTickets + 1, OmitComments: true},
		{Kinds: []approval.Kind{approval.KindClass}, Limit: mostClassTickets + 1, OmitComments: true},
	} {
		list, err := r.Tickets.List(ctx, f)
		if err != nil {
			return nil, err
		}
		if len(list) == f.Limit { // a ticket that was not read may have been effective until now
			out.unread(now)
		}
		out.Tickets = append(out.Tickets, list...)
	}
	begin, err := r.begin(ctx)
	if err != nil {
		return nil, err
	}
	out.Begin = begin
	filters := []ledger.Filter{
		{Action: externalchanges.ActionCreated, From: since}, {Action: externalchanges.ActionUpdated, From: since},
		{Action: externalchanges.ActionDeleted, From: since}, {Object: e.ID},
	}
	for _, name := range append(objectsOf(e.Name, present, snapshot), policiesOf(e.Name, out.Tickets)...) {
		filters = append(filters, ledger.Filter{Object: name, To: since})
	}
	seen := map[lineKey]bool{}
	for _, f := range filters {
		entries, cut, err := r.lines(ctx, f, mostLines)
		if err != nil {
			return nil, err
		}
		for _, e := range entries { // the filters overlap
			if k := (lineKey{e.At, e.Action, e.Object, e.Details["generation"]}); !seen[k] {
				seen[k], out.Lines = true, append(out.Lines, e)
			}
		}
		if cut {
			out.unread(entries[len(entries)-1].At)
		}
	}
	restored, _, err := r.lines(ctx, ledger.Filter{Action: "portal.restored", From: since}, mostRestores)
	for i := range restored {
		out.Restored = append(out.Restored, restored[i].At)
	}
	return out, err
}

// lineKey identifies a line of the ledger.
type lineKey struct {
	at                         time.Time
	action, object, generation string
}

// begin returns the time of the first record; zero if there is none.
func (r *Reader) begin(ctx context.Context) (time.Time, error) {
	first, _, err := r.Ledger.List(ctx, ledger.Filter{Oldest: true, Limit: 1})
	if err != nil || len(first) == 0 {
		return time.Time{}, err
	}
	e, err := first[0].Entry()
	return e.At, err
}

// objectsOf returns the objects whose earlier changes matter, too: the resource's protections and its class.
func objectsOf(resource string, present policy.Input, snapshot *policy.Snapshot) []string {
	names := protectionsOf(resource, present)
	if c, ok := snapshot.ResourceClassOf(resource); ok {
		names = append(names, key(kindClass, c.Name))
	}
	return names
}

// policiesOf returns the policies that have, or had, the statements of tickets about the resource, sorted. Earlier changes of them matter,
// because a statement may have been removed outside of the portal.
func policiesOf(resource string, tickets []*approval.Ticket) []string {
	names := map[string]bool{}
	for _, t := range tickets {
		for i := range t.Items {
			if t.Kind.Access() && t.Items[i].ResourceName == resource {
				x := item{ticket: t, at: i}
				names[key(kindPolicy, x.policy())] = true
			}
		}
	}
	return sortedNames(names)
}

// protectionsOf returns the objects that are protections of the resource, sorted.
func protectionsOf(resource string, present policy.Input) []string {
	names := map[string]bool{key(kindProtection, policy.PolicyNameFor(resource)): true}
	for _, p := range present.Resources {
		if string(p.Spec.Resource) == resource {
			names[key(kindProtection, p.Name)] = true
		}
	}
	return sortedNames(names)
}

func (r *Records) unread(at time.Time) {
	if at.After(r.Unread) {
		r.Unread = at
	}
}

// lines returns the newest lines of a filter, newest first, and whether there are more.
func (r *Reader) lines(ctx context.Context, f ledger.Filter, most int) (out []ledger.Entry, more bool, err error) {
	f.Limit = ledger.MaxPage
	for {
		lines, next, err := r.Ledger.List(ctx, f)
		if err != nil {
			return nil, false, err
		}
		for _, l := range lines {
			if len(out) == most {
				return out, true, nil
			}
			e, err := l.Entry()
			if err != nil {
				return nil, false, err
			}
			out = append(out, e)
		}
		if next == 0 {
			return out, false, nil
		}
		f.After = next
	}
}
