package clickhouse

import (
	"context"

	"github.com/acp-io/acp/internal/audit"
)

// Reader is one side of the database. It changes nothing, the schema included, so its account needs no right but SELECT.
// What a collector has not made yet is audit.ErrUnavailable when it is asked for.
type Reader struct{ queries }

var _ audit.Reader = (*Reader)(nil)

// OpenReader connects. It refuses a server that is too old.
func OpenReader(ctx context.Context, o Options) (*Reader, error) {
	conn, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Reader{queries{conn: conn}}, nil
}

// Close releases the connections.
func (r *Reader) Close() error { return r.conn.Close() }
