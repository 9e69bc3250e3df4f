// Package reviewapi implements the operations about access reviews: campaigns, their lines, decisions and the report. It must not
// import other features.
package reviewapi

import (
	"context"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/views"
)

// API implements the operations.
type API struct {
	*views.Data
	Server  *core.Server
	Reviews *accessreview.Service
	Store   accessreview.Store
}

// review returns a campaign that the caller may see, with the people whose lines they may see; nil means all.
func (a *API) review(ctx context.Context, id string) (accessreview.Campaign, []string, error) {
	n, ok := accessreview.ParseID(id)
	if !ok {
		return accessreview.Campaign{}, nil, notFound()
	}
	return a.Reviews.Visible(core.RequestContext(ctx), core.Caller(ctx), n)
}

func notFound() error {
	return &approval.Error{Code: approval.CodeNotFound, Message: message.ReviewNotFound()}
}
