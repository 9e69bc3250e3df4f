package accessreview

import (
	"context"
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// Evidence is what was seen of an access in a window of time.
type Evidence struct {
	At   time.Time `json:"at,omitzero"` // when it was collected; zero if nothing is known, for example because the flows could not be read
	Days int       `json:"days"`        // the length of the window, or the age of the access if it is younger
	// LastUsed is zero, and Count 0, if no use was seen.
	LastUsed time.Time `json:"lastUsed,omitzero"`
	Count    int64     `json:"count,omitempty"`
	// Refused reports whether connections that the access allows were refused.
	Refused bool `json:"refused,omitempty"`
	// Uncertain reports whether connections were seen that may have been uses of the access, because the addresses that they came from are not
	// known.
	Uncertain bool `json:"uncertain,omitempty"`
	// Watched reports whether every member in which the resource is placed was watched for nearly all of the window, is
	// watched now, and lost few flows, so that an absence of use proves something. WatchedPercent and LostPercent are of
	// the member that is the worst.
	Watched        bool    `json:"watched,omitempty"`
	WatchedPercent float64 `json:"watchedPercent,omitempty"`
	LostPercent    float64 `json:"lostPercent,omitempty"`
	Member         string  `json:"member,omitempty"` // the worst one
}

// EvidenceReader reads the evidence of accesses from flows.
type EvidenceReader interface {
	// Evidence returns the evidence of accesses in the days before an instant, by the first grant of each. An access of which
	// nothing is known has none.
	Evidence(ctx context.Context, grants []approval.StandingGrant, days int, now time.Time) (map[approval.Target]Evidence, error)
}

// minQuiet is the least age of an access whose lack of use proves something.
const minQuiet = 14

// recommend returns the recommendation that follows from the evidence. Too little evidence is no reason to keep an access
// nor to end it.
func recommend(e Evidence, now time.Time) Decision {
	quiet := max(e.Days/3, minQuiet)
	switch {
	case e.At.IsZero():
		return None
	case !e.LastUsed.IsZero() && !e.LastUsed.Before(now.AddDate(0, 0, -quiet)):
		return Keep
	case e.Refused: // it is needed, and does not work
		return Keep
	case !e.Watched, e.Uncertain:
		return None
	case !e.LastUsed.IsZero():
		return Shorten
	case e.Days < minQuiet:
		return Keep
	}
	return Revoke
}

// text returns the evidence for the ledger.
func (e Evidence) text() message.Message {
	switch {
	case e.At.IsZero():
		return message.ReviewEvidenceUnknown()
	case !e.LastUsed.IsZero():
		return message.ReviewEvidenceUsed(e.LastUsed, int(e.Count), e.Days)
	case e.Uncertain:
		return message.ReviewEvidenceUncertain(e.Days)
	case !e.Watched:
		return message.ReviewEvidenceUnwatched(e.Days, fmt.Sprintf("%.0f%%", e.WatchedPercent), fmt.Sprintf("%.1f%%", e.LostPercent))
	}
	return message.ReviewEvidenceUnused(e.Days)
}
