// Package rolloutapi implements the operations about the rollout of resources from Observe to Enforce: the board, announcements, the
// guard, temporary audits and downgrades. It must not import other features.
package rolloutapi

import (
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

// API implements the operations.
type API struct {
	*views.Data
	// Insight evaluates flows of resources, and Rollout manages their rollout.
	Insight *rollout.Insight
	Rollout *rollout.Service
	// FleetDowngrader begins and ends downgrades: temporary audits of many resources.
	FleetDowngrader *rollout.FleetDowngrader
}
