package portal

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// StartDevice implements openapi.StrictServerInterface.
func (a *api) StartDevice(ctx context.Context, r openapi.StartDeviceRequestObject) (openapi.StartDeviceResponseObject, error) {
	c := ginOf(ctx)
	if err := a.budgeted(c, budgetLogins, a.address(c)); err != nil {
		return nil, err
	}
	client := ""
	if r.Body != nil && r.Body.Client != nil {
		client = *r.Body.Client
	}
	codes, err := a.Credentials.StartDevice(plain(ctx), client, a.address(c))
	if errors.Is(err, credential.ErrTooMany) {
		return nil, newProblem(http.StatusServiceUnavailable, "unavailable", message.DeviceTooManyWaiting())
	}
	if err != nil {
		return nil, err
	}
	page := a.origin() + "/device"
	return openapi.StartDevice200JSONResponse{DeviceCode: codes.DeviceCode, UserCode: codes.UserCode, VerificationUri: page,
		VerificationUriComplete: new(page + "?" + url.Values{"code": {codes.UserCode}}.Encode()),
		ExpiresIn:               int(codes.Lifetime.Seconds()), Interval: int(codes.Interval.Seconds())}, nil
}

// GetDevice implements openapi.StrictServerInterface.
func (a *api) GetDevice(ctx context.Context, r openapi.GetDeviceRequestObject) (openapi.GetDeviceResponseObject, error) {
	if err := a.budgeted(ginOf(ctx), budgetUserCodes, actor(ctx).ID); err != nil {
		return nil, err
	}
	d, err := a.Credentials.PendingDevice(plain(ctx), r.Params.UserCode)
	if err != nil {
		return nil, noDevice(err)
	}
	return openapi.GetDevice200JSONResponse{Client: d.Client, Address: d.Address, Scopes: scopesOf(credential.DeviceScopes()), StartedAt: d.CreatedAt.UTC(),
		ExpiresAt: d.ExpiresAt.UTC(), TokenSeconds: int64(credential.DeviceTokenLifetime.Seconds())}, nil
}

// ApproveDevice implements openapi.StrictServerInterface.
func (a *api) ApproveDevice(ctx context.Context, r openapi.ApproveDeviceRequestObject) (openapi.ApproveDeviceResponseObject, error) {
	if err := a.budgeted(ginOf(ctx), budgetUserCodes, actor(ctx).ID); err != nil {
		return nil, err
	}
	allow := r.Body.Deny == nil || !*r.Body.Deny
	// The token of a command line can change things, and it does not carry the claim of a login that its owner is an auditor.
	// A person who is an auditor only by that claim therefore gets no token; see changes.
	if who := actor(ctx); allow && who.Auditor && !a.Catalog().InGroup(who.ID, catalog.GroupAuditors) {
		return nil, approval.AuditorsOnlyRead()
	}
	if err := a.Credentials.DecideDevice(plain(ctx), actor(ctx).ID, r.Body.UserCode, allow); err != nil {
		return nil, noDevice(err)
	}
	return openapi.ApproveDevice204Response{}, nil
}

// PollDevice implements openapi.StrictServerInterface. The codes of its problems are those of RFC 8628 3.5.
func (a *api) PollDevice(ctx context.Context, r openapi.PollDeviceRequestObject) (openapi.PollDeviceResponseObject, error) {
	t, secret, err := a.Credentials.PollDevice(plain(ctx), r.Body.DeviceCode, func(person string) bool {
		_, ok := a.Catalog().Person(person)
		return ok
	})
	switch {
	case err == nil:
		return openapi.PollDevice200JSONResponse{Token: secret, ExpiresAt: t.ExpiresAt.UTC()}, nil
	case errors.Is(err, credential.ErrPending):
		return nil, newProblem(http.StatusBadRequest, "authorization-pending", message.DeviceNotAgreedYet())
	case errors.Is(err, credential.ErrSlowDown):
		return nil, newProblem(http.StatusBadRequest, "slow-down", message.DeviceSlowDown())
	case errors.Is(err, credential.ErrDenied):
		return nil, newProblem(http.StatusForbidden, "forbidden", message.DeviceRefused())
	case errors.Is(err, credential.ErrUnknown):
		return nil, newProblem(http.StatusBadRequest, "expired-code", message.DeviceCodeEnded())
	}
	return nil, err
}

func noDevice(err error) error {
	if errors.Is(err, credential.ErrUnknown) {
		return newProblem(http.StatusNotFound, "not-found", message.DeviceCodeUnknown())
	}
	return err
}

func ginOf(ctx context.Context) *gin.Context {
	c, _ := ctx.(*gin.Context)
	return c
}
