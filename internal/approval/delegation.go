package approval

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// Delegation lets To decide where From is an approver, between two instants.
type Delegation struct {
	ID         int64
	From, To   string
	Start, End time.Time
	Reason     string
	CreatedBy  string
	CreatedAt  time.Time
	EndedAt    time.Time // ended before its End; zero: not
	EndedBy    string
}

// Active tells whether the delegation counts at an instant: from its start on, before its end.
func (d Delegation) Active(at time.Time) bool {
	return !at.Before(d.Start) && at.Before(d.End) && (d.EndedAt.IsZero() || at.Before(d.EndedAt))
}

// LedgerEntry is the ledger's line for the delegation's beginning, or for its early end.
func (d Delegation) LedgerEntry() ledger.Entry {
	e := ledger.Entry{At: d.CreatedAt, Actor: d.CreatedBy, Action: "delegation.made", Object: d.From + " -> " + d.To,
		Details: map[string]string{"start": d.Start.UTC().Format(time.RFC3339), "end": d.End.UTC().Format(time.RFC3339), "reason": d.Reason}}
	if !d.EndedAt.IsZero() {
		e.At, e.Actor, e.Action = d.EndedAt, d.EndedBy, "delegation.ended"
	}
	return e
}

// standsFor are the people for whom somebody may decide now, sorted.
func standsFor(all []Delegation, person string, at time.Time) []string {
	var out []string
	for _, d := range all {
		if d.To == person && d.From != person && d.Active(at) {
			out = append(out, d.From)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
