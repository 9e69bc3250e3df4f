// Package governanceapi implements the operations for the security team and auditors: the access map, policies with their issues,
// findings, and the members of the fleet. It must not import other features.
package governanceapi

import "github.com/acp-io/acp/internal/portal/views"

// API implements the operations. It must not be copied, because it caches results of analyses.
type API struct {
	*views.Data
	analyses analyses
}

// New returns the operations.
func New(data *views.Data) *API { return &API{Data: data} }
