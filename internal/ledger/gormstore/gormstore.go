// Package gormstore stores the ledger in SQL through gorm. It implements ledger.Reader, and Append, which writes lines in the
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
)

type row struct {
	Seq  int64 `gorm:"primaryKey;autoIncrement:false"`
	Text string
	Hash string
}

func (row) TableName() string { return "ledger" }

func (r row) line() ledger.Line { return ledger.Line{Seq: r.Seq, Hash: r.Hash, Text: r.Text} }

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
	if err := database.Rows(tx, func(rows *sql.Rows) error { return rows.Scan(&seq, &hash) }, "SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1"); err != nil {
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
	var rows []row
	err = r.db.Read(ctx, func(tx *gorm.DB) error {
		rows = nil
		return where(tx, f).Select("seq", "text", "hash").Order("seq DESC").Limit(limit + 1).Find(&rows).Error
	})
	if err != nil {
		return nil, 0, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next = rows[limit-1].Seq
	}
	for _, x := range rows {
		lines = append(lines, x.line())
	}
	return lines, next, nil
}

func where(q *gorm.DB, f ledger.Filter) *gorm.DB {
	for column, value := range map[string]string{"actor": f.Actor, "action": f.Action, "object": f.Object} {
		if value != "" {
			q = q.Where(column+" = ?", value)
		}
	}
	if !f.From.IsZero() {
		q = q.Where("at_second >= ?", second(f.From))
	}
	if !f.To.IsZero() {
		q = q.Where("at_second < ?", second(f.To.Add(time.Second-1)))
	}
	if f.Before > 0 {
		q = q.Where("seq < ?", f.Before)
	}
	return q
}

func second(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05") }

var errEnough = errors.New("the caller has had enough")

// Lines implements ledger.Reader. All lines come from one snapshot, however long the iteration takes.
func (r *Reader) Lines(ctx context.Context, from int64) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		err := r.db.Read(ctx, func(tx *gorm.DB) error {
			rows, err := tx.Model(&row{}).Select("seq", "text", "hash").Where("seq >= ?", from).Order("seq").Rows()
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }() // the rows have been read; errors are in rows.Err
			for rows.Next() {
				var l ledger.Line
				if err := rows.Scan(&l.Seq, &l.Text, &l.Hash); err != nil {
					return err
				}
				if !yield(l, nil) {
					return errEnough
				}
			}
			return rows.Err()
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(ledger.Line{}, err)
		}
	}
}

// Line implements ledger.Reader.
func (r *Reader) Line(ctx context.Context, seq int64) (ledger.Line, bool, error) {
	return r.one(ctx, func(tx *gorm.DB) *gorm.DB { return tx.Where("seq = ?", seq) })
}

// Last implements ledger.Reader.
func (r *Reader) Last(ctx context.Context) (ledger.Line, bool, error) {
	return r.one(ctx, func(tx *gorm.DB) *gorm.DB { return tx.Order("seq DESC") })
}

func (r *Reader) one(ctx context.Context, which func(*gorm.DB) *gorm.DB) (ledger.Line, bool, error) {
	var rows []row
	err := r.db.Read(ctx, func(tx *gorm.DB) error {
		rows = nil
		return which(tx.Select("seq", "text", "hash")).Limit(1).Find(&rows).Error
	})
	if err != nil || len(rows) == 0 {
		return ledger.Line{}, false, err
	}
	return rows[0].line(), true, nil
}
