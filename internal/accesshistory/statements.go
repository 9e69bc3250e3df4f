package accesshistory

import (
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
)

// otherStatements returns the statements of a policy at an instant by sid, and which of them are certain. It takes back the changes outside of
// the portal that were made later, the newest first. Statements of the resource's tickets may be among them, as they are at present.
func otherStatements(at time.Time, o *timeline, present *v1alpha1.AccessControlPolicy) (map[string]*v1alpha1.Statement, map[string]bool) {
	statements, certain := map[string]*v1alpha1.Statement{}, map[string]bool{}
	put := func(list map[string]*v1alpha1.Statement, known bool) {
		for sid, st := range list {
			statements[sid], certain[sid] = st, known
		}
	}
	if present != nil {
		for i := range present.Spec.Statements {
			st := &present.Spec.Statements[i]
			statements[st.SID], certain[st.SID] = st, true
		}
	}
	created := present != nil && present.CreationTimestamp.After(at) // after the instant
	if o != nil {
		for i := len(o.changes) - 1; i >= 0 && o.changes[i].at.After(at); i-- {
			c := &o.changes[i]
			if !c.external {
				continue
			}
			created = false
			switch {
			case c.mayPrecede(at):
				put(c.was, false)
				clear(certain)
			case c.created, c.objectCreated.After(at):
				clear(statements)
			case !c.covered:
				clear(certain)
				created = present != nil && c.uid == "" && present.CreationTimestamp.After(at)
			default:
				if c.deleted {
					clear(statements)
				}
				for sid := range c.is {
					delete(statements, sid)
				}
				put(c.was, true)
			}
		}
	}
	if created {
		clear(statements)
	}
	return statements, certain
}

// ticketStatement returns the statement of an item at an instant, nil if the host cluster did not have it, and whether that is certain.
func (r *Records) ticketStatement(at time.Time, i *item, o *timeline, present *v1alpha1.AccessControlPolicy) (st *v1alpha1.Statement, certain bool) {
	it := i.get()
	written := statementOf(present, it)
	ticketed := func() *v1alpha1.Statement {
		if written != nil {
			return written
		}
		return new(approval.Statement(*it))
	}
	if !o.hasCovered() {
		has, certain := i.hadStatement(at, written != nil, o.externalAfter(at) != nil)
		if !has {
			return nil, certain
		}
		return ticketed(), certain
	}
	// Nothing changed the statement between the instant and a later one at which its content is recorded.
	before, after := o.mentions(at, it.SID)
	until, later := r.Now, written
	if after != nil {
		until, later = after.at, after.was[it.SID]
	}
	last := i.lastWrite(at)
	switch {
	case o.mayPrecede(at):
		st = later
		if st == nil && after != nil {
			st = after.is[it.SID]
		}
		if st == nil && last != nil && last.Kind == approval.EventWritten {
			st = ticketed()
		}
		return st, false
	case !i.writtenBetween(at, until) && !o.uncoveredBetween(at, until):
		return later, true
	case before != nil && (last == nil || !last.At.After(before.at)):
		return before.is[it.SID], !o.uncoveredBetween(before.at, at)
	case last == nil || last.Kind == approval.EventRevokeWritten:
		return nil, true
	}
	failed := slices.ContainsFunc(i.events, func(e approval.Event) bool {
		return e.Kind == approval.EventFailed && e.At.After(last.At) && !e.At.After(at)
	})
	return ticketed(), !failed
}

// mentions returns the last change up to an instant, and the first one after it, whose recorded content has the statement with a sid; nil if
// there is none.
func (o *timeline) mentions(at time.Time, sid string) (before, after *change) {
	for i := range o.changes {
		c := &o.changes[i]
		if !c.covered || c.was[sid] == nil && c.is[sid] == nil {
			continue
		}
		if c.at.After(at) {
			return before, c
		}
		before = c
	}
	return before, nil
}

// mayPrecede reports whether a change that was recorded after an instant may have been made before it.
func (o *timeline) mayPrecede(at time.Time) bool {
	return slices.ContainsFunc(o.changes, func(c change) bool { return c.external && c.at.After(at) && c.mayPrecede(at) })
}

// uncoveredBetween reports whether there is a change outside of the portal after an instant and up to another whose content is not recorded.
func (o *timeline) uncoveredBetween(from, to time.Time) bool {
	return slices.ContainsFunc(o.changes, func(c change) bool { return c.external && !c.covered && c.at.After(from) && !c.at.After(to) })
}

// lastWrite returns when the portal wrote or removed the statement last up to an instant; nil if it did not.
func (i *item) lastWrite(at time.Time) (last *approval.Event) {
	for k := range i.events {
		if e := &i.events[k]; !e.At.After(at) && (e.Kind == approval.EventWritten || e.Kind == approval.EventRevokeWritten) {
			last = e
		}
	}
	return last
}

// writtenBetween reports whether the portal wrote or removed the statement after an instant and up to another.
func (i *item) writtenBetween(from, to time.Time) bool {
	return slices.ContainsFunc(i.events, func(e approval.Event) bool {
		return (e.Kind == approval.EventWritten || e.Kind == approval.EventRevokeWritten) && e.At.After(from) && !e.At.After(to)
	})
}
