package gormstore

import (
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database/databasetest"
)

// TestManySessionsAtOnce checks that each token finds its own session and none that has expired, however many are read
// together.
func TestManySessionsAtOnce(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		s := New(db, nil)
		var rows []sessionRow
		var tokens []string
		for i := range tokensPerQuery + 50 {
			token := fmt.Sprint("token-", i)
			tokens = append(tokens, token)
			switch {
			case i%7 == 0: // not stored
			case i%5 == 0:
				rows = append(rows, sessionRow{Token: token, Data: []byte("ended"), ExpiresAt: micros(time.Now().Add(-time.Second))})
			default:
				rows = append(rows, sessionRow{Token: token, Data: []byte("of " + token), ExpiresAt: micros(time.Now().Add(time.Hour))})
			}
		}
		if err := db.Write(t.Context(), func(tx *gorm.DB) error { return tx.CreateInBatches(rows, 100).Error }); err != nil {
			t.Fatal(err)
		}
		found, err := s.findSessions(t.Context(), tokens)
		if err != nil {
			t.Fatal(err)
		}
		for i, token := range tokens {
			want := "of " + token
			if i%7 == 0 || i%5 == 0 {
				want = ""
			}
			if got := string(found[token]); got != want {
				t.Errorf("%s: %q, not %q", token, got, want)
			}
		}
	})
}
