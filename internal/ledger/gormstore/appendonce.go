package gormstore

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/ledger"
)

// recent is the number of lines of the same object and action that AppendOnce compares. An older identical entry is not detected.
const recent = 200

// AppendOnce appends an entry that several portals may report, several times: it omits the entry if a recent one with the same
// object and action has the same value of the detail named by key.
func AppendOnce(tx *gorm.DB, key string, e ledger.Entry) error {
	if err := Lock(tx); err != nil {
		return err
	}
	lines, err := page(tx, conditions(ledger.Filter{Action: e.Action, Object: e.Object}), false, recent)
	if err != nil {
		return fmt.Errorf("look for the line in the ledger: %w", err)
	}
	for _, l := range lines {
		had, err := l.Entry()
		if err != nil {
			return err
		}
		if had.Details[key] == e.Details[key] {
			return nil
		}
	}
	return Append(tx, e)
}
