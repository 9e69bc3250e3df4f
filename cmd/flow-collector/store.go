package main

import (
	"context"
	"strings"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

// openStore opens what --store names; validateStore has looked at its form.
func openStore(ctx context.Context, o options) (audit.Store, error) {
	return sqlite.Open(ctx, strings.TrimPrefix(o.store, "sqlite:"))
}
