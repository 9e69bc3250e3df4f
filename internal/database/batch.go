package database

import (
	"context"

	"gorm.io/gorm"
)

// Batch is for writes of one kind that many callers make at once: those that wait at the same time are done by one call,
// so that each statement can be made for all of them.
type Batch[T any] struct {
	db *DB
	do func(tx *gorm.DB, some []T) (refused []error, err error)
}

// NewBatch of writes that do makes: at least one. Of those that it refuses it has written nothing; any other error undoes
// all, and then each is done by itself. What DB.Write asks of its function is asked of do, too.
func NewBatch[T any](db *DB, do func(tx *gorm.DB, some []T) (refused []error, err error)) *Batch[T] {
	return &Batch[T]{db, do}
}

// Write is DB.Write for one of them.
func (b *Batch[T]) Write(ctx context.Context, one T) error {
	return translate(b.db.group.do(ctx, &write{batch: batchOf[T]{b, one}, f: func(tx *gorm.DB) error {
		refused, err := b.do(tx, []T{one})
		if err != nil {
			return err
		}
		return refused[0]
	}}))
}

// batch is what a group sees of a write that can be done with others.
type batch interface {
	// kind is the same for those that can be done together.
	kind() any
	all(tx *gorm.DB, some []*write) error
}

type batchOf[T any] struct {
	of  *Batch[T]
	one T
}

func (b batchOf[T]) kind() any { return b.of }

func (b batchOf[T]) all(tx *gorm.DB, some []*write) error {
	ones := make([]T, len(some))
	for i, w := range some {
		ones[i] = w.batch.(batchOf[T]).one
	}
	refused, err := b.of.do(tx, ones)
	if err != nil {
		return err
	}
	for i, w := range some {
		w.err = refused[i]
	}
	return nil
}

// batches puts the writes together that can be done together, the first of each where it was.
func batches(writes []*write) (out [][]*write) {
	at := map[any]int{}
	for _, w := range writes {
		if w.batch == nil {
			out = append(out, []*write{w})
			continue
		}
		if i, ok := at[w.batch.kind()]; ok {
			out[i] = append(out[i], w)
			continue
		}
		at[w.batch.kind()] = len(out)
		out = append(out, []*write{w})
	}
	return out
}
