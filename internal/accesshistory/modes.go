package accesshistory

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/policy"
)

// mostModes bounds the changes of a history of modes; the newest are kept.
const mostModes = 500

// ModeChangeKind is the kind of a change of a resource's mode.
type ModeChangeKind string

const (
	// ModeTicket is a change of the mode by a ticket, which also onboards and offboards.
	ModeTicket ModeChangeKind = "ticket"
	// ModeOutside is a change of the protection outside of the portal. It has no modes if its content is not recorded.
	ModeOutside ModeChangeKind = "outside"
	// ModeAudit is the begin of a temporary audit, or a new end of the active one.
	ModeAudit ModeChangeKind = "audit"
	// ModeAuditEnded is the end of a temporary audit by a person.
	ModeAuditEnded ModeChangeKind = "audit-ended"
	// ModeAuditExpired is the end of a temporary audit at its time.
	ModeAuditExpired ModeChangeKind = "audit-expired"
	// ModeAuditFailed means that the preceding begin or end of a temporary audit did not happen.
	ModeAuditFailed ModeChangeKind = "audit-failed"
)

// ModeChange is a change of a resource's mode.
type ModeChange struct {
	Kind ModeChangeKind
	At   time.Time // when the host cluster had it
	// Effective is when every member had the change of a ticket; zero if they do not have it, or if it is no ticket.
	Effective time.Time
	// From and To are the modes before and after a change by a ticket or outside of the portal; empty: not onboarded.
	From, To v1alpha1.Mode
	// Clusters are the members that have another mode by the change.
	Clusters []v1alpha1.ClusterMode
	Until    time.Time // the end of a temporary audit
	// Actor is the person, kubernetes:USER for changes outside of the portal, or unknown; empty for the portal.
	Actor, Reason string
	Ticket        *approval.Ticket
	Item          int
	Object        string // KIND/NAME of a change outside of the portal
}

// ModeHistory is the history of a resource's modes.
type ModeHistory struct {
	Changes []ModeChange // newest first
	Cut     bool         // there are older changes
	// Begin is the time of the first record; earlier changes are not known.
	Begin time.Time
}

// Modes returns the history of the modes and temporary audits of a resource, of which present has the protections.
func (r *Reader) Modes(ctx context.Context, e catalog.Entity, present policy.Input, now time.Time) (ModeHistory, error) {
	var out ModeHistory
	tickets, err := r.Tickets.List(ctx, approval.Filter{Resource: e.ID, Limit: mostModes + 1,
		Kinds: []approval.Kind{approval.KindMode, approval.KindOnboard, approval.KindOffboard}, OmitComments: true})
	if err != nil {
		return out, err
	}
	out.Cut = len(tickets) > mostModes
	filters := []ledger.Filter{{Object: e.ID}}
	for _, name := range protectionsOf(e.Name, present) {
		filters = append(filters, ledger.Filter{Object: name})
	}
	var lines []ledger.Entry
	for _, f := range filters {
		entries, more, err := r.lines(ctx, f, mostLines)
		if err != nil {
			return out, err
		}
		out.Cut = out.Cut || more
		lines = append(lines, entries...)
	}
	if out.Begin, err = r.begin(ctx); err != nil {
		return out, err
	}
	for _, t := range tickets {
		out.Changes = append(out.Changes, ticketModes(t, e.Name)...)
	}
	out.Changes = append(out.Changes, auditChanges(lines, now)...)
	for _, l := range lines {
		switch l.Action {
		case externalchanges.ActionCreated, externalchanges.ActionUpdated, externalchanges.ActionDeleted:
			out.Changes = append(out.Changes, outsideModes(l))
		}
	}
	slices.SortStableFunc(out.Changes, func(a, b ModeChange) int { return b.At.Compare(a.At) })
	if len(out.Changes) > mostModes {
		out.Changes, out.Cut = out.Changes[:mostModes], true
	}
	return out, nil
}

// ticketModes returns the changes of a ticket that were written.
func ticketModes(t *approval.Ticket, resource string) []ModeChange {
	var out []ModeChange
	for i := range t.Items {
		it := &t.Items[i]
		if it.Change == nil || it.Change.Kind != kindProtection || it.ResourceName != resource {
			continue
		}
		c := ModeChange{Kind: ModeTicket, From: it.Change.FromMode, To: it.Change.ToMode, Actor: t.Requester, Reason: t.Reason, Ticket: t, Item: i}
		var after v1alpha1.ProtectedResourceSpec
		if json.Unmarshal(it.Change.After, &after) == nil {
			c.Clusters = after.ClusterModes
		}
		c.At, c.Effective = changeTimes(t, i)
		if !c.At.IsZero() {
			out = append(out, c)
		}
	}
	return out
}

// outsideModes returns the change of a protection outside of the portal.
func outsideModes(e ledger.Entry) ModeChange {
	out := ModeChange{Kind: ModeOutside, At: e.At, Actor: e.Actor, Object: e.Object}
	r, _ := externalchanges.ReadEntry(e)
	var before, after v1alpha1.ProtectedResourceSpec
	if r.Before != nil && json.Unmarshal(r.Before, &before) == nil {
		out.From = before.Mode
	}
	if r.After != nil && json.Unmarshal(r.After, &after) == nil {
		out.To, out.Clusters = after.Mode, after.ClusterModes
	}
	return out
}

// auditChanges returns the changes by temporary audits, with the ends of those that ended at their time.
func auditChanges(lines []ledger.Entry, now time.Time) []ModeChange {
	lines = slices.DeleteFunc(slices.Clone(lines), func(e ledger.Entry) bool { return !strings.HasPrefix(e.Action, "resource.temporary-audit") })
	slices.SortStableFunc(lines, func(a, b ledger.Entry) int { return a.At.Compare(b.At) })
	var out []ModeChange
	for i, e := range lines {
		c := ModeChange{At: e.At, Actor: cmp.Or(e.Actor, e.Details["by"]), Reason: e.Details["reason"]}
		switch e.Action {
		case "resource.temporary-audit":
			c.Kind = ModeAudit
			c.Until, _ = time.Parse(time.RFC3339, e.Details["until"])
			expires := !c.Until.IsZero() && !c.Until.After(now) && (i+1 == len(lines) || lines[i+1].At.After(c.Until))
			if expires {
				out = append(out, ModeChange{Kind: ModeAuditExpired, At: c.Until})
			}
		case "resource.temporary-audit-ended":
			c.Kind = ModeAuditEnded
		default:
			c.Kind = ModeAuditFailed
		}
		out = append(out, c)
	}
	return out
}
