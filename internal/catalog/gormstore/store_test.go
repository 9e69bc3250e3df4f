package gormstore_test

import (
	"testing"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/catalogtest"
	"github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
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

func open(t *testing.T, dsn string) (catalog.Store, func() int) {
	t.Helper()
	db := databasetest.Open(t, dsn)
	return gormstore.New(db), func() int {
		n, _, err := ledger.Verify(ledgerstore.NewReader(db).Lines(t.Context(), 1))
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
}
