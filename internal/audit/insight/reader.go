package insight

import (
	"context"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// Reader is what is asked of a flow store.
type Reader interface {
	// Totals hands over each edge once, by resource and subject.
	Totals(ctx context.Context, f audit.Filter, each func(audit.Total) error) error
	Coverage(ctx context.Context, since, until time.Time) ([]audit.Coverage, error)
	Series(ctx context.Context, q audit.SeriesQuery) ([]audit.Point, error)
}

// Preset figures of the portal and the command line.
const (
	// DefaultWindow is the past that a score, a replay and a proposal look at.
	DefaultWindow = 14 * 24 * time.Hour
	// DefaultThreshold is the score from which on a resource can be enforced.
	DefaultThreshold = 70
	// DefaultQuietFor is how long a statement has to be without traffic to be called unused.
	DefaultQuietFor = 30 * 24 * time.Hour
)

const day = 24 * time.Hour
