package approval

import (
	"slices"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// Delegation permits To to decide where From is an approver, between two instants.
type Delegation struct {
	ID         int64
	From, To   string
	Start, End time.Time
	Reason     string
	CreatedBy  string
	CreatedAt  time.Time
	EndedAt    time.Time // when it was ended early; zero if it was not
	EndedBy    string
}

// Active reports whether the delegation is in effect at an instant: not before its start, and before its end.
func (d Delegation) Active(at time.Time) bool {
	return !at.Before(d.Start) && at.Before(d.End) && (d.EndedAt.IsZero() || at.Before(d.EndedAt))
}

// Open reports whether the delegation has not ended at an instant. It may not have begun.
func (d Delegation) Open(at time.Time) bool {
	return at.Before(d.End) && (d.EndedAt.IsZero() || at.Before(d.EndedAt))
}

// LedgerEntry returns the ledger entry for the start of the delegation, or for its early end.
func (d Delegation) LedgerEntry() ledger.Entry {
	e := ledger.Entry{At: d.CreatedAt, Actor: d.CreatedBy, Action: "delegation.made", Object: d.From + " -> " + d.To,
		Details: map[string]string{"start": d.Start.UTC().Format(time.RFC3339), "end": d.End.UTC().Format(time.RFC3339), "reason": d.Reason}}
	if !d.EndedAt.IsZero() {
		e.At, e.Actor, e.Action = d.EndedAt, d.EndedBy, "delegation.ended"
	}
	return e
}

// standsFor returns the people for whom a person may decide at an instant, sorted.
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
