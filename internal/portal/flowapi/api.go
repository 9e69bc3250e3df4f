// Package flowapi implements the operations about flows: connections, series, single flows, losses and coverage. It must not import
// other features.
package flowapi

import "github.com/acp-io/acp/internal/portal/views"

// API implements the operations.
type API struct{ *views.Data }
