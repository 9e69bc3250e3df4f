package gormstore_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/catalogtest"
	"github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/testenv"
)

func TestConformance(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		catalogtest.Run(t, func(t *testing.T) (catalog.Store, func() int) { return open(t, databasetest.SQLite(t)) })
	})
	t.Run("postgres", func(t *testing.T) {
		catalogtest.Run(t, func(t *testing.T) (catalog.Store, func() int) { return open(t, testenv.Postgres(t)) })
	})
}

// open with a ledger that counts within the transaction.
func open(t *testing.T, dsn string) (catalog.Store, func() int) {
	t.Helper()
	db := databasetest.Open(t, dsn)
	write := func(tx *gorm.DB, entries ...ledger.Entry) error {
		for range entries {
			if err := tx.Exec("INSERT INTO ledger (seq, text, hash) SELECT COALESCE(MAX(seq), 0) + 1, '', '' FROM ledger").Error; err != nil {
				return err
			}
		}
		return nil
	}
	return gormstore.New(db, write), func() (n int) {
		if err := db.Read(t.Context(), func(tx *gorm.DB) error { return tx.Raw("SELECT count(*) FROM ledger").Scan(&n).Error }); err != nil {
			t.Fatal(err)
		}
		return n
	}
}
