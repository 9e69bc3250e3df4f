package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/clickhouse"
	"github.com/acp-io/acp/internal/audit/hubble"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

// storeOptions are what --store names.
type storeOptions struct {
	sqlite     string // the file; empty: the other one
	clickhouse clickhouse.Options
}

// parseStore reads the flag, or the file that it names after an @: passwords do not belong on a command line.
func parseStore(s string) (storeOptions, error) {
	if file, ok := strings.CutPrefix(s, "@"); ok {
		b, err := os.ReadFile(file)
		if err != nil {
			return storeOptions{}, fmt.Errorf("--store: read the address: %w", err)
		}
		s = strings.TrimSpace(string(b))
	}
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "sqlite":
		if rest != "" {
			return storeOptions{sqlite: rest}, nil
		}
	case "clickhouse", "http", "https":
		o, err := clickhouse.ParseDSN(s)
		if err != nil {
			return storeOptions{}, fmt.Errorf("--store: %w", err)
		}
		return storeOptions{clickhouse: o}, nil
	}
	return storeOptions{}, errors.New("--store: give it as sqlite:FILE, clickhouse://USER@HOST:PORT/DATABASE or @FILE with one of these in it")
}

// keeps is which flows are stored one by one when nobody says so: a file for one machine is no place for all of them.
func (o storeOptions) keeps() hubble.Keep {
	if o.sqlite != "" {
		return hubble.KeepRefused
	}
	return hubble.KeepAll
}

// closingWriter is what the collector needs of a store.
type closingWriter interface {
	audit.Writer
	Close() error
}

// open opens the store. A server may be away at first: what is counted waits for it, in the spool where there is one.
func (o storeOptions) open(ctx context.Context, log *slog.Logger) (closingWriter, error) {
	if o.sqlite != "" {
		return sqlite.Open(ctx, o.sqlite)
	}
	s := &remoteStore{open: func(ctx context.Context) (closingWriter, error) { return clickhouse.Open(ctx, o.clickhouse) }}
	if _, err := s.get(ctx); err != nil {
		if !errors.Is(err, audit.ErrUnavailable) {
			return nil, err
		}
		log.Warn("the flow store is away; what is counted waits for it", "error", err)
	}
	return s, nil
}

// remoteStore opens a store when it is first reached.
type remoteStore struct {
	open func(context.Context) (closingWriter, error)

	mu    sync.Mutex
	store closingWriter
	tried time.Time
	err   error
}

// openEvery is the time between two attempts: each costs a connection.
const openEvery = 2 * time.Second

func (s *remoteStore) get(ctx context.Context) (closingWriter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store != nil {
		return s.store, nil
	}
	if time.Since(s.tried) < openEvery {
		return nil, s.err
	}
	s.store, s.err = s.open(ctx)
	s.tried = time.Now()
	if s.err != nil {
		s.store = nil
	}
	return s.store, s.err
}

func (s *remoteStore) Append(ctx context.Context, b *audit.Batch) error {
	w, err := s.get(ctx)
	if err != nil {
		return err
	}
	return w.Append(ctx, b)
}

func (s *remoteStore) Resume(ctx context.Context, source string) (audit.Resume, error) {
	w, err := s.get(ctx)
	if err != nil {
		return audit.Resume{}, err
	}
	return w.Resume(ctx, source)
}

func (s *remoteStore) Prune(ctx context.Context, r audit.Retention) (int64, error) {
	w, err := s.get(ctx)
	if err != nil {
		return 0, err
	}
	return w.Prune(ctx, r)
}

func (s *remoteStore) Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error) {
	w, err := s.get(ctx)
	if err != nil {
		return false, err
	}
	return w.Lease(ctx, source, holder, ttl)
}

func (s *remoteStore) Release(ctx context.Context, source, holder string) error {
	w, err := s.get(ctx)
	if err != nil {
		return err
	}
	return w.Release(ctx, source, holder)
}

func (s *remoteStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}
