package gormstore

import (
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/ledger"
)

// AppendLedger chains lines to the ledger in the transaction of another store on the same database.
func AppendLedger(tx *gorm.DB, entries []ledger.Entry) error { return appendLedger(tx, entries) }
