package database

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/testenv"
)

// each is databasetest.Each, which cannot be imported from within the package.
func each(t *testing.T, f func(t *testing.T, db *DB)) {
	for name, dsn := range map[string]func() string{
		"sqlite":   func() string { return "sqlite:" + t.TempDir() + "/x.db" },
		"postgres": func() string { return testenv.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			db, err := Open(t.Context(), dsn())
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			}()
			f(t, db)
		})
	}
}

func insert(tx *gorm.DB, token string) error {
	return tx.Exec("INSERT INTO sessions (token, data, expires_at) VALUES (?, 'x', 1)", token).Error
}

func tokens(t *testing.T, db *DB) (out []string) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *gorm.DB) error {
		return tx.Raw("SELECT token FROM sessions ORDER BY token").Scan(&out).Error
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// together starts writers, and lets the first begin only when n of them wait.
func together(t *testing.T, db *DB, n int, start func()) {
	t.Helper()
	db.group.turn <- struct{}{}
	start()
	for range 20000 {
		db.group.mu.Lock()
		waiting := len(db.group.waiting)
		db.group.mu.Unlock()
		if waiting >= n {
			<-db.group.turn
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("the %d writers did not wait in time", n)
}

func TestWritersShareATransaction(t *testing.T) {
	each(t, func(t *testing.T, db *DB) {
		own := errors.New("own")
		var mu sync.Mutex
		seen := map[gorm.ConnPool]bool{}
		mark := func(tx *gorm.DB) {
			mu.Lock()
			defer mu.Unlock()
			seen[tx.Statement.ConnPool] = true
		}
		results := map[string]error{}
		var wg sync.WaitGroup
		start := func(name string, ctx context.Context, f func(*gorm.DB) error) {
			wg.Go(func() {
				err := errors.New("panicked")
				defer func() {
					if p := recover(); p != nil {
						err = fmt.Errorf("panic: %v", p)
					}
					mu.Lock()
					defer mu.Unlock()
					results[name] = err
				}()
				err = db.Write(ctx, func(tx *gorm.DB) error { mark(tx); return f(tx) })
			})
		}
		together(t, db, 5, func() {
			start("a", t.Context(), func(tx *gorm.DB) error { return insert(tx, "a") })
			start("own", t.Context(), func(tx *gorm.DB) error { return errors.Join(insert(tx, "own"), own) })
			start("sql", t.Context(), func(tx *gorm.DB) error { return errors.Join(insert(tx, "sql"), insert(tx, "sql")) })
			start("panic", t.Context(), func(tx *gorm.DB) error { _ = insert(tx, "panic"); panic("boom") })
			start("b", t.Context(), func(tx *gorm.DB) error { return insert(tx, "b") })
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := db.Write(ended, func(tx *gorm.DB) error { return insert(tx, "canceled") }); !errors.Is(err, context.Canceled) {
				t.Errorf("a write canceled before it began: got %v, want context.Canceled", err)
			}
		})
		wg.Wait()
		if results["a"] != nil || results["b"] != nil {
			t.Errorf("writes without an error got %v, %v, want nil", results["a"], results["b"])
		}
		if !errors.Is(results["own"], own) || !errors.Is(results["sql"], ErrConflict) || results["panic"] == nil || results["panic"].Error() != "panic: boom" {
			t.Errorf("failed writes did not get their own results: %v", results)
		}
		if got := fmt.Sprint(tokens(t, db)); got != "[a b]" {
			t.Errorf("got rows %s, want only those of the successful writes, [a b]", got)
		}
		if len(seen) != 1 {
			t.Errorf("they ran in %d transactions, want 1", len(seen))
		}
	})
}

func TestWritesOfABrokenTransactionAreRetriedAlone(t *testing.T) {
	each(t, func(t *testing.T, db *DB) {
		var wg sync.WaitGroup
		together(t, db, 3, func() {
			for _, name := range []string{"a", "b"} {
				wg.Go(func() {
					if err := db.Write(t.Context(), func(tx *gorm.DB) error { return insert(tx, name) }); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Go(func() {
				_ = db.Write(t.Context(), func(tx *gorm.DB) error { return tx.Exec("ROLLBACK").Error }) // The result does not matter.
			})
		})
		wg.Wait()
		if got := fmt.Sprint(tokens(t, db)); got != "[a b]" {
			t.Errorf("got rows %s, want those of the other writes, [a b]", got)
		}
	})
}

func TestManyWriters(t *testing.T) {
	each(t, func(t *testing.T, db *DB) {
		const writers, writes = 16, 20
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for j := range writes {
					if err := db.Write(t.Context(), func(tx *gorm.DB) error { return insert(tx, fmt.Sprintf("%d-%d", i, j)) }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := len(tokens(t, db)); n != writers*writes {
			t.Errorf("%d rows are there, want %d", n, writers*writes)
		}
	})
}
