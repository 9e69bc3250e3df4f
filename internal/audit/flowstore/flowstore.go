// Package flowstore opens a flow store by its address, for programs that do not care which one it is. It knows every
// backend and nothing else does by way of it.
package flowstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/clickhouse"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

// Reader is a store that is read and never written.
type Reader interface {
	audit.Reader
	io.Closer
}

// Forms of an address, for the help of a flag.
const Forms = "sqlite:FILE or clickhouse://USER@HOST:PORT/DATABASE"

// OpenReader opens the store for reading. A file that is not there yet is no error here: its queries return
// audit.ErrUnavailable until it is. A server that is not there is audit.ErrUnavailable at once. No error repeats a password.
func OpenReader(ctx context.Context, address string) (Reader, error) {
	kind, rest, _ := strings.Cut(address, ":")
	switch {
	case kind == "sqlite" && rest != "":
		return opened(sqlite.OpenReader(ctx, rest))
	case kind == "clickhouse", kind == "http", kind == "https":
		o, err := clickhouse.ParseDSN(address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAddress, err)
		}
		return opened(clickhouse.OpenReader(ctx, o))
	}
	return nil, fmt.Errorf("%w: give %s", ErrAddress, Forms)
}

// ErrAddress: the address is of no store.
var ErrAddress = errors.New("not the address of a flow store")

// opened keeps a failed store from becoming an interface that is not nil.
func opened[R Reader](r R, err error) (Reader, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}
