// Package gormstore stores the ledger in SQL. It implements ledger.Reader, and Append, which writes lines in the
// transaction of the change that they record. It does not verify what it reads.
package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/sqlquery"
)

// Lock serializes transactions that write lines: it waits for the current one, and later ones wait for this one to end.
func Lock(tx *gorm.DB) error { return database.Lock(tx, "ledger") }

// Append writes entries in the transaction of the change that they record. It serializes writers from the call to the end of
// their transactions, so call it last.
func Append(tx *gorm.DB, entries ...ledger.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := Lock(tx); err != nil {
		return err
	}
	seq, hash := int64(0), ledger.Genesis
	if err := database.Rows(
		tx,
		func(rows *sql.Rows) error { return rows.Scan(&seq, &hash) },
		"SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1",
	); err != nil {
		return err
	}
	rows := make([][]any, 0, len(entries))
	for _, e := range entries {
		l, err := ledger.Append(seq, hash, e)
		if err != nil {
			return err
		}
		seq, hash = l.Seq, l.Hash
		rows = append(rows, []any{l.Seq, l.Text, l.Hash})
	}
	_, err := database.Insert(tx, "ledger (seq, text, hash)", "", rows)
	return err
}

// Reader implements ledger.Reader on the database.
type Reader struct{ db *database.DB }

// NewReader returns a Reader for an open database.
func NewReader(db *database.DB) *Reader { return &Reader{db} }

// List implements ledger.Reader.
func (r *Reader) List(ctx context.Context, f ledger.Filter) (lines []ledger.Line, next int64, err error) {
	limit := ledger.DefaultPage
	if f.Limit > 0 {
		limit = min(f.Limit, ledger.MaxPage)
	}
	err = r.db.ReadOne(ctx, func(tx *gorm.DB) error {
		lines, err = page(tx, conditions(f), f.Oldest, limit+1)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if len(lines) > limit {
		lines = lines[:limit]
		next = lines[limit-1].Seq
	}
	return lines, next, nil
}

// conditions returns the conditions of a filter.
func conditions(f ledger.Filter) sqlquery.Conditions {
	var c sqlquery.Conditions
	if f.Actor != "" {
		c.Add("actor = ?", f.Actor)
	}
	if f.Action != "" {
		c.Add("action = ?", f.Action)
	}
	if f.Object != "" {
		c.Add("object = ?", f.Object)
	}
	if !f.From.IsZero() {
		c.Add("at_second >= ?", second(f.From))
	}
	if !f.To.IsZero() {
		c.Add("at_second < ?", second(f.To.Add(time.Second-1)))
	}
	switch {
	case f.After == 0:
	case f.Oldest:
		c.Add("seq > ?", f.After)
	default:
		c.Add("seq < ?", f.After)
	}
	return c
}

// page returns the first lines that meet the conditions, newest first or oldest first.
func page(tx *gorm.DB, c sqlquery.Conditions, oldest bool, limit int) (lines []ledger.Line, err error) {
	order := "seq DESC"
	if oldest {
		order = "seq"
	}
	err = database.Rows(tx, func(rows *sql.Rows) error {
		l, err := scanLine(rows)
		lines = append(lines, l)
		return err
	}, "SELECT "+columns+" FROM ledger"+c.Where()+" ORDER BY "+order+" LIMIT ?", append(c.Args(), limit)...)
	return lines, err
}

// columns are the columns that scanLine reads.
const columns = "seq, text, hash"

func scanLine(rows *sql.Rows) (l ledger.Line, err error) {
	err = rows.Scan(&l.Seq, &l.Text, &l.Hash)
	return l, err
}

func second(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

var errStopped = errors.New("the caller stopped the iteration")

// Lines implements ledger.Reader. All lines come from one snapshot, however long the iteration takes.
func (r *Reader) Lines(ctx context.Context, from int64) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		err := r.db.Read(ctx, func(tx *gorm.DB) error {
			return database.Rows(tx, func(rows *sql.Rows) error {
				l, err := scanLine(rows)
				if err == nil && !yield(l, nil) {
					return errStopped
				}
				return err
			}, "SELECT "+columns+" FROM ledger WHERE seq >= ? ORDER BY seq", from)
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(ledger.Line{}, err)
		}
	}
}

// Line implements ledger.Reader.
func (r *Reader) Line(ctx context.Context, seq int64) (ledger.Line, bool, error) {
	return r.one(ctx, sqlquery.Condition("seq = ?", seq))
}

// Last implements ledger.Reader.
func (r *Reader) Last(ctx context.Context) (ledger.Line, bool, error) {
	return r.one(ctx, sqlquery.Conditions{})
}

// one returns the newest line that meets the conditions.
func (r *Reader) one(ctx context.Context, c sqlquery.Conditions) (ledger.Line, bool, error) {
	var lines []ledger.Line
	err := r.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		lines, err = page(tx, c, false, 1)
		return err
	})
	if err != nil || len(lines) == 0 {
		return ledger.Line{}, false, err
	}
	return lines[0], true, nil
}
