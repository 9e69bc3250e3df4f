package database_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
)

func insertToken(tx *gorm.DB, token string) error {
	return tx.Exec("INSERT INTO sessions (token, data, expires_at) VALUES (?, 'x', 1)", token).Error
}

func tokens(t *testing.T, db *database.DB) (out []string) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *gorm.DB) error {
		return tx.Raw("SELECT token FROM sessions ORDER BY token").Scan(&out).Error
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFailedWritesChangeNothing checks that an error or a panic rolls back the whole write, and that the database can be
// written afterwards.
func TestFailedWritesChangeNothing(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		own := errors.New("own")
		for name, tc := range map[string]struct {
			write func(tx *gorm.DB) error
			want  error
		}{
			"own error": {func(tx *gorm.DB) error { return errors.Join(insertToken(tx, "own"), own) }, own},
			"conflict":  {func(tx *gorm.DB) error { return errors.Join(insertToken(tx, "twice"), insertToken(tx, "twice")) }, database.ErrConflict},
		} {
			if err := db.Write(t.Context(), tc.write); !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v, want %v", name, err, tc.want)
			}
		}
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("a panic became %v", p)
				}
			}()
			err := db.Write(t.Context(), func(tx *gorm.DB) error { _ = insertToken(tx, "panic"); panic("boom") })
			t.Errorf("a write that panicked returned %v", err)
		}()
		if err := db.Write(t.Context(), func(tx *gorm.DB) error { return insertToken(tx, "last") }); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(tokens(t, db)); got != "[last]" {
			t.Errorf("got rows %s, want only that of the successful write", got)
		}
	})
}

// TestWritesAndTheirContext checks that a write whose caller gives up before it begins does not begin, and that one that has
// begun ends as if the caller had waited.
func TestWritesAndTheirContext(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := db.Write(ended, func(tx *gorm.DB) error { return insertToken(tx, "before") }); !errors.Is(err, context.Canceled) {
			t.Errorf("a write canceled before it began: got %v, want context.Canceled", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := db.Write(ctx, func(tx *gorm.DB) error { cancel(); return insertToken(tx, "during") }); err != nil {
			t.Errorf("a write canceled while it ran: %v", err)
		}
		if got := fmt.Sprint(tokens(t, db)); got != "[during]" {
			t.Errorf("got rows %s, want [during]", got)
		}
	})
}

func TestManyWriters(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		const writers, writes = 16, 20
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for j := range writes {
					if err := db.Write(t.Context(), func(tx *gorm.DB) error { return insertToken(tx, fmt.Sprintf("%d-%d", i, j)) }); err != nil {
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
