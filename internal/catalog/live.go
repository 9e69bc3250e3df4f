package catalog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Live keeps the last good reading of a folder. A broken file never replaces it: the error is kept and logged
// once, until the files change again.
type Live struct {
	dir     string
	log     *slog.Logger
	current atomic.Pointer[Catalog]

	mu   sync.Mutex
	seen [sha256.Size]byte
	err  error
}

// Open reads a folder for the first time; then it has to be readable and right.
func Open(dir string, log *slog.Logger) (*Live, error) {
	s := &Live{dir: dir, log: log}
	files, err := contents(dir)
	if err != nil {
		return nil, err
	}
	c, err := files.catalog(dir)
	if err != nil {
		return nil, err
	}
	s.seen = files.sum()
	s.current.Store(c)
	return s, nil
}

// Catalog is the last good reading.
func (s *Live) Catalog() *Catalog { return s.current.Load() }

// Err is why the files as they are now are not what Catalog returns; nil: they are.
func (s *Live) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Run looks for changes until the context ends.
func (s *Live) Run(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.Reload()
		}
	}
}

// Reload reads the folder again if its content changed. The new catalog is swapped in whole, or not at all.
func (s *Live) Reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, err := contents(s.dir)
	sum := files.sum()
	if err == nil && sum == s.seen {
		return
	}
	var c *Catalog
	if err == nil {
		c, err = files.catalog(s.dir)
	}
	if err != nil {
		if s.err == nil || s.err.Error() != err.Error() {
			s.log.Warn("the catalog changed but cannot be used; the last good one stays", "error", err)
		}
		s.err, s.seen = err, sum
		return
	}
	s.current.Store(c)
	s.err, s.seen = nil, sum
	s.log.Info("catalog reloaded", "applications", len(c.applications), "resources", len(c.resources), "people", len(c.people))
}

// sum hashes contents, because modification times miss quick edits and checkouts.
func (f folder) sum() (out [sha256.Size]byte) {
	h := sha256.New()
	for _, x := range f {
		_, _ = fmt.Fprintf(h, "%q %d\n", x.name, len(x.data))
		_, _ = h.Write(x.data)
	}
	h.Sum(out[:0])
	return out
}
