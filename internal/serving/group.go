package serving

import (
	"context"
	"errors"
	"sync"
)

// Group is the endpoints that a program serves from before it has started until it has ended: its probes and its metrics.
type Group struct {
	endpoints []*Endpoint
	running   sync.WaitGroup
	failed    chan error
}

// maxEndpoints is more than a program has, so that no endpoint that fails waits to say so.
const maxEndpoints = 8

// NewGroup returns a group without endpoints.
func NewGroup() *Group { return &Group{failed: make(chan error, maxEndpoints)} }

// Serve listens and serves from now on.
func (g *Group) Serve(ctx context.Context, c Config) (*Endpoint, error) {
	e, err := Listen(ctx, c)
	if err != nil {
		return nil, err
	}
	g.endpoints = append(g.endpoints, e)
	g.running.Go(func() { //nolint:contextcheck // it ends by Close
		if err := e.Serve(); err != nil {
			g.failed <- err
		}
	})
	return e, nil
}

// Failed receives the error of an endpoint that cannot be served any more.
func (g *Group) Failed() <-chan error { return g.failed }

// Close ends all endpoints at once: nothing is lost with a probe that is broken off.
func (g *Group) Close() error {
	var all error
	for _, e := range g.endpoints {
		all = errors.Join(all, e.server.Close())
	}
	g.running.Wait()
	return all
}
