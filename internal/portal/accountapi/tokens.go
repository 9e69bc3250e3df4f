package accountapi

import (
	"context"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// ListTokens implements openapi.StrictServerInterface.
func (a *API) ListTokens(ctx context.Context, _ openapi.ListTokensRequestObject) (openapi.ListTokensResponseObject, error) {
	all, err := a.Credentials.Tokens(core.RequestContext(ctx), core.Caller(ctx).ID)
	if err != nil {
		return nil, err
	}
	out := openapi.ListTokens200JSONResponse{Items: make([]openapi.Token, 0, len(all))}
	for _, t := range all {
		out.Items = append(out.Items, tokenView(t))
	}
	return out, nil
}

// CreateToken implements openapi.StrictServerInterface.
func (a *API) CreateToken(ctx context.Context, r openapi.CreateTokenRequestObject) (openapi.CreateTokenResponseObject, error) {
	key, err := core.IdempotencyKey(r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	req := credential.Request{Name: r.Body.Name, IdempotencyKey: key}
	// The number is bounded before it is converted to a duration, which could overflow.
	if s := r.Body.ExpiresInSeconds; s > 0 && s <= int64(credential.MaxLifetime/time.Second) {
		req.Lifetime = time.Duration(s) * time.Second
	}
	for _, s := range r.Body.Scopes {
		req.Scopes = append(req.Scopes, credential.Scope(s))
	}
	if core.Caller(ctx).Auditor && slices.ContainsFunc(req.Scopes, canModify) {
		return nil, approval.AuditorsOnlyRead()
	}
	// A token outlives the session by up to a year, and what a session can do only after a recent login, it does without a login.
	if err := a.Tickets.CheckLogin(core.Caller(ctx)); err != nil {
		return nil, err
	}
	t, secret, err := a.Credentials.Create(core.RequestContext(ctx), core.Caller(ctx).ID, req)
	if err != nil {
		return nil, err
	}
	return openapi.CreateToken201JSONResponse{Token: tokenView(t), Secret: secret}, nil
}

// RevokeToken implements openapi.StrictServerInterface.
func (a *API) RevokeToken(ctx context.Context, r openapi.RevokeTokenRequestObject) (openapi.RevokeTokenResponseObject, error) {
	id := r.Id
	if t := core.Token(core.GinContext(ctx)); t != nil && id == core.CurrentToken {
		id = t.ID
	}
	if err := a.Credentials.Revoke(core.RequestContext(ctx), core.Caller(ctx).ID, id); err != nil {
		return nil, err
	}
	return openapi.RevokeToken204Response{}, nil
}

// canModify reports whether a token with a scope can change anything. Auditors get no such token: a person may be an auditor only by a
// claim of their login, which a token does not carry, so that the token would have the rights of an ordinary person.
func canModify(s credential.Scope) bool {
	return s != credential.ScopeRead && s != credential.ScopeLedgerRead
}

func tokenView(t credential.Token) openapi.Token {
	return openapi.Token{Id: t.ID, Name: t.Name, Scopes: scopesOf(t.Scopes), Prefix: core.Optional(t.Prefix), CreatedAt: t.CreatedAt.UTC(),
		ExpiresAt: t.ExpiresAt.UTC(), LastUsedAt: views.Time(t.LastUsedAt)}
}

func scopesOf(in []credential.Scope) []openapi.TokenScope {
	out := make([]openapi.TokenScope, 0, len(in))
	for _, s := range in {
		out = append(out, openapi.TokenScope(s))
	}
	return out
}
