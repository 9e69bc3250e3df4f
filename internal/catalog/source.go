package catalog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Source keeps the last good reading of a folder. A broken file never replaces it: the error is kept and logged
// once, until the files change again.
type Source struct {
	dir     string
	log     *slog.Logger
	current atomic.Pointer[Catalog]

	mu   sync.Mutex
	seen [sha256.Size]byte
	err  error
}

// Open reads a folder for the first time; then it has to be readable and right.
func Open(dir string, log *slog.Logger) (*Source, error) {
	s := &Source{dir: dir, log: log}
	sum, err := s.sum()
	if err != nil {
		return nil, err
	}
	c, err := Read(dir)
	if err != nil {
		return nil, err
	}
	s.seen = sum
	s.current.Store(c)
	return s, nil
}

// Catalog is the last good reading.
func (s *Source) Catalog() *Catalog { return s.current.Load() }

// Err is why the files as they are now are not what Catalog returns; nil: they are.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Run looks for changes until the context ends.
func (s *Source) Run(ctx context.Context, every time.Duration) {
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
func (s *Source) Reload() {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, err := s.sum()
	if err == nil && sum == s.seen {
		return
	}
	var c *Catalog
	if err == nil {
		c, err = Read(s.dir)
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
func (s *Source) sum() (out [sha256.Size]byte, err error) {
	files, err := list(s.dir)
	if err != nil {
		return out, err
	}
	h := sha256.New()
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(s.dir, f))
		if err != nil {
			return out, fmt.Errorf("read catalog file %s: %w", f, err)
		}
		_, _ = fmt.Fprintf(h, "%q %d\n", f, len(data))
		_, _ = h.Write(data)
	}
	h.Sum(out[:0])
	return out, nil
}
