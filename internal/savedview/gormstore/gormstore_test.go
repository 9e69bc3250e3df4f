package gormstore

import (
	"testing"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/savedview"
	"github.com/acp-io/acp/internal/savedview/savedviewtest"
)

func TestStore(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		savedviewtest.Run(t, func(t *testing.T) savedview.Store {
			t.Helper()
			if err := db.Write(t.Context(), func(tx *gorm.DB) error {
				_, err := database.Exec(tx, "DELETE FROM saved_views")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return New(db)
		})
	})
}
