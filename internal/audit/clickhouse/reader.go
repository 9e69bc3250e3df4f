package clickhouse

import (
	"context"

	"github.com/acp-io/acp/internal/audit"
)

// Reader is the flow store for views. It changes nothing, including the schema, so its account needs the privilege SELECT only.
// Queries return audit.ErrUnavailable for tables that a collector has not created yet.
type Reader struct{ queries }

var _ audit.Reader = (*Reader)(nil)

// OpenReader connects to the server. It returns an error if the server is too old.
func OpenReader(ctx context.Context, o Options) (*Reader, error) {
	conn, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Reader{queries{conn: conn}}, nil
}

// Close closes the connections.
func (r *Reader) Close() error { return r.conn.Close() }
