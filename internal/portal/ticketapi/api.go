// Package ticketapi implements the operations about tickets: requests, decisions, previews and impacts, delegations, approval policies,
// and the home page, which lists the caller's tickets. It must not import other features.
package ticketapi

import (
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

// API implements the operations. It must not be copied, because it caches results of replays.
type API struct {
	*views.Data
	Server *core.Server
	// Insight evaluates flows of resources, and Rollout provides the state of their rollout.
	Insight *rollout.Insight
	Rollout *rollout.Service

	replays replayCache
}
