package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/acp-io/acp/internal/audit"
)

// readerConns bounds the number of concurrent reads.
const readerConns = 4

// Reader reads the file that a collector writes in another process. It never creates or changes the file. The file may be
// missing, appear later, or be replaced while the Reader is in use. It is safe for concurrent use.
type Reader struct {
	queries
	path string

	mu     sync.Mutex
	handle *sql.DB
	file   fs.FileInfo // identifies the open file
}

var _ audit.Reader = (*Reader)(nil)

// OpenReader returns a Reader for the file at the path. A missing file is not an error: queries return audit.ErrUnavailable until
// it exists.
func OpenReader(_ context.Context, path string) (*Reader, error) {
	if path == "" {
		return nil, errors.New("open flow store: the path is empty")
	}
	r := &Reader{path: path}
	r.db = r.current
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drop()
}

func (r *Reader) drop() error {
	if r.handle == nil {
		return nil
	}
	err := r.handle.Close()
	r.handle, r.file = nil, nil
	return err
}

// current returns a handle for the file that is at the path now. A collector that starts anew creates a new file; a handle for
// the old one would show outdated data forever.
func (r *Reader) current(context.Context) (*sql.DB, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.path)
	if err != nil {
		_ = r.drop() // the handle was only used to read
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: there is no file at %s yet, the flow collector creates it", audit.ErrUnavailable, r.path)
		}
		return nil, fmt.Errorf("%w: %w", audit.ErrUnavailable, err)
	}
	if r.handle != nil && os.SameFile(info, r.file) {
		return r.handle, nil
	}
	_ = r.drop() // the handle was only used to read
	db, err := sql.Open("sqlite", dsn(r.path, "ro", "query_only(1)", "busy_timeout(2000)"))
	if err != nil {
		return nil, fmt.Errorf("%w: open %s: %w", audit.ErrUnavailable, r.path, err)
	}
	db.SetMaxOpenConns(readerConns)
	r.handle, r.file = db, info
	return db, nil
}
