package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/audit/hubble"
)

// defaultRawFlows returns the flows that are stored individually by default: all in a server, and only refused ones in a file.
func defaultRawFlows(where flowstore.Address) hubble.RawFlows {
	if where.Embedded() {
		return hubble.RawFlowsRefused
	}
	return hubble.RawFlowsAll
}

// openStore opens the store. If a server is unreachable at first, it is opened later, and counts wait in the spool or in memory.
func openStore(ctx context.Context, where flowstore.Address, log *slog.Logger) (flowstore.Writer, error) {
	s := &remoteStore{open: where.Open}
	if _, err := s.get(ctx); err != nil {
		if !errors.Is(err, audit.ErrUnavailable) {
			return nil, err
		}
		log.Warn("the flow store is unreachable; counts wait until it can be opened", "error", err)
	}
	return s, nil
}

// remoteStore is a flowstore.Writer that opens its store when it becomes reachable. Until then its methods fail with
// audit.ErrUnavailable.
type remoteStore struct {
	open func(context.Context) (flowstore.Writer, error)

	mu    sync.Mutex
	store flowstore.Writer
	tried time.Time
	err   error
}

// openEvery is the least time between two attempts to open the store, each of which costs a connection.
const openEvery = 2 * time.Second

func (s *remoteStore) get(ctx context.Context) (flowstore.Writer, error) {
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

func (s *remoteStore) Holder(ctx context.Context, source string) (string, error) {
	w, err := s.get(ctx)
	if err != nil {
		return "", err
	}
	return w.Holder(ctx, source)
}

func (s *remoteStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}
