package database

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"
)

var errRefused = errors.New("refused")

// inBatches puts tokens into a batch, and returns the result of each write and the number of writes in each call.
func inBatches(t *testing.T, db *DB, some ...string) (told map[string]error, calls []int) {
	t.Helper()
	b := NewBatchWriter(db, func(tx *gorm.DB, some []string) ([]error, error) {
		calls = append(calls, len(some)) // The calls run one after the other.
		refused := make([]error, len(some))
		for i, token := range some {
			switch token {
			case "no":
				refused[i] = errRefused
			case "panic":
				panic("boom")
			default:
				if err := insert(tx, token); err != nil {
					return nil, err
				}
			}
		}
		return refused, nil
	})
	told = map[string]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	together(t, db, len(some)+1, func() {
		for _, token := range some {
			wg.Go(func() {
				err := errors.New("panicked")
				defer func() {
					_ = recover()
					mu.Lock()
					defer mu.Unlock()
					told[token] = errors.Join(told[token], err)
				}()
				err = b.Write(t.Context(), token)
			})
		}
		wg.Go(func() {
			if err := db.Write(t.Context(), func(tx *gorm.DB) error { return insert(tx, "of no batch") }); err != nil {
				t.Error(err)
			}
		})
	})
	wg.Wait()
	return told, calls
}

func TestBatch(t *testing.T) {
	each(t, func(t *testing.T, db *DB) {
		for _, tc := range []struct {
			reason string
			some   []string
			calls  []int
			there  []string
		}{
			{reason: "all are done by one call", some: []string{"a", "b", "c"}, calls: []int{3}, there: []string{"a", "b", "c"}},
			{reason: "one that is refused holds up no other", some: []string{"d", "no", "e"}, calls: []int{3}, there: []string{"d", "e"}},
			{reason: "what fails is done one by one", some: []string{"f", "f", "g"}, calls: []int{3, 1, 1, 1}, there: []string{"f", "g"}},
			{reason: "so is what panics", some: []string{"h", "panic", "i"}, calls: []int{3, 1, 1, 1}, there: []string{"h", "i"}},
			{reason: "one alone", some: []string{"k"}, calls: []int{1}, there: []string{"k"}},
		} {
			before := tokens(t, db)
			told, calls := inBatches(t, db, tc.some...)
			if d := cmp.Diff(tc.calls, calls); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
			want := slices.Sorted(slices.Values(slices.Concat(before, tc.there, []string{"of no batch"})))
			if d := cmp.Diff(want, tokens(t, db)); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
			for token, err := range told {
				wrong := token == "no" && !errors.Is(err, errRefused) || token == "f" && !errors.Is(err, ErrConflict) ||
					token == "panic" && (err == nil || err.Error() != "panicked") || !slices.Contains([]string{"no", "f", "panic"}, token) && err != nil
				if wrong {
					t.Errorf("%s: write %s got the error %v", tc.reason, token, err)
				}
			}
			if err := db.Write(t.Context(), func(tx *gorm.DB) error { return tx.Exec("DELETE FROM sessions WHERE token = 'of no batch'").Error }); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestTable(t *testing.T) {
	each(t, func(t *testing.T, db *DB) {
		type word string
		type line struct {
			N    int64
			Word string
			Yes  bool
			Text *string
		}
		var rows [][]any
		var want []line
		for i := range 300 {
			var text *string
			if i%2 == 0 {
				text = new(fmt.Sprint("it's ", i))
			}
			rows = append(rows, []any{i, word(fmt.Sprint("w", i)), i%3 == 0, text})
			want = append(want, line{int64(i), fmt.Sprint("w", i), i%3 == 0, text})
		}
		for _, n := range []int{1, 2, 300} {
			var got []line
			if err := db.Write(t.Context(), func(tx *gorm.DB) error {
				table, args := Table(tx, rows[:n])
				return Rows(tx, func(rows *sql.Rows) error {
					var x line
					err := rows.Scan(&x.N, &x.Word, &x.Yes, &x.Text)
					got = append(got, x)
					return err
				}, "WITH t (n, word, yes, text) AS ("+table+") SELECT n, word, yes, text FROM t", args...)
			}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want[:n], got); d != "" {
				t.Errorf("%d rows, in their order: (-want +got)\n%s", n, d)
			}
		}
	})
}
