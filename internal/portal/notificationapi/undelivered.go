package notificationapi

import (
	"context"
	"strconv"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const listUndelivered = "undelivered"

// ListUndelivered implements openapi.StrictServerInterface.
func (a *API) ListUndelivered(ctx context.Context, r openapi.ListUndeliveredRequestObject) (openapi.ListUndeliveredResponseObject, error) {
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	f := notify.DeadFilter{Channel: notify.Channel(core.Value(r.Params.Channel)), Limit: n}
	if f.Before, err = core.DecodeNumberCursor(listUndelivered, r.Params.Cursor); err != nil {
		return nil, err
	}
	letters, next, err := a.Inbox.DeadLetters(core.RequestContext(ctx), f)
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	out := openapi.ListUndelivered200JSONResponse{Items: make([]openapi.Undelivered, 0, len(letters))}
	for _, l := range letters {
		x := openapi.Undelivered{Id: strconv.FormatInt(l.ID, 10), At: l.At.UTC(), GivenUpAt: l.GivenUp.UTC(), Kind: string(l.Kind),
			Channel: string(l.Channel), Attempts: l.Attempts, Problem: l.Problem}
		if l.Person != "" {
			x.Person = new(views.Person(c, l.Person))
		}
		if l.Ticket != 0 {
			x.Ticket = new(approval.FormatID(l.Ticket))
		}
		out.Items = append(out.Items, x)
	}
	if next > 0 {
		out.NextCursor = core.EncodeNumberCursor(listUndelivered, next)
	}
	return out, nil
}

// RetryUndelivered implements openapi.StrictServerInterface.
func (a *API) RetryUndelivered(ctx context.Context, r openapi.RetryUndeliveredRequestObject) (openapi.RetryUndeliveredResponseObject, error) {
	var ids []int64
	if r.Body.Ids != nil {
		ids = []int64{} // an empty list does not mean all
		for _, text := range *r.Body.Ids {
			id, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, core.InvalidField("ids", message.FieldUndeliveredIds())
			}
			ids = append(ids, id)
		}
	}
	n, err := a.Inbox.Requeue(core.RequestContext(ctx), ids, a.Now())
	if err != nil {
		return nil, err
	}
	return openapi.RetryUndelivered200JSONResponse{Count: n}, nil
}
