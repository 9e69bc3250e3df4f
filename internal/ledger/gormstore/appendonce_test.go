package gormstore

import (
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
)

func TestAppendOnce(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		entry := func(object, event string) ledger.Entry {
			return ledger.Entry{At: start, Action: "member.drifted", Object: object, Details: map[string]string{"event": event}}
		}
		var telling sync.WaitGroup
		for range 4 { // concurrent portals
			telling.Go(func() {
				for _, e := range []ledger.Entry{entry("bobs", "1"), entry("bobs", "2"), entry("alices", "1"), entry("bobs", "1")} {
					if err := db.Write(t.Context(), func(tx *gorm.DB) error { return AppendOnce(tx, "event", e) }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		telling.Wait()
		lines, _, err := NewReader(db).List(t.Context(), ledger.Filter{})
		if err != nil || len(lines) != 3 {
			t.Errorf("got error %v and %d lines: %v", err, len(lines), lines)
		}
	})
}
