package database

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// Lookup answers callers who ask for something at the same time by one call, of one statement. What a caller gets was read
// after he asked, so he sees everything that was there before.
type Lookup[K comparable, V any] struct {
	read func(ctx context.Context, keys []K) (map[K]V, error)
	turn sync.Mutex
	mu   sync.Mutex
	next *lookup[K, V] // not begun; nil: nobody has asked
}

type lookup[K comparable, V any] struct {
	keys  map[K]struct{}
	done  chan struct{} // closed when the rest is set
	found map[K]V
	err   error
}

// lookupLimit ends what a database does not answer any more. Who comes meanwhile waits as long again at most, which is less than a
// response may take.
const lookupLimit = 10 * time.Second

// NewLookup by read, which is given different keys, one at least, and returns what there is of them.
func NewLookup[K comparable, V any](read func(ctx context.Context, keys []K) (map[K]V, error)) *Lookup[K, V] {
	return &Lookup[K, V]{read: read}
}

// Get what there is for a key; false: nothing. Callers share it, so nobody may change it.
func (l *Lookup[K, V]) Get(ctx context.Context, key K) (v V, ok bool, err error) {
	l.mu.Lock()
	x, first := l.next, l.next == nil
	if first {
		x = &lookup[K, V]{keys: map[K]struct{}{}, done: make(chan struct{}), err: &Error{ErrUnavailable, detailAny, errors.New("what others asked for as well was given up")}}
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

// lead is not cut short by the end of its caller, whom others have joined.
func (l *Lookup[K, V]) lead(ctx context.Context, x *lookup[K, V]) {
	l.turn.Lock()
	defer l.turn.Unlock()
	defer close(x.done)
	runtime.Gosched() // on a busy machine others are about to ask, too
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
