package database

import (
	"context"

	"gorm.io/gorm"
)

// BatchWriter combines writes of one kind that many callers request at the same time: one call of its function performs
// all of them, so that one SQL statement can serve them together.
type BatchWriter[T any] struct {
	db *DB
	do func(tx *gorm.DB, some []T) (refused []error, err error)
}

// NewBatchWriter returns a BatchWriter that performs writes with do, which is given at least one. The function returns
// one error for each write; a write with an error must have changed nothing. If the function itself fails, everything
// is rolled back, and each write is repeated alone. The requirements of DB.Write on its function apply to do, too.
func NewBatchWriter[T any](db *DB, do func(tx *gorm.DB, some []T) (refused []error, err error)) *BatchWriter[T] {
	return &BatchWriter[T]{db, do}
}

// Write performs one write, with the guarantees of DB.Write.
func (b *BatchWriter[T]) Write(ctx context.Context, one T) error {
	return translate(b.db.group.do(ctx, &write{batch: batchOf[T]{b, one}, f: func(tx *gorm.DB) error {
		refused, err := b.do(tx, []T{one})
		if err != nil {
			return err
		}
		return refused[0]
	}}))
}

// batch is the view that a group has of a write that can be combined with others.
type batch interface {
	// kind returns the same value for the writes that can be combined.
	kind() any
	all(tx *gorm.DB, some []*write) error
}

type batchOf[T any] struct {
	of  *BatchWriter[T]
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

// batches groups the writes that can be combined. Each batch takes the position of its first write.
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
