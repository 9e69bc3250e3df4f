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
	// foldDelay is the time after the end of an hour at which it is folded. Roll-ups that arrive later are added to all tables.
	foldDelay = time.Hour
	// hoursPerAppend and daysPerAppend bound the number of hours and of days that one batch folds.
	hoursPerAppend = 4
	daysPerAppend  = 1

	onConflict = ` ON CONFLICT DO UPDATE SET count = count + excluded.count, first_seen = min(first_seen, excluded.first_seen), ` +
		`last_seen = max(last_seen, excluded.last_seen)`
	sqlTally = `INSERT INTO tallies (bucket, decision, count) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count`
	sqlHour  = `INSERT INTO hours (edge, bucket, count, first_seen, last_seen) SELECT edge, ?, sum(count), min(first_seen), max(last_seen) FROM rollups` +
		` WHERE bucket >= ? AND bucket < ? GROUP BY edge ORDER BY edge`
	// The hours are ordered by edge, so that those of a day are looked up for each edge.
	sqlDay = `INSERT INTO days (edge, bucket, count, first_seen, last_seen) SELECT h.edge, ?, sum(h.count), min(h.first_seen), max(h.last_seen)` +
		` FROM edges e CROSS JOIN hours h WHERE h.edge = e.id AND h.bucket >= ? AND h.bucket < ? GROUP BY h.edge ORDER BY h.edge`
	// Minutes are kept as long as the hours and days that contain them.
	sqlNext = `SELECT min(bucket) FROM rollups WHERE bucket >= ?`
)

// row is a row of the tables rollups, hours and days.
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

// folding is the row of the table folding. All roll-ups before the hour "hours" are in the table hours, and all before the day "days" are in
// the table days, too. The day is never later than the hour.
type folding struct{ hours, days, newest int64 }

// fold adds late rows to the hours and days, and sums up the hours and days that have ended. The rows must be sorted by bucket.
func fold(ctx context.Context, tx *sql.Tx, rows []row) error {
	var f folding
	if err := tx.QueryRowContext(ctx, `SELECT folded, days_folded, newest FROM folding`).Scan(&f.hours, &f.days, &f.newest); err != nil {
		return err
	}
	if oldest := rows[0].bucket; f.newest == 0 {
		f.hours, f.days = startOf(oldest, time.Hour), startOf(oldest, day)
	}
	f.newest = max(f.newest, rows[len(rows)-1].bucket)
	if err := insertRows(ctx, tx, "hours", sumsBefore(rows, f.hours, time.Hour)); err != nil {
		return fmt.Errorf("hours: %w", err)
	}
	if err := insertRows(ctx, tx, "days", sumsBefore(rows, f.days, day)); err != nil {
		return fmt.Errorf("days: %w", err)
	}
	var err error
	if f.hours, err = foldEach(ctx, tx, sqlHour, f.hours, time.Hour, f.newest-foldDelay.Microseconds(), hoursPerAppend); err != nil {
		return fmt.Errorf("fold hours: %w", err)
	}
	if f.days, err = foldEach(ctx, tx, sqlDay, f.days, day, f.hours, daysPerAppend); err != nil {
		return fmt.Errorf("fold days: %w", err)
	}
	_, err = tx.ExecContext(ctx, `UPDATE folding SET folded = ?, days_folded = ?, newest = ?`, f.hours, f.days, f.newest)
	return err
}

// foldEach sums up the spans of a width that end at the time "until" or before it, up to a number of them, and returns the time up to which that
// is done now. Spans without roll-ups are skipped.
func foldEach(ctx context.Context, tx *sql.Tx, text string, folded int64, width time.Duration, until int64, number int) (int64, error) {
	for range number {
		var next sql.NullInt64
		if err := tx.QueryRowContext(ctx, sqlNext, folded).Scan(&next); err != nil {
			return 0, err
		}
		start := until
		if next.Valid {
			start = min(next.Int64, until)
		}
		if folded = max(folded, startOf(start, width)); folded+width.Microseconds() > until {
			break
		}
		if _, err := tx.ExecContext(ctx, text, folded, folded, folded+width.Microseconds()); err != nil {
			return 0, err
		}
		folded += width.Microseconds()
	}
	return folded, nil
}

// startOf returns the start of the hour or of the UTC day of a time.
func startOf(at int64, width time.Duration) int64 { return at - at%width.Microseconds() }

// sumsBefore sums up the rows before the time by edge and hour, or by edge and day.
func sumsBefore(rows []row, before int64, width time.Duration) []row {
	sums := map[[2]int64]row{}
	for _, r := range rows {
		if r.bucket >= before {
			break
		}
		r.bucket = startOf(r.bucket, width)
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
