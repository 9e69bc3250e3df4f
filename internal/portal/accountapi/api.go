// Package accountapi implements the operations about the caller: their roles, saved views, machine tokens, sessions and device logins. It
// must not import other features.
package accountapi

import (
	"context"
	"time"

	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/savedview"
)

// Inbox provides the number of unread notifications and the preferences of people.
type Inbox interface {
	Unread(ctx context.Context, person string) (int, error)
	Preferences(ctx context.Context, people ...string) (map[string]notify.Preferences, error)
}

// API implements the operations.
type API struct {
	*views.Data
	Server      *core.Server
	Credentials *credential.Service
	// SessionIdle is the time after which a session ends without requests.
	SessionIdle time.Duration
	Inbox       Inbox
	Saved       savedview.Store
	// Demo reports whether the portal belongs to a demonstration, which the pages show.
	Demo bool
}
