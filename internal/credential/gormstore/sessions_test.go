package gormstore

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
)

func TestFindSession(t *testing.T) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		s := New(db, nil).Manager()
		rows := []sessionRow{
			{Token: "active", Data: []byte("a"), ExpiresAt: database.Micros(time.Now().Add(time.Hour))},
			{Token: "other", Data: []byte("o"), ExpiresAt: database.Micros(time.Now().Add(time.Hour))},
			{Token: "expired", Data: []byte("e"), ExpiresAt: database.Micros(time.Now().Add(-time.Second))},
		}
		if err := db.Write(t.Context(), func(tx *gorm.DB) error { return tx.Create(rows).Error }); err != nil {
			t.Fatal(err)
		}
		for token, want := range map[string]string{"active": "a", "other": "o", "expired": "", "missing": "", "' OR 1 = 1 --": ""} {
			data, found, err := s.FindCtx(t.Context(), token)
			if err != nil || found != (want != "") || string(data) != want {
				t.Errorf("session %s is %q, %v, %v, want %q", token, data, found, err, want)
			}
		}
	})
}
