// Package ledgerapi implements the operations about the ledger: lists, verification and export. It must not import other features.
package ledgerapi

import (
	"context"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/views"
)

// API implements the operations.
type API struct {
	*views.Data
	Server *core.Server
	Ledger ledger.Reader
	// Witnesses returns the ledger heads that the anchors store; nil if there is no anchor.
	Witnesses func(context.Context) ([]ledger.Witness, error)
}
