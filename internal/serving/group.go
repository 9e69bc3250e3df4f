package serving

import (
	"context"
	"errors"
	"sync"
)

// Group runs the endpoints that are available during the whole life of a program: probes and metrics.
type Group struct {
	endpoints []*Endpoint
	running   sync.WaitGroup
	failed    chan error
}

// maxEndpoints is the capacity of the channel of errors. It exceeds the number of endpoints, so that reporting an error never
// blocks.
const maxEndpoints = 8

// NewGroup returns a group without endpoints.
func NewGroup() *Group { return &Group{failed: make(chan error, maxEndpoints)} }

// Serve opens the address and serves it in the background until Close.
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

// Failed returns a channel that receives the error of an endpoint that failed.
func (g *Group) Failed() <-chan error { return g.failed }

// Close closes all endpoints at once, because an interrupted probe loses no data.
func (g *Group) Close() error {
	var all error
	for _, e := range g.endpoints {
		all = errors.Join(all, e.server.Close())
	}
	g.running.Wait()
	return all
}
