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

// recordMemberEvents returns a function that writes an event that the adapter observed in a member to the ledger. Of several
// portals, one writes it.
func recordMemberEvents(db *database.DB) func(context.Context, host.MemberEvent) error {
	return func(ctx context.Context, e host.MemberEvent) error {
		details := map[string]string{"event": e.ID, "cluster": e.Cluster}
		ledger.SetMessage(details, "what", e.Message)
		entry := ledger.Entry{At: e.At, Action: "member." + strings.ToLower(strings.TrimPrefix(e.Reason, "Member")), Object: e.Resource,
			Details: details}
		return db.Write(ctx, func(tx *gorm.DB) error { return ledgerstore.AppendOnce(tx, "event", entry) })
	}
}
