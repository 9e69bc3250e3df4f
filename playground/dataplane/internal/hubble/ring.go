// Package hubble serves Hubble's observer API from a ring of flows.
//
// The package implements the ring and the gRPC service. It neither creates nor changes flows.
package hubble

import (
	"context"
	"sync"

	flowpb "github.com/cilium/cilium/api/v1/flow"
)

// Capacity is the size of an agent's ring by default.
const Capacity = 4095

// Ring contains the newest flows. Flows are numbered from 0 since the start.
type Ring struct {
	mu    sync.Mutex
	flows []*flowpb.Flow
	next  uint64 // number of the next flow
	more  chan struct{}
}

// NewRing returns an empty ring.
func NewRing(capacity int) *Ring {
	return &Ring{flows: make([]*flowpb.Flow, capacity), more: make(chan struct{})}
}

// Add appends a flow, overwriting the oldest when the ring is full. It never waits for readers.
func (r *Ring) Add(f *flowpb.Flow) {
	r.mu.Lock()
	r.flows[r.next%uint64(len(r.flows))] = f
	r.next++
	added := r.more
	r.more = make(chan struct{})
	r.mu.Unlock()
	close(added)
}

// Bounds returns the number of the oldest flow in the ring, and that of the next flow.
func (r *Ring) Bounds() (oldest, next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.oldest(), r.next
}

func (r *Ring) oldest() uint64 {
	if size := uint64(len(r.flows)); r.next > size {
		return r.next - size
	}
	return 0
}

// Read returns the flow with the number. If it was overwritten, flow is nil and lost is the number of overwritten flows from this
// number on. If it does not exist yet, ready is closed when it does.
func (r *Ring) Read(number uint64) (flow *flowpb.Flow, lost uint64, ready <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if oldest := r.oldest(); number < oldest {
		return nil, oldest - number, nil
	}
	if number >= r.next {
		return nil, 0, r.more
	}
	return r.flows[number%uint64(len(r.flows))], 0, nil
}

// follow calls yield for every flow from the number on, and lose for gaps, until the context ends, a call fails, or,
// without follow, the end is reached.
func (r *Ring) follow(ctx context.Context, from uint64, wait bool, yield func(*flowpb.Flow) error, lose func(uint64) error) error {
	for number := from; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, lost, ready := r.Read(number)
		switch {
		case lost > 0:
			if err := lose(lost); err != nil {
				return err
			}
			number += lost
		case f != nil:
			if err := yield(f); err != nil {
				return err
			}
			number++
		case !wait:
			return nil
		default:
			select {
			case <-ready:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
