package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

const (
	// rowsPerInsert is the number of rows of one INSERT statement. The driver searches each value among all bound ones, so larger
	// statements are slower per row.
	rowsPerInsert = 60
	// foldDelay is the time after the end of an hour at which it is folded. Roll-ups that arrive later are added to both tables.
	foldDelay = time.Hour
	// foldsPerAppend bounds the number of hours that one batch folds.
	foldsPerAppend = 4

	onConflict = ` ON CONFLICT DO UPDATE SET count = count + excluded.count, first_seen = min(first_seen, excluded.first_seen), ` +
		`last_seen = max(last_seen, excluded.last_seen)`
	sqlTally = `INSERT INTO tallies (bucket, decision, count) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count`
	sqlFold  = `INSERT INTO hours (edge, bucket, count, first_seen, last_seen) SELECT edge, ?, sum(count), min(first_seen), max(last_seen) FROM rollups` +
		` WHERE bucket >= ? AND bucket < ? GROUP BY edge ORDER BY edge`
)

// row is a row of the tables rollups and hours.
type row struct{ bucket, edge, count, first, last int64 }

func addRollups(ctx context.Context, tx *sql.Tx, b *audit.Batch, ids *edgeIDs) error {
	if len(b.Rollups) == 0 {
		return nil
	}
	rows := make([]row, 0, len(b.Rollups))
	tallies := map[tally]int64{}
	for i := range b.Rollups {
		r := &b.Rollups[i]
		id, err := ids.of(ctx, &r.Edge)
		if err != nil {
			return err
		}
		tallies[tally{micros(r.Bucket), string(r.Decision)}] += r.Count
		rows = append(rows, row{micros(r.Bucket), id, r.Count, micros(r.FirstSeen), micros(r.LastSeen)})
	}
	// In table order each page is visited once.
	slices.SortFunc(rows, func(x, y row) int { return cmp.Or(cmp.Compare(x.bucket, y.bucket), cmp.Compare(x.edge, y.edge)) })
	if err := insertRows(ctx, tx, "rollups", rows); err != nil {
		return err
	}
	for t, n := range tallies {
		if _, err := tx.ExecContext(ctx, sqlTally, t.bucket, t.decision, n); err != nil {
			return fmt.Errorf("tallies: %w", err)
		}
	}
	return fold(ctx, tx, rows)
}

type tally struct {
	bucket   int64
	decision string
}

func insertRows(ctx context.Context, tx *sql.Tx, table string, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	text := func(n int) string {
		return "INSERT INTO " + table + " (bucket, edge, count, first_seen, last_seen) VALUES (?, ?, ?, ?, ?)" + strings.Repeat(
			", (?, ?, ?, ?, ?)",
			n-1,
		) + onConflict
	}
	full, err := tx.PrepareContext(ctx, text(rowsPerInsert))
	if err != nil {
		return err
	}
	defer full.Close()
	args := make([]any, 0, 5*rowsPerInsert)
	for len(rows) > 0 {
		chunk := rows[:min(len(rows), rowsPerInsert)]
		rows = rows[len(chunk):]
		args = args[:0]
		for _, r := range chunk {
			args = append(args, r.bucket, r.edge, r.count, r.first, r.last)
		}
		if len(chunk) < rowsPerInsert {
			if _, err := tx.ExecContext(ctx, text(len(chunk)), args...); err != nil {
				return err
			}
			continue
		}
		if _, err := full.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// fold adds late rows to the hours, and sums up the hours that have ended. The rows must be sorted by bucket.
func fold(ctx context.Context, tx *sql.Tx, rows []row) error {
	hour := time.Hour.Microseconds()
	var folded, newest int64
	if err := tx.QueryRowContext(ctx, `SELECT folded, newest FROM folding`).Scan(&folded, &newest); err != nil {
		return err
	}
	oldest := rows[0].bucket
	if newest == 0 {
		folded = oldest / hour * hour
	}
	newest = max(newest, rows[len(rows)-1].bucket)
	if err := insertRows(ctx, tx, "hours", byHour(rows, folded)); err != nil {
		return fmt.Errorf("hours: %w", err)
	}
	for range foldsPerAppend {
		var next sql.NullInt64
		if err := tx.QueryRowContext(ctx, `SELECT min(bucket) FROM rollups WHERE bucket >= ?`, folded).Scan(&next); err != nil {
			return err
		}
		if folded = max(folded, next.Int64/hour*hour); folded+hour+foldDelay.Microseconds() > newest {
			break
		}
		if _, err := tx.ExecContext(ctx, sqlFold, folded, folded, folded+hour); err != nil {
			return fmt.Errorf("fold: %w", err)
		}
		folded += hour
	}
	_, err := tx.ExecContext(ctx, `UPDATE folding SET folded = ?, newest = ?`, folded, newest)
	return err
}

// byHour sums up the rows before the time by edge and hour.
func byHour(rows []row, before int64) []row {
	hour := time.Hour.Microseconds()
	sums := map[[2]int64]row{}
	for _, r := range rows {
		if r.bucket >= before {
			break
		}
		r.bucket = r.bucket / hour * hour
		k := [2]int64{r.edge, r.bucket}
		if have, ok := sums[k]; ok {
			r.count += have.count
			r.first, r.last = min(r.first, have.first), max(r.last, have.last)
		}
		sums[k] = r
	}
	out := make([]row, 0, len(sums))
	for _, r := range sums {
		out = append(out, r)
	}
	slices.SortFunc(out, func(x, y row) int { return cmp.Or(cmp.Compare(x.edge, y.edge), cmp.Compare(x.bucket, y.bucket)) })
	return out
}
