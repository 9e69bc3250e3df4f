package notificationapi

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const listInbox = "inbox"

// Inbox provides the notifications that the portal shows.
type Inbox interface {
	Inbox(ctx context.Context, f notify.InboxFilter) (notices []notify.Notice, next int64, err error)
	Unread(ctx context.Context, person string) (int, error)
	Mark(ctx context.Context, person string, ids []int64, read bool, at time.Time) error
	MarkAllRead(ctx context.Context, person string, upTo int64, at time.Time) error
	Preferences(ctx context.Context, people ...string) (map[string]notify.Preferences, error)
	SetPreferences(ctx context.Context, person string, p notify.Preferences, at time.Time) error
	DeadLetters(ctx context.Context, f notify.DeadFilter) (letters []notify.DeadLetter, next int64, err error)
	Requeue(ctx context.Context, ids []int64, now time.Time) (int64, error)
}

// ListInbox implements openapi.StrictServerInterface.
func (a *API) ListInbox(ctx context.Context, r openapi.ListInboxRequestObject) (openapi.ListInboxResponseObject, error) {
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	who := core.Caller(ctx).ID
	f := notify.InboxFilter{Person: who, Unread: core.Value(r.Params.Unread), Limit: n}
	if f.Before, err = core.DecodeNumberCursor(listInbox, r.Params.Cursor); err != nil {
		return nil, err
	}
	notices, next, err := a.Inbox.Inbox(core.RequestContext(ctx), f)
	if err != nil {
		return nil, err
	}
	out := openapi.ListInbox200JSONResponse{Items: make([]openapi.InboxItem, 0, len(notices))}
	if out.Unread, err = a.Inbox.Unread(core.RequestContext(ctx), who); err != nil {
		return nil, err
	}
	if next > 0 {
		out.NextCursor = core.EncodeNumberCursor(listInbox, next)
	}
	for _, x := range notices {
		content := notify.ContentOf(x.Message)
		item := openapi.InboxItem{
			Id:    strconv.FormatInt(x.ID, 10),
			At:    x.At.UTC(),
			Kind:  string(x.Kind),
			Title: content.Title,
			Body:  content.Body,
			Items: content.Items,
			Notes: content.Notes,
			Read:  x.Read,
		}
		if x.Ticket != 0 {
			item.Ticket = new(approval.FormatID(x.Ticket))
		}
		if id, ok := strings.CutPrefix(x.Facts.Page, "resources/"); ok {
			item.Resource = &id
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// MarkInbox implements openapi.StrictServerInterface.
func (a *API) MarkInbox(ctx context.Context, r openapi.MarkInboxRequestObject) (openapi.MarkInboxResponseObject, error) {
	who, now := core.Caller(ctx).ID, a.Now()
	read := r.Body.Read == nil || *r.Body.Read
	if r.Body.Ids == nil {
		if !read {
			return nil, core.InvalidField("ids", message.FieldUnreadIds())
		}
		return openapi.MarkInbox204Response{}, a.Inbox.MarkAllRead(core.RequestContext(ctx), who, 0, now)
	}
	if len(*r.Body.Ids) > notify.MaxPage {
		return nil, core.InvalidField("ids", message.FieldMaxCount(200))
	}
	ids := make([]int64, 0, len(*r.Body.Ids))
	for _, text := range *r.Body.Ids {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, core.InvalidField("ids", message.FieldInboxIds())
		}
		ids = append(ids, id)
	}
	return openapi.MarkInbox204Response{}, a.Inbox.Mark(core.RequestContext(ctx), who, ids, read, now)
}
