package clickhouse

import (
	"context"
	"fmt"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/audit"
)

// removal describes rows of a table to be counted and deleted.
type removal struct {
	table, cond string
	args        []any
}

// keptBatches is the minimum number of days for which the IDs of batches and events are kept. A batch is retried soon after it
// failed, and a source is resumed shortly before its position.
const keptBatches = 3

func removals(r audit.Retention, now time.Time) []removal {
	cut := func(t time.Time) int64 { return int64(dayOf(t)) * secondsOfDay }
	var out []removal
	if !r.Rollups.IsZero() {
		out = append(
			out,
			removal{
				"entries",
				fmt.Sprintf("kind IN (%d, %d) AND bucket < toDateTime({cut:Int64}, 'UTC')", kindRollup, kindMinute),
				[]any{driver.Named("cut", cut(r.Rollups))},
			},
		)
	}
	if !r.Losses.IsZero() {
		out = append(
			out,
			removal{
				"entries",
				fmt.Sprintf("kind IN (%d, %d) AND last_seen < {cut:Int64}", kindLoss, kindWatch),
				[]any{driver.Named("cut", cut(r.Losses)*1_000_000)},
			},
		)
	}
	if !r.Flows.IsZero() {
		out = append(out, removal{"flows", "slot < toDateTime({cut:Int64}, 'UTC')", []any{driver.Named("cut", cut(r.Flows))}})
		// Flows without their batch are not returned, so batches are deleted after their flows.
		batches := min(dayOf(r.Flows), dayOf(now)-keptBatches)
		out = append(out, removal{"entries", fmt.Sprintf("kind = %d AND written < toDate({day:Int32})", kindBatch), []any{driver.Named("day", int32(batches))}})
	}
	out = append(
		out,
		removal{
			"entries",
			fmt.Sprintf("kind = %d AND last_seen < {cut:Int64}", kindSeen),
			[]any{driver.Named("cut", cut(now.Add(-keptBatches*24*time.Hour))*1_000_000)},
		},
	)
	if oldest := earliest(r.Rollups, r.Flows); !oldest.IsZero() {
		out = append(out, removal{"edges", "last < toDate({day:Int32})", []any{driver.Named("day", int32(dayOf(oldest)))}})
	}
	return out
}

// earliest returns the earlier time; zero, which deletes nothing, if one of them is zero.
func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Prune implements audit.Writer.
func (s *Store) Prune(ctx context.Context, r audit.Retention) (int64, error) {
	var total int64
	for _, x := range removals(r, s.now()) {
		n, err := s.remove(ctx, x)
		if err != nil {
			return total, fmt.Errorf("prune flow store: %s: %w", x.table, writeError(ctx, err))
		}
		total += n
	}
	s.edges.forget()
	return total, nil
}

func (s *Store) remove(ctx context.Context, x removal) (int64, error) {
	var n uint64
	if err := s.conn.QueryRow(ctx, "SELECT count() FROM "+x.table+" WHERE "+x.cond, x.args...).Scan(&n); err != nil || n == 0 {
		return 0, err
	}
	// The setting waits for all available replicas, so that deleted rows are not read any more.
	ctx = driver.Context(ctx, driver.WithSettings(driver.Settings{"mutations_sync": 2}))
	return int64(n), s.conn.Exec(ctx, s.options.statement("ALTER TABLE "+x.table+"{on} DELETE WHERE "+x.cond), x.args...)
}
