package accountapi

import (
	"context"

	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// ListSessions implements openapi.StrictServerInterface.
func (a *API) ListSessions(ctx context.Context, _ openapi.ListSessionsRequestObject) (openapi.ListSessionsResponseObject, error) {
	all, err := a.Credentials.Sessions(core.RequestContext(ctx), core.Caller(ctx).ID)
	if err != nil {
		return nil, err
	}
	here := credential.SessionID(a.Server.SessionToken(core.RequestContext(ctx)))
	out := openapi.ListSessions200JSONResponse{Items: make([]openapi.SessionInfo, 0, len(all))}
	for _, x := range all {
		out.Items = append(
			out.Items,
			openapi.SessionInfo{Current: x.ID == here, CreatedAt: x.CreatedAt.UTC(), ExpiresAt: x.ExpiresAt.UTC(), UserAgent: core.Optional(x.UserAgent)},
		)
	}
	return out, nil
}

// EndOtherSessions implements openapi.StrictServerInterface.
func (a *API) EndOtherSessions(ctx context.Context, _ openapi.EndOtherSessionsRequestObject) (openapi.EndOtherSessionsResponseObject, error) {
	if err := a.Credentials.EndSessions(
		core.RequestContext(ctx),
		core.Caller(ctx).ID,
		credential.SessionID(a.Server.SessionToken(core.RequestContext(ctx))),
	); err != nil {
		return nil, err
	}
	return openapi.EndOtherSessions204Response{}, nil
}
