package accountapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// StartDevice implements openapi.StrictServerInterface.
func (a *API) StartDevice(ctx context.Context, r openapi.StartDeviceRequestObject) (openapi.StartDeviceResponseObject, error) {
	c := core.GinContext(ctx)
	if err := a.Server.Charge(c, core.BudgetLogins, a.Server.ClientAddress(c)); err != nil {
		return nil, err
	}
	client := ""
	if r.Body != nil && r.Body.Client != nil {
		client = *r.Body.Client
	}
	codes, err := a.Credentials.StartDevice(core.RequestContext(ctx), client, a.Server.ClientAddress(c))
	if errors.Is(err, credential.ErrTooMany) {
		return nil, core.NewProblem(http.StatusServiceUnavailable, "unavailable", message.DeviceTooManyWaiting())
	}
	if err != nil {
		return nil, err
	}
	page := a.Server.Origin() + "/device"
	return openapi.StartDevice200JSONResponse{DeviceCode: codes.DeviceCode, UserCode: codes.UserCode, VerificationUri: page,
		VerificationUriComplete: new(page + "?" + url.Values{"code": {codes.UserCode}}.Encode()),
		ExpiresIn:               int(codes.Lifetime.Seconds()), Interval: int(codes.Interval.Seconds())}, nil
}

// GetDevice implements openapi.StrictServerInterface.
func (a *API) GetDevice(ctx context.Context, r openapi.GetDeviceRequestObject) (openapi.GetDeviceResponseObject, error) {
	if err := a.Server.Charge(core.GinContext(ctx), core.BudgetUserCodes, core.Caller(ctx).ID); err != nil {
		return nil, err
	}
	d, err := a.Credentials.PendingDevice(core.RequestContext(ctx), r.Params.UserCode)
	if err != nil {
		return nil, deviceProblem(err)
	}
	return openapi.GetDevice200JSONResponse{Client: d.Client, Address: d.Address, Scopes: scopesOf(credential.DeviceScopes()), StartedAt: d.CreatedAt.UTC(),
		ExpiresAt: d.ExpiresAt.UTC(), TokenSeconds: int64(credential.DeviceTokenLifetime.Seconds())}, nil
}

// ApproveDevice implements openapi.StrictServerInterface.
func (a *API) ApproveDevice(ctx context.Context, r openapi.ApproveDeviceRequestObject) (openapi.ApproveDeviceResponseObject, error) {
	if err := a.Server.Charge(core.GinContext(ctx), core.BudgetUserCodes, core.Caller(ctx).ID); err != nil {
		return nil, err
	}
	allow := r.Body.Deny == nil || !*r.Body.Deny
	// The token of a command line can change things, and it does not carry the claim of a login that its owner is an auditor.
	// A person who is an auditor only by that claim therefore gets no token; see changes.
	if who := core.Caller(ctx); allow && who.Auditor && !a.Catalog().InGroup(who.ID, catalog.GroupAuditors) {
		return nil, approval.AuditorsOnlyRead()
	}
	if allow { // the program gets a token; see CreateToken
		if err := a.Tickets.CheckLogin(core.Caller(ctx)); err != nil {
			return nil, err
		}
	}
	if err := a.Credentials.DecideDevice(core.RequestContext(ctx), core.Caller(ctx).ID, r.Body.UserCode, allow); err != nil {
		return nil, deviceProblem(err)
	}
	return openapi.ApproveDevice204Response{}, nil
}

// PollDevice implements openapi.StrictServerInterface. The codes of its problems come from RFC 8628, section 3.5.
func (a *API) PollDevice(ctx context.Context, r openapi.PollDeviceRequestObject) (openapi.PollDeviceResponseObject, error) {
	t, secret, err := a.Credentials.PollDevice(core.RequestContext(ctx), r.Body.DeviceCode, func(person string) bool {
		_, ok := a.Catalog().Person(person)
		return ok
	})
	switch {
	case err == nil:
		return openapi.PollDevice200JSONResponse{Token: secret, ExpiresAt: t.ExpiresAt.UTC()}, nil
	case errors.Is(err, credential.ErrPending):
		return nil, core.NewProblem(http.StatusBadRequest, "authorization-pending", message.DeviceNotAgreedYet())
	case errors.Is(err, credential.ErrSlowDown):
		return nil, core.NewProblem(http.StatusBadRequest, "slow-down", message.DeviceSlowDown())
	case errors.Is(err, credential.ErrDenied):
		return nil, core.NewProblem(http.StatusForbidden, "forbidden", message.DeviceRefused())
	case errors.Is(err, credential.ErrUnknown):
		return nil, core.NewProblem(http.StatusBadRequest, "expired-code", message.DeviceCodeEnded())
	}
	return nil, err
}

func deviceProblem(err error) error {
	if errors.Is(err, credential.ErrUnknown) {
		return core.NewProblem(http.StatusNotFound, "not-found", message.DeviceCodeUnknown())
	}
	return err
}
