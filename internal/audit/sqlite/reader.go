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

// readerConns bounds the views that read at the same time.
const readerConns = 4

// Reader reads the file that a collector writes, in another process. It never creates or changes it. The file may be
// missing, appear later, or be replaced by another one while the Reader is in use. It is safe for concurrent use.
type Reader struct {
	queries
	path string

	mu     sync.Mutex
	handle *sql.DB
	file   fs.FileInfo // of what handle has open
}

var _ audit.Reader = (*Reader)(nil)

// OpenReader returns a Reader of the file at path. A missing file is no error here: the queries return
// audit.ErrUnavailable until it is there.
func OpenReader(_ context.Context, path string) (*Reader, error) {
	if path == "" {
		return nil, errors.New("open flow store: the path is empty")
	}
	r := &Reader{path: path}
	r.db = r.current
	return r, nil
}

// Close releases the file.
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

// current returns a handle on the file that is at the path now. A collector that starts from nothing makes a new file;
// a handle on the old one would show the past for ever.
func (r *Reader) current(context.Context) (*sql.DB, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(r.path)
	if err != nil {
		_ = r.drop() // what is closed here was only read
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: there is no file at %s yet, the flow collector creates it", audit.ErrUnavailable, r.path)
		}
		return nil, fmt.Errorf("%w: %w", audit.ErrUnavailable, err)
	}
	if r.handle != nil && os.SameFile(info, r.file) {
		return r.handle, nil
	}
	_ = r.drop() // what is closed here was only read
	db, err := sql.Open("sqlite", dsn(r.path, "ro", "query_only(1)", "busy_timeout(2000)"))
	if err != nil {
		return nil, fmt.Errorf("%w: open %s: %w", audit.ErrUnavailable, r.path, err)
	}
	db.SetMaxOpenConns(readerConns)
	r.handle, r.file = db, info
	return db, nil
}
