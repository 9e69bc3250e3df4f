package main

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/portal/host"
)

// told returns a function that writes an event that the adapter observed in a member to the ledger. Of several portals, one writes it.
func told(db *database.DB) func(context.Context, host.Happening) error {
	return func(ctx context.Context, h host.Happening) error {
		cluster, what, _ := strings.Cut(h.Note, ": ")
		e := ledger.Entry{At: h.At, Action: "member." + strings.ToLower(strings.TrimPrefix(h.Reason, "Member")), Object: h.Resource,
			Details: map[string]string{"event": h.ID, "cluster": cluster, "what": what}}
		return db.Write(ctx, func(tx *gorm.DB) error { return ledgerstore.AppendOnce(tx, "event", e) })
	}
}
