package insight

import (
	"context"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// Reader is the interface of a flow store.
type Reader interface {
	// Totals passes each edge once, ordered by resource and subject.
	Totals(ctx context.Context, f audit.Filter, each func(audit.Total) error) error
	Coverage(ctx context.Context, since, until time.Time) ([]audit.Coverage, error)
	Series(ctx context.Context, q audit.SeriesQuery) ([]audit.Point, error)
}

// Default values of the portal and the command line.
const (
	// DefaultWindow is the period that a score, a replay and a proposal evaluate.
	DefaultWindow = 14 * 24 * time.Hour
	// DefaultThreshold is the score from which on a resource can be enforced.
	DefaultThreshold = 70
	// DefaultQuietFor is the time without traffic after which a statement counts as unused.
	DefaultQuietFor = 30 * 24 * time.Hour
)

const day = 24 * time.Hour
