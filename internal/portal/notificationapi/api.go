// Package notificationapi implements the operations about notifications: the inbox and the preferences of the caller, and the
// notifications that could not be delivered. It must not import other features.
package notificationapi

import (
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/portal/views"
)

// API implements the operations.
type API struct {
	*views.Data
	Inbox Inbox
	// Channels are the channels of notifications in addition to the inbox.
	Channels []notify.Channel
}
