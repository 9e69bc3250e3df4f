package database

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// Lookup combines reads by key that callers request at the same time into one query. A caller's result was read after
// the caller asked, so it contains everything that was committed before.
type Lookup[K comparable, V any] struct {
	read func(ctx context.Context, keys []K) (map[K]V, error)
	turn sync.Mutex
	mu   sync.Mutex
	next *lookup[K, V] // the call that has not begun; nil if no caller waits
}

type lookup[K comparable, V any] struct {
	keys  map[K]struct{}
	done  chan struct{} // closed when found and err are set
	found map[K]V
	err   error
}

// lookupLimit is the timeout of a query. A caller that arrives meanwhile waits for at most twice as long, which is less
// than the timeout of a response.
const lookupLimit = 10 * time.Second

// NewLookup returns a Lookup that reads with read, which is given at least one key, each once, and returns the values
// that exist.
func NewLookup[K comparable, V any](read func(ctx context.Context, keys []K) (map[K]V, error)) *Lookup[K, V] {
	return &Lookup[K, V]{read: read}
}

// Get returns the value of a key, and false if there is none. Callers share the value, so it must not be modified.
func (l *Lookup[K, V]) Get(ctx context.Context, key K) (v V, ok bool, err error) {
	l.mu.Lock()
	x, first := l.next, l.next == nil
	if first {
		x = &lookup[K, V]{keys: map[K]struct{}{}, done: make(chan struct{}), err: &Error{ErrUnavailable, detailAny, errors.New("the query that this caller joined was aborted")}}
		l.next = x
	}
	x.keys[key] = struct{}{}
	l.mu.Unlock()
	if first {
		l.lead(ctx, x)
	}
	select {
	case <-x.done:
		v, ok = x.found[key]
		return v, ok, x.err
	case <-ctx.Done():
		return v, false, ctx.Err()
	}
}

// lead makes the query. The end of the context of the caller that leads does not cancel it, because other callers have
// joined.
func (l *Lookup[K, V]) lead(ctx context.Context, x *lookup[K, V]) {
	l.turn.Lock()
	defer l.turn.Unlock()
	defer close(x.done)
	runtime.Gosched() // On a busy machine, other callers are about to ask.
	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	keys := make([]K, 0, len(x.keys))
	for k := range x.keys {
		keys = append(keys, k)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupLimit)
	defer cancel()
	x.found, x.err = l.read(ctx, keys)
}
