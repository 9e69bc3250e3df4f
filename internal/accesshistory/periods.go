package accesshistory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

// mostInstants bounds the instants that one query about periods evaluates; the newest are kept.
const mostInstants = 400

// Reach is the answer whether an application could reach the resource in a period.
type Reach string

const (
	// ReachAllowed means that statements let the application through.
	ReachAllowed Reach = "allowed"
	// ReachOpen means that the mode refused nobody.
	ReachOpen Reach = "open"
	// ReachNone means that the application was refused, and that the records cover the period.
	ReachNone Reach = "none"
	// ReachUnknown means that no certain record says that the application was let through, and that the records do not cover the period.
	ReachUnknown Reach = "unknown"
)

// CauseKind says what began or ended a period.
type CauseKind string

const (
	// CauseGranted means that the statement of a ticket was written.
	CauseGranted CauseKind = "granted"
	// CauseRevoked means that the statement of a ticket was removed.
	CauseRevoked CauseKind = "revoked"
	// CauseExpired means that the time of a statement was over.
	CauseExpired CauseKind = "expired"
	// CauseBegan means that the time of a statement began.
	CauseBegan CauseKind = "began"
	// CauseFailed means that the statement of a ticket vanished, was changed or was refused.
	CauseFailed CauseKind = "failed"
	// CauseHours means that the hours of a statement began or ended.
	CauseHours CauseKind = "hours"
	// CauseMode means that the mode was changed by a ticket.
	CauseMode CauseKind = "mode"
	// CauseAudit means that a temporary audit began.
	CauseAudit CauseKind = "audit"
	// CauseAuditEnded means that a temporary audit ended.
	CauseAuditEnded CauseKind = "audit-ended"
	// CauseClass means that the class was changed by a ticket.
	CauseClass CauseKind = "class"
	// CauseOutside means that an object was changed outside of the portal, or was onboarded by its class's default mode.
	CauseOutside CauseKind = "outside"
	// CauseRecords means that the records begin.
	CauseRecords CauseKind = "records"
)

// Cause is what happened at the begin or the end of a period.
type Cause struct {
	Kind   CauseKind
	Ticket *approval.Ticket // nil if it was no ticket
	Item   int
	Object string // KIND/NAME of a change outside of the portal
}

// Period is a time in which nothing about the access of an application changed.
type Period struct {
	From time.Time
	To   time.Time // zero if it lasts
	Reach
	Mode      v1alpha1.Mode
	ModeKnown bool
	// Reached are the actions that were let through.
	Reached []string
	// Lines are the statements that named the application.
	Lines []Line
	// Uncertain reports whether the records do not cover the period.
	Uncertain    bool
	Began, Ended []Cause
}

// same reports whether a period continues another one.
func (p *Period) same(o *Period) bool {
	return p.Reach == o.Reach && p.Mode == o.Mode && p.ModeKnown == o.ModeKnown && p.Uncertain == o.Uncertain && slices.Equal(p.Reached, o.Reached) &&
		slices.EqualFunc(p.Lines, o.Lines, func(a, b Line) bool { return a.Ref == b.Ref && a.Subject == b.Subject && a.Effect == b.Effect })
}

// Periods returns the periods of the access of an application, by its name, oldest first. The first one begins with the records, or with the
// oldest change that one query evaluates; cut reports the latter. The error is that of the context.
func (r *Records) Periods(ctx context.Context, application string) (periods []Period, cut bool, err error) {
	r.index()
	causes := r.causes(application)
	var instants []time.Time
	for at := range causes {
		if !at.Before(r.Begin) && !at.After(r.Now) {
			instants = append(instants, at)
		}
	}
	if len(instants) == 0 {
		instants = []time.Time{r.Now}
	}
	slices.SortFunc(instants, time.Time.Compare)
	if cut = len(instants) > mostInstants; cut {
		instants = instants[len(instants)-mostInstants:]
	}
	var snapshot *policy.Snapshot
	for _, at := range instants {
		if err := ctx.Err(); err != nil {
			return nil, cut, err
		}
		s := r.stateAt(at, snapshot)
		snapshot = s.snapshot
		next := r.period(s, application)
		next.Began = causes[at]
		if n := len(periods); n > 0 {
			if periods[n-1].same(&next) {
				continue
			}
			periods[n-1].To, periods[n-1].Ended = at, causes[at]
		}
		periods = append(periods, next)
	}
	return periods, cut, nil
}

// period returns the access of an application in a state.
func (r *Records) period(s *state, application string) Period {
	p := Period{From: s.at, Mode: s.snapshot.EffectiveMode(r.Resource, "", s.at), ModeKnown: s.modeKnown, Uncertain: len(s.gaps) > 0}
	certain := false
	p.Reached, _ = reached(s.snapshot, application, r.Resource, nil, s.at)
	for _, g := range s.snapshot.WhoCanReach(r.Resource, s.at) {
		if !names(g.Subject, application) {
			continue
		}
		l := r.line(s, g)
		p.Lines = append(p.Lines, l)
		if l.Effect == policy.Allow && !l.Uncertain && l.Counting {
			certain = certain || slices.ContainsFunc(l.Actions, func(a string) bool { return slices.Contains(p.Reached, a) })
		}
	}
	switch {
	case certain:
		p.Reach = ReachAllowed
	case p.ModeKnown && p.Mode != v1alpha1.ModeEnforce:
		p.Reach = ReachOpen
	case len(p.Reached) > 0 || p.Uncertain:
		p.Reach = ReachUnknown
	default:
		p.Reach = ReachNone
	}
	return p
}

// names reports whether a subject as written stands for an application.
func names(subject, application string) bool {
	if stem, wild := strings.CutSuffix(subject, "*"); wild {
		return strings.HasPrefix(application, stem)
	}
	return subject == application
}

// causes returns what happened at each instant at which the access of an application may have changed.
func (r *Records) causes(application string) map[time.Time][]Cause {
	out := map[time.Time][]Cause{}
	add := func(at time.Time, c Cause) {
		if !at.IsZero() {
			at = at.UTC()
			out[at] = append(out[at], c)
		}
	}
	add(r.Begin, Cause{Kind: CauseRecords})
	for _, i := range r.items {
		if it := i.get(); it.ApplicationName == application {
			i.addCauses(add)
			r.addHours(it.Hours, Cause{Kind: CauseHours, Ticket: i.ticket, Item: i.at}, add)
		}
	}
	for _, o := range r.objects {
		r.addObjectCauses(o, add)
		if r.named[key(o.kind, o.name)] {
			r.addStatementCauses(o, application, add)
		}
	}
	for _, l := range r.audits {
		if l.entry.Action == "resource.temporary-audit" {
			add(l.entry.At, Cause{Kind: CauseAudit})
			add(l.until, Cause{Kind: CauseAuditEnded})
		} else {
			add(l.entry.At, Cause{Kind: CauseAuditEnded})
		}
	}
	for _, g := range r.Snapshot.WhoCanReach(r.Resource, r.Begin) {
		if _, ticket := approval.TicketOfSID(g.Ref.SID); !ticket && names(g.Subject, application) {
			add(g.NotBefore, Cause{Kind: CauseBegan, Object: key(kindPolicy, g.Ref.Policy)})
			add(g.NotAfter, Cause{Kind: CauseExpired, Object: key(kindPolicy, g.Ref.Policy)})
			r.addHours(g.Hours, Cause{Kind: CauseHours, Object: key(kindPolicy, g.Ref.Policy)}, add)
		}
	}
	for _, at := range r.Restored {
		if _, ok := out[at.UTC()]; !ok {
			out[at.UTC()] = nil
		}
	}
	return out
}

// addHours adds the newest instants at which hours began or ended, at most as many as one query evaluates.
func (r *Records) addHours(w *v1alpha1.WeeklyHours, c Cause, add func(time.Time, Cause)) {
	if w == nil {
		return
	}
	hours, err := policy.ParseHours(w)
	if err != nil {
		return // the statement never counted
	}
	at := r.Now
	for range mostInstants + 1 {
		edge, ok := hours.Last(at)
		if !ok || edge.Before(r.Begin) {
			return
		}
		add(edge, c)
		at = edge.Add(-time.Second)
	}
}

// addCauses adds what happened to the statement of an item.
func (i *item) addCauses(add func(time.Time, Cause)) {
	for _, e := range i.events {
		c := Cause{Ticket: i.ticket, Item: i.at}
		switch e.Kind {
		case approval.EventWritten:
			c.Kind = CauseGranted
		case approval.EventRevokeWritten:
			c.Kind = CauseRevoked
		case approval.EventFailed:
			c.Kind = CauseFailed
		default:
			continue
		}
		add(e.At, c)
	}
	if i.get().WrittenGeneration > 0 {
		add(i.get().End(), Cause{Kind: CauseExpired, Ticket: i.ticket, Item: i.at})
	}
}

// addObjectCauses adds the changes of an object that the access of an application may depend on.
func (r *Records) addObjectCauses(o *timeline, add func(time.Time, Cause)) {
	if o.kind == kindProtection && !slices.Contains(r.protections, o.name) {
		return
	}
	for i := range o.changes {
		c := &o.changes[i]
		x := Cause{Kind: CauseOutside, Object: key(o.kind, o.name)}
		if o.kind == kindPolicy && c.covered && c.single() && !r.named[key(o.kind, o.name)] {
			continue // it says nothing about the resource
		}
		if c.ticket != nil {
			x = Cause{Kind: CauseMode, Ticket: c.ticket, Item: c.item}
			if o.kind == kindClass {
				x.Kind = CauseClass
			}
			add(c.effective, x) // a gap about the rollout of a stricter mode ends
		}
		add(c.at, x)
		if c.since.Before(c.at) {
			add(c.since, x) // what was in force is not certain until its record
		}
	}
}

// addStatementCauses adds the beginnings and ends, also of their hours, of the statements about an application that changes outside of the portal removed.
func (r *Records) addStatementCauses(o *timeline, application string, add func(time.Time, Cause)) {
	for i := range o.changes {
		for _, st := range o.changes[i].was {
			_, ticket := approval.TicketOfSID(st.SID)
			if ticket || !slices.ContainsFunc(st.Subjects, func(s v1alpha1.Subject) bool { return names(string(s), application) }) {
				continue
			}
			if st.NotBefore != nil {
				add(st.NotBefore.Time, Cause{Kind: CauseBegan, Object: key(o.kind, o.name)})
			}
			if st.NotAfter != nil {
				add(st.NotAfter.Time, Cause{Kind: CauseExpired, Object: key(o.kind, o.name)})
			}
			r.addHours(st.Hours, Cause{Kind: CauseHours, Object: key(o.kind, o.name)}, add)
		}
	}
}
