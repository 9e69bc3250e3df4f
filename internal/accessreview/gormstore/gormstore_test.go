package gormstore_test

import (
	"testing"

	"github.com/acp-io/acp/internal/accessreview/gormstore"
	"github.com/acp-io/acp/internal/accessreview/reviewtest"
	"github.com/acp-io/acp/internal/database/databasetest"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/testenv"
)

func TestStore(t *testing.T) {
	for name, dsn := range map[string]func(t *testing.T) string{
		"sqlite": func(t *testing.T) string { return databasetest.SQLite(t) }, "postgres": func(t *testing.T) string { return testenv.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			reviewtest.Run(t, func(t *testing.T) reviewtest.Backend {
				db := databasetest.Open(t, dsn(t))
				return reviewtest.Backend{Store: gormstore.New(db), LedgerLines: func() int64 {
					line, _, err := ledgerstore.NewReader(db).Last(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					return line.Seq
				}}
			})
		})
	}
}
