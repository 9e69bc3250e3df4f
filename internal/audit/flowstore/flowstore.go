// Package flowstore opens a flow store by its address, for programs that do not care which one it is. It knows every
// backend and nothing else does by way of it.
package flowstore

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

// Reader is a store that is read and never written.
type Reader interface {
	audit.Reader
	io.Closer
}

// Forms of an address, for the help of a flag.
const Forms = "sqlite:FILE"

// OpenReader opens the store for reading. A store that is not there yet is no error here: its queries return
// audit.ErrUnavailable until it is.
func OpenReader(ctx context.Context, address string) (Reader, error) {
	kind, rest, _ := strings.Cut(address, ":")
	switch {
	case kind == "sqlite" && rest != "":
		r, err := sqlite.OpenReader(ctx, rest)
		if err != nil {
			return nil, fmt.Errorf("open the flow store: %w", err)
		}
		return r, nil
	}
	return nil, fmt.Errorf("%q is no flow store: give %s", address, Forms)
}
