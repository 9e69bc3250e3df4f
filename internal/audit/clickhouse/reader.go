package clickhouse

import (
	"context"
	"errors"
	"fmt"

	"github.com/acp-io/acp/internal/audit"
)

// Reader is the side of the database that views are made of. It is safe for concurrent use.
type Reader struct{ queries }

var _ audit.Reader = (*Reader)(nil)

// OpenReader connects, and writes nothing: a user that may only read is enough. The schema has to be that of this program;
// audit.ErrUnavailable tells that the collector has not made it yet, or that the server is not there.
func OpenReader(ctx context.Context, o Options) (*Reader, error) {
	conn, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Store{queries: queries{conn: conn}, options: o}
	have, err := s.version(ctx)
	if err == nil && have < len(migrations) {
		err = fmt.Errorf("%w: the schema has version %d and this program needs %d: start the newer flow collector first", audit.ErrUnavailable, have, len(migrations))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open flow store %s: %w", o.Redacted(), writeError(ctx, err)), conn.Close())
	}
	return &Reader{s.queries}, nil
}

// Close releases the connections.
func (r *Reader) Close() error { return r.conn.Close() }
