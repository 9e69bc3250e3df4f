package gormstore

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/accesspackage/accesspackagetest"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
)

func TestStore(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		accesspackagetest.Run(t, func(t *testing.T) accesspackage.Store {
			t.Helper()
			if err := db.Write(t.Context(), func(tx *gorm.DB) error {
				for _, table := range []string{"access_packages", "access_package_versions", "access_package_updates", "access_package_holders"} {
					if _, err := database.Exec(tx, "DELETE FROM "+table); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return New(db)
		})
		t.Run("limit", func(t *testing.T) { limit(t, db) })
	})
}

// limit checks that there are at most MaxPackages packages, and that these can still be changed.
func limit(t *testing.T, db *database.DB) {
	ctx, s, content := t.Context(), New(db), accesspackagetest.Content(t, "One")
	if err := db.Write(ctx, func(tx *gorm.DB) error {
		var rows [][]any
		for i := range accesspackage.MaxPackages {
			rows = append(rows, []any{"limit-" + strconv.Itoa(i), 1, "One", "", "team", "owners", 1, 1, 0, ""})
		}
		if _, err := database.Exec(tx, "DELETE FROM access_packages"); err != nil {
			return err
		}
		_, err := database.Insert(tx,
			"access_packages (name, version, title, description, team, chain, resources, published_at, archived_at, archived_by)", "", rows)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	more := accesspackage.Publication{Name: "more", Content: content, Ticket: 70001, By: "alice", At: time.Unix(1, 0)}
	if err := s.Publish(ctx, more); !errors.Is(err, accesspackage.ErrTooMany) {
		t.Errorf("one package more than the limit: %v", err)
	}
	more.Name, more.Base = "limit-1", 1
	if err := s.Publish(ctx, more); err != nil {
		t.Errorf("a further version at the limit: %v", err)
	}
}
