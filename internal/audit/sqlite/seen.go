package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/acp-io/acp/internal/audit"
)

const (
	sqlAddSeen    = `INSERT INTO seen (source, time, ids) VALUES (?, ?, ?)`
	sqlForgetSeen = `DELETE FROM seen WHERE source = ? AND time < ?`
	sqlSeen       = `SELECT time, ids FROM seen WHERE source = ?`
)

const idBytes = 8

// addSeen writes one row for all events of the same time, and deletes the rows of forgotten events.
func addSeen(ctx context.Context, tx *sql.Tx, b *audit.Batch) error {
	type key struct {
		source string
		time   int64
	}
	together := map[key][]byte{}
	for _, e := range b.Seen {
		k := key{e.Source, micros(e.Time)}
		together[k] = binary.BigEndian.AppendUint64(together[k], e.ID)
	}
	for k, ids := range together {
		if _, err := tx.ExecContext(ctx, sqlAddSeen, k.source, k.time, ids); err != nil {
			return err
		}
	}
	for source, before := range b.ForgetSeen {
		if _, err := tx.ExecContext(ctx, sqlForgetSeen, source, micros(before)); err != nil {
			return err
		}
	}
	return nil
}

// seen returns the stored events of a source, ordered by time and ID, each once.
func (s *Store) seen(ctx context.Context, source string) ([]audit.SeenEvent, error) {
	rows, err := s.db.QueryContext(ctx, sqlSeen, source)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []audit.SeenEvent
	for rows.Next() {
		var at int64
		var ids []byte
		if err := rows.Scan(&at, &ids); err != nil {
			return nil, err
		}
		if len(ids)%idBytes != 0 {
			return nil, fmt.Errorf("the events of %s have %d bytes, which is not a multiple of the size of an event", fromMicros(at), len(ids))
		}
		for ; len(ids) > 0; ids = ids[idBytes:] {
			out = append(out, audit.SeenEvent{Source: source, Time: fromMicros(at), ID: binary.BigEndian.Uint64(ids)})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b audit.SeenEvent) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID)) })
	return slices.Compact(out), nil
}
