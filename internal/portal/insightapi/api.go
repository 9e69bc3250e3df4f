// Package insightapi implements the operations about what follows from flows: proposals of statements and their reviews, the evidence for a
// resource, and unused statements. It must not import other features.
package insightapi

import (
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

// API implements the operations.
type API struct {
	*views.Data
	Insight *rollout.Insight
	Rollout *rollout.Service
}
