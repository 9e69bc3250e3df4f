package database

import "gorm.io/gorm"

// AfterCommits makes a database call f after each commit or, with before set, instead of it; what f returns becomes the
// result of the commit.
func AfterCommits(db *DB, before bool, f func() error) {
	db.commit = func(tx *gorm.DB) error {
		if before {
			tx.Rollback()
			return f()
		}
		if err := tx.Commit().Error; err != nil {
			return err
		}
		return f()
	}
}

// NotCommitted exports notCommitted.
var NotCommitted = notCommitted
