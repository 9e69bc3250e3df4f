package database

import "gorm.io/gorm"

// AfterCommits calls f with the transaction after each commit of a database, or, with before, instead of it; what f returns is the
// result of the commit.
func AfterCommits(db *DB, before bool, f func() error) {
	db.group.commit = func(tx *gorm.DB) error {
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

// NotCommitted is notCommitted.
var NotCommitted = notCommitted
