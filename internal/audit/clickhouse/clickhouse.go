// Package clickhouse is the flow store of a fleet: a ClickHouse server or cluster that several collectors write and several
// portals read. It contains the schema and all queries of its database. It may import internal/audit and the driver, and no
// source of flows.
//
// Everything that a batch adds except raw flows is inserted as one block into one partition of one table, so the server stores
// all of it or nothing, and the batch's ID is among its rows. Raw flows are inserted before it with the number of the attempt;
// only flows whose number was stored with a batch are ever returned. Correctness does not depend on how long the server
// deduplicates blocks, except for two concurrent attempts with the same batch.
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

// Store is the flow store for collectors, and implements the interface for views as well. It is safe for concurrent use.
type Store struct {
	queries
	options Options
	now     func() time.Time

	edges *knownEdges

	mu sync.Mutex
	// spans holds the newest watched span of each source, which may still grow.
	spans map[string]audit.WatchedSpan
}

var _ audit.Store = (*Store)(nil)

// oldestMajor and oldestMinor are the oldest server version that supports everything that the schema and the queries use.
const (
	oldestMajor = 24
	oldestMinor = 8
)

// Open connects to the server and migrates the schema. It returns an error if the server is too old or the schema is newer than
// this program.
func Open(ctx context.Context, o Options) (*Store, error) {
	conn, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Store{queries: queries{conn: conn}, options: o, now: time.Now, edges: newKnownEdges(), spans: map[string]audit.WatchedSpan{}}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare flow store %s: %w", o.Redacted(), writeError(ctx, err)), conn.Close())
	}
	return s, nil
}

// connect opens a connection. It returns audit.ErrUnavailable if the server cannot be reached, and another error if it is too
// old.
func connect(ctx context.Context, o Options) (driver.Conn, error) {
	conn, v, err := dial(ctx, o)
	if err != nil {
		return nil, err
	}
	if v.tooOld() {
		return nil, errors.Join(
			fmt.Errorf(
				"open flow store %s: the server has version %d.%d, and %d.%d or newer is needed",
				o.Redacted(),
				v.major,
				v.minor,
				oldestMajor,
				oldestMinor,
			),
			conn.Close(),
		)
	}
	return conn, nil
}

// version is the version of a server.
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

// Close closes the connections.
func (s *Store) Close() error { return s.conn.Close() }

// readOnlyCodes are the error codes of a store that can be read and not written, see
// https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp.
var readOnlyCodes = map[int32]bool{
	164: true, // READONLY
	242: true, // TABLE_IS_READ_ONLY
	243: true, // NOT_ENOUGH_SPACE
	497: true, // ACCESS_DENIED
}

// writeError wraps errors in ErrReadOnly or ErrUnavailable, except for the caller's own cancellation.
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
