// Package clickhouse is the flow store of a fleet: a ClickHouse server or cluster that several collectors write and several
// portals read. It owns the schema and every query of its database. It may import internal/audit and the driver, and nothing
// that knows where flows come from.
//
// What a batch adds, apart from raw flows, is one insert of one block into one partition of one table, so the server takes
// all of it or nothing, and the batch's identity is among its rows. Raw flows are inserted before it under the number of
// the attempt, and only numbers that arrived with their batch are ever shown. Nothing here depends on how long the server
// remembers blocks, but for two attempts of one batch that are on their way at the same time.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/audit"
)

// Store is both sides of the database. It is safe for concurrent use.
type Store struct {
	queries
	options Options
	now     func() time.Time

	edges *knownEdges

	mu sync.Mutex
	// spans that are still growing, by source.
	spans map[string]audit.Watch
}

var _ audit.Store = (*Store)(nil)

// oldest major and minor version of a server that knows all that the schema and the queries use.
const (
	oldestMajor = 24
	oldestMinor = 8
)

// Open connects, and brings the schema up to date. It refuses a server that is too old, and a schema newer than this program.
func Open(ctx context.Context, o Options) (*Store, error) {
	conn, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Store{queries: queries{conn: conn}, options: o, now: time.Now, edges: newKnownEdges(), spans: map[string]audit.Watch{}}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare flow store %s: %w", o.Redacted(), writeError(ctx, err)), conn.Close())
	}
	return s, nil
}

// connect reports a server that is not there as audit.ErrUnavailable, and refuses one that is too old.
func connect(ctx context.Context, o Options) (driver.Conn, error) {
	conn, v, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	if v.tooOld() {
		return nil, errors.Join(fmt.Errorf("open flow store %s: the server has version %d.%d, and %d.%d or newer is needed", o.Redacted(), v.major, v.minor, oldestMajor, oldestMinor), conn.Close())
	}
	return conn, nil
}

// version of a server.
type version struct{ major, minor uint64 }

func (v version) tooOld() bool {
	return v.major < oldestMajor || v.major == oldestMajor && v.minor < oldestMinor
}

func dial(ctx context.Context, o Options) (driver.Conn, version, error) {
	conn, err := driver.Open(o.driver)
	if err != nil {
		return nil, version{}, fmt.Errorf("open flow store %s: %w", o.Redacted(), err)
	}
	v, err := conn.ServerVersion()
	if err == nil {
		err = conn.Ping(ctx)
	}
	if err != nil {
		return nil, version{}, errors.Join(fmt.Errorf("open flow store %s: %w", o.Redacted(), writeError(ctx, err)), conn.Close())
	}
	return conn, version{v.Version.Major, v.Version.Minor}, nil
}

// Close releases the connections.
func (s *Store) Close() error { return s.conn.Close() }

// Codes of https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp that tell a store which can be read
// and not written.
var readOnlyCodes = map[int32]bool{
	164: true, // READONLY
	242: true, // TABLE_IS_READ_ONLY
	243: true, // NOT_ENOUGH_SPACE
	497: true, // ACCESS_DENIED
}

// writeError makes everything that goes wrong ErrReadOnly or ErrUnavailable, but for the caller's own cancellation.
func writeError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, audit.ErrUnavailable) || errors.Is(err, audit.ErrReadOnly) || errors.Is(err, audit.ErrNotHolder) {
		return err
	}
	var e *driver.Exception
	if errors.As(err, &e) && readOnlyCodes[e.Code] {
		return fmt.Errorf("%w: %w", audit.ErrReadOnly, err)
	}
	return fmt.Errorf("%w: %w", audit.ErrUnavailable, err)
}
