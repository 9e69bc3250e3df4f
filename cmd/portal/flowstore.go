package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/flowstore"
)

// openFlows returns the flow store without contacting it, because the portal also works without flows.
func openFlows(where flowstore.Address) *remoteFlows {
	return &remoteFlows{open: where.OpenReader, now: time.Now}
}

// remoteFlows is an audit.Reader that opens its store at the first query.
type remoteFlows struct {
	open func(context.Context) (flowstore.Reader, error)
	now  func() time.Time

	mu    sync.Mutex
	store flowstore.Reader
	tried time.Time
	err   error
}

const (
	// reopenEvery is the interval between two attempts to open the store, and reopenTimeout the timeout of one.
	reopenEvery   = 2 * time.Second
	reopenTimeout = 3 * time.Second
)

func (r *remoteFlows) get(ctx context.Context) (flowstore.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store != nil {
		return r.store, nil
	}
	if r.err != nil && r.now().Sub(r.tried) < reopenEvery {
		return nil, r.err
	}
	// The end of the caller's context must not count as a failure of the store.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reopenTimeout)
	defer cancel()
	store, err := r.open(ctx)
	r.tried = r.now()
	if err != nil {
		r.err = fmt.Errorf("%w: %w", audit.ErrUnavailable, err)
		return nil, r.err
	}
	r.store, r.err = store, nil
	return store, nil
}

// Close implements io.Closer.
func (r *remoteFlows) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.store == nil {
		return nil
	}
	return r.store.Close()
}

// from queries the store, or returns the error of opening it.
func from[T any](ctx context.Context, r *remoteFlows, ask func(audit.Reader) (T, error)) (T, error) {
	s, err := r.get(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return ask(s)
}

// Totals implements audit.Reader.
func (r *remoteFlows) Totals(ctx context.Context, f audit.Filter, each func(audit.Total) error) error {
	_, err := from(ctx, r, func(s audit.Reader) (struct{}, error) { return struct{}{}, s.Totals(ctx, f, each) })
	return err
}

// Connections implements audit.Reader.
func (r *remoteFlows) Connections(ctx context.Context, q audit.ConnectionQuery) (audit.ConnectionPage, error) {
	return from(ctx, r, func(s audit.Reader) (audit.ConnectionPage, error) { return s.Connections(ctx, q) })
}

// Series implements audit.Reader.
func (r *remoteFlows) Series(ctx context.Context, q audit.SeriesQuery) ([]audit.Point, error) {
	return from(ctx, r, func(s audit.Reader) ([]audit.Point, error) { return s.Series(ctx, q) })
}

// Flows implements audit.Reader.
func (r *remoteFlows) Flows(ctx context.Context, q audit.FlowQuery) (audit.FlowPage, error) {
	return from(ctx, r, func(s audit.Reader) (audit.FlowPage, error) { return s.Flows(ctx, q) })
}

// Denied implements audit.Reader.
func (r *remoteFlows) Denied(ctx context.Context, q audit.DeniedQuery) (map[string]int64, error) {
	return from(ctx, r, func(s audit.Reader) (map[string]int64, error) { return s.Denied(ctx, q) })
}

// LastFlow implements audit.Reader.
func (r *remoteFlows) LastFlow(ctx context.Context) (map[string]time.Time, error) {
	return from(ctx, r, func(s audit.Reader) (map[string]time.Time, error) { return s.LastFlow(ctx) })
}

// Losses implements audit.Reader.
func (r *remoteFlows) Losses(ctx context.Context, q audit.LossQuery) (audit.LossPage, error) {
	return from(ctx, r, func(s audit.Reader) (audit.LossPage, error) { return s.Losses(ctx, q) })
}

// Coverage implements audit.Reader.
func (r *remoteFlows) Coverage(ctx context.Context, since, until time.Time) ([]audit.Coverage, error) {
	return from(ctx, r, func(s audit.Reader) ([]audit.Coverage, error) { return s.Coverage(ctx, since, until) })
}
