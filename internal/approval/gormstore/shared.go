package gormstore

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// shared lets callers who want the same thing at the same time have it done once. What a caller gets was begun after he
// asked, so he sees everything that was there before.
type shared struct {
	turn sync.Mutex
	mu   sync.Mutex
	next *sharing // not begun; nil: nobody has asked
}

type sharing struct {
	done chan struct{} // closed when err is set
	err  error
}

// sharedLimit ends what a database does not answer any more.
const sharedLimit = 30 * time.Second

func (s *shared) do(ctx context.Context, f func(ctx context.Context) error) error {
	s.mu.Lock()
	c, first := s.next, s.next == nil
	if first {
		c = &sharing{done: make(chan struct{}), err: errors.New("what others do as well was given up")}
		s.next = c
	}
	s.mu.Unlock()
	if first {
		s.lead(ctx, c, f)
		return c.err
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lead is not cut short by the end of its caller, whom others have joined.
func (s *shared) lead(ctx context.Context, c *sharing, f func(ctx context.Context) error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	defer close(c.done)
	runtime.Gosched() // on a busy machine others are about to ask, too
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedLimit)
	defer cancel()
	c.err = f(ctx)
}
