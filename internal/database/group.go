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
	// groupSize bounds how long the first of a group waits for the last.
	groupSize = 16
	// groupLimit ends a group whose database answers no more. A catalog of tens of thousands is one write.
	groupLimit = 5 * time.Minute
)

// group lets writers that wait at the same time share one transaction, and so one wait for the disk. Each has a
// savepoint of its own, or shares one with those of its batch: what one does wrong, the others do not notice. Whoever
// comes while nobody writes does the work of all that wait; the others wait for their result.
type group struct {
	db      *gorm.DB
	commit  func(tx *gorm.DB) error // ends a transaction
	turn    chan struct{}
	mu      sync.Mutex
	waiting []*write
	written atomic.Bool // since somebody looked
}

type write struct {
	f     func(tx *gorm.DB) error
	batch batch         // nil: of none
	done  chan struct{} // closed when the rest is set
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
			if g.leave(w) {
				return ctx.Err()
			}
			<-w.done // it is being done; only its result tells whether it was
		case g.turn <- struct{}{}:
			g.run(ctx, g.take())
			<-g.turn
		}
	}
}

// leave takes a write back that nobody has begun.
func (g *group) leave(w *write) bool {
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

// run does the writes and tells each its result. None is cut short by its caller's end, which would undo the others.
func (g *group) run(ctx context.Context, writes []*write) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), groupLimit)
	defer cancel()
	defer g.written.Store(true)
	if len(writes) > 1 {
		if g.together(ctx, writes) {
			return
		}
	}
	for _, w := range writes {
		w.panic, w.err = g.alone(ctx, w.f)
		if w.err != nil && ctx.Err() != nil && !errors.Is(w.err, ErrOutcomeUnknown) {
			// The caller's own context has not ended.
			w.err = &Error{ErrUnavailable, detailAny, errors.New("no answer in " + groupLimit.String() + ": " + w.err.Error())}
		}
		close(w.done)
	}
}

func (g *group) alone(ctx context.Context, f func(tx *gorm.DB) error) (panicked any, err error) {
	for range attempts {
		tx := g.db.WithContext(ctx).Begin()
		if err = tx.Error; err != nil {
			return nil, err
		}
		if panicked, err = guarded(f, tx); err != nil {
			tx.Rollback()
		} else {
			err = g.end(tx)
		}
		if !again(err) {
			break
		}
	}
	return panicked, err
}

// end commits a transaction. Its error is ErrOutcomeUnknown unless it shows that nothing was committed.
func (g *group) end(tx *gorm.DB) error {
	err := g.commit(tx)
	if err == nil || notCommitted(err) {
		return err
	}
	return &Error{ErrOutcomeUnknown, detailUnknown, err}
}

var errPanicked = errors.New("panicked")

func guarded(f func(tx *gorm.DB) error, tx *gorm.DB) (panicked any, err error) {
	defer func() {
		if panicked = recover(); panicked != nil {
			err = errPanicked
		}
	}()
	return nil, f(tx)
}

// together reports whether the writes have their results; if not, nothing was done and they have to be done one by one.
func (g *group) together(ctx context.Context, writes []*write) bool {
	tx := g.db.WithContext(ctx).Begin()
	if tx.Error != nil {
		return answer(writes, tx.Error)
	}
	for _, some := range batches(writes) {
		if !saved(tx, some) {
			tx.Rollback()
			return false
		}
	}
	return answer(writes, g.end(tx))
}

// saved does the writes of a batch as one, and one by one if that fails. It reports whether the transaction can go on.
func saved(tx *gorm.DB, some []*write) bool {
	if len(some) > 1 {
		panicked, err, ok := step(tx, func(tx *gorm.DB) error { return some[0].batch.all(tx, some) })
		if !ok || panicked == nil && err == nil {
			return ok
		}
	}
	for _, w := range some {
		var ok bool
		if w.panic, w.err, ok = step(tx, w.f); !ok {
			return false
		}
	}
	return true
}

// step does something with a savepoint to which it goes back if that fails.
func step(tx *gorm.DB, f func(tx *gorm.DB) error) (panicked any, err error, ok bool) {
	if _, err := Exec(tx, "SAVEPOINT w"); err != nil {
		return nil, err, false
	}
	end := "RELEASE SAVEPOINT w"
	if panicked, err = guarded(f, tx); err != nil {
		end = "ROLLBACK TO SAVEPOINT w"
	}
	_, failed := Exec(tx, end)
	return panicked, err, failed == nil && !again(err)
}

// answer gives the writes that were right so far the result of all.
func answer(writes []*write, err error) bool {
	for _, w := range writes {
		if w.err == nil {
			w.err = err
		}
		close(w.done)
	}
	return true
}
