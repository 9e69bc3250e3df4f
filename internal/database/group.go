package database

import (
	"context"
	"errors"

	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
)

const (
	// groupSize bounds how many writes share a commit, and so how long the first of them waits for the last.
	groupSize = 16
	// groupLimit is the timeout of a group whose database no longer answers. It is long because a catalog of tens of
	// thousands of entities is one write.
	groupLimit = 5 * time.Minute
)

// group lets writers that wait at the same time share one transaction, and so one wait for the disk. Each write has a
// savepoint of its own, or shares one with the other writes of its batch, so that a failure does not affect the others.
// The first caller to find no writer active performs all waiting writes; the other callers wait for their results.
type group struct {
	db      *gorm.DB
	commit  func(tx *gorm.DB) error // commits a transaction
	turn    chan struct{}
	mu      sync.Mutex
	waiting []*write
	written atomic.Bool // set after each write, reset by the checkpointer
}

type write struct {
	f     func(tx *gorm.DB) error
	batch batch         // nil if the write cannot be combined
	done  chan struct{} // closed when err and panic are set
	err   error
	panic any
}

func newGroup(db *gorm.DB) *group {
	return &group{db: db, commit: func(tx *gorm.DB) error { return tx.Commit().Error }, turn: make(chan struct{}, 1)}
}

func (g *group) do(ctx context.Context, w *write) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.done = make(chan struct{})
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	for {
		select {
		case <-w.done:
			if w.panic != nil {
				panic(w.panic)
			}
			return w.err
		case <-ctx.Done():
			if g.withdraw(w) {
				return ctx.Err()
			}
			<-w.done // The write has begun, and only its result shows whether it was made.
		case g.turn <- struct{}{}:
			g.run(ctx, g.take())
			<-g.turn
		}
	}
}

// withdraw removes a write that has not begun, and reports whether it did.
func (g *group) withdraw(w *write) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, x := range g.waiting {
		if x == w {
			g.waiting = append(g.waiting[:i:i], g.waiting[i+1:]...)
			return true
		}
	}
	return false
}

func (g *group) take() []*write {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), groupSize)
	some := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	return some
}

// run performs the writes and sets the result of each. The end of a caller's context cancels none of them, because that
// would roll back the others.
func (g *group) run(ctx context.Context, writes []*write) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), groupLimit)
	defer cancel()
	defer g.written.Store(true)
	if len(writes) > 1 {
		if g.runTogether(ctx, writes) {
			return
		}
	}
	for _, w := range writes {
		w.panic, w.err = g.runAlone(ctx, w.f)
		if w.err != nil && ctx.Err() != nil && !errors.Is(w.err, ErrOutcomeUnknown) {
			// The timeout was the group's own: the caller's context has not ended.
			w.err = &Error{ErrUnavailable, detailAny, errors.New("no answer in " + groupLimit.String() + ": " + w.err.Error())}
		}
		close(w.done)
	}
}

func (g *group) runAlone(ctx context.Context, f func(tx *gorm.DB) error) (panicked any, err error) {
	for range maxAttempts {
		tx := g.db.WithContext(ctx).Begin()
		if err = tx.Error; err != nil {
			return nil, err
		}
		if panicked, err = recoverPanic(f, tx); err != nil {
			tx.Rollback()
		} else {
			err = g.end(tx)
		}
		if !isSerializationConflict(err) {
			break
		}
	}
	return panicked, err
}

// end commits a transaction. Its error is ErrOutcomeUnknown unless it proves that nothing was committed.
func (g *group) end(tx *gorm.DB) error {
	err := g.commit(tx)
	if err == nil || notCommitted(err) {
		return err
	}
	return &Error{ErrOutcomeUnknown, detailUnknown, err}
}

var errPanicked = errors.New("panicked")

func recoverPanic(f func(tx *gorm.DB) error, tx *gorm.DB) (panicked any, err error) {
	defer func() {
		if panicked = recover(); panicked != nil {
			err = errPanicked
		}
	}()
	return nil, f(tx)
}

// runTogether performs the writes in one transaction and reports whether they have their results. If it returns false,
// nothing was changed, and the writes have to be performed one by one.
func (g *group) runTogether(ctx context.Context, writes []*write) bool {
	tx := g.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return finish(writes, tx.Error)
	}
	for _, some := range batches(writes) {
		if !runBatch(tx, some) {
			tx.Rollback()
			return false
		}
	}
	return finish(writes, g.end(tx))
}

// runBatch performs the writes of a batch together and, if that fails, one by one. It reports whether the transaction
// is still usable.
func runBatch(tx *gorm.DB, some []*write) bool {
	if len(some) > 1 {
		panicked, err, ok := withSavepoint(tx, func(tx *gorm.DB) error { return some[0].batch.all(tx, some) })
		if !ok || panicked == nil && err == nil {
			return ok
		}
	}
	for _, w := range some {
		var ok bool
		if w.panic, w.err, ok = withSavepoint(tx, w.f); !ok {
			return false
		}
	}
	return true
}

// withSavepoint runs f behind a savepoint and rolls back to it if f fails. The last result reports whether the
// transaction is still usable.
func withSavepoint(tx *gorm.DB, f func(tx *gorm.DB) error) (panicked any, err error, ok bool) {
	if _, err := Exec(tx, "SAVEPOINT w"); err != nil {
		return nil, err, false
	}
	end := "RELEASE SAVEPOINT w"
	if panicked, err = recoverPanic(f, tx); err != nil {
		end = "ROLLBACK TO SAVEPOINT w"
	}
	_, failed := Exec(tx, end)
	return panicked, err, failed == nil && !isSerializationConflict(err)
}

// finish gives the writes that have not failed the result of the commit. It always returns true.
func finish(writes []*write, err error) bool {
	for _, w := range writes {
		if w.err == nil {
			w.err = err
		}
		close(w.done)
	}
	return true
}
