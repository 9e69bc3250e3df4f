package gormstore

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/ledger"
)

// recent bounds how far back AppendOnce looks: an object that had so many lines of one action since is not told again.
const recent = 200

// AppendOnce is Append of what may be told more than once, and by several portals: an entry is left out when one of its
// object and action is there already whose detail of that key is the same.
func AppendOnce(tx *gorm.DB, key string, e ledger.Entry) error {
	if err := Lock(tx); err != nil {
		return err
	}
	var rows []row
	if err := where(tx, ledger.Filter{Action: e.Action, Object: e.Object}).Select("seq", "text", "hash").Order("seq DESC").Limit(recent).Find(&rows).Error; err != nil {
		return fmt.Errorf("look for the line in the ledger: %w", err)
	}
	for _, r := range rows {
		had, err := r.line().Entry()
		if err != nil {
			return err
		}
		if had.Details[key] == e.Details[key] {
			return nil
		}
	}
	return Append(tx, e)
}
