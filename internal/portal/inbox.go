package portal

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
func (a *api) ListInbox(ctx context.Context, r openapi.ListInboxRequestObject) (openapi.ListInboxResponseObject, error) {
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	who := core.Caller(ctx).ID
	f := notify.InboxFilter{Person: who, Unread: core.Value(r.Params.Unread), Limit: n}
	if f.Before, err = core.DecodeNumberCursor(listInbox, r.Params.Cursor); err != nil {
		return nil, err
	}
	p, err := a.preferences(ctx, who)
	if err != nil {
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
	w := notify.Renderer{Portal: a.PublicURL}
	for _, x := range notices {
		text, err := w.Render(x.Message, p)
		if err != nil {
			return nil, err
		}
		item := openapi.InboxItem{Id: strconv.FormatInt(x.ID, 10), At: x.At.UTC(), Kind: string(x.Kind), Title: text.Title, Body: core.Optional(text.Body), Read: x.Read}
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

func (a *api) preferences(ctx context.Context, person string) (notify.Preferences, error) {
	all, err := a.Inbox.Preferences(core.RequestContext(ctx), person)
	return all[person], err
}

// MarkInbox implements openapi.StrictServerInterface.
func (a *api) MarkInbox(ctx context.Context, r openapi.MarkInboxRequestObject) (openapi.MarkInboxResponseObject, error) {
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

// GetPreferences implements openapi.StrictServerInterface.
func (a *api) GetPreferences(ctx context.Context, _ openapi.GetPreferencesRequestObject) (openapi.GetPreferencesResponseObject, error) {
	p, err := a.preferences(ctx, core.Caller(ctx).ID)
	if err != nil {
		return nil, err
	}
	return openapi.GetPreferences200JSONResponse(a.preferencesView(p)), nil
}

func (a *api) preferencesView(p notify.Preferences) openapi.Preferences {
	out := openapi.Preferences{Language: openapi.PreferencesLanguage(p.Language), TimeZone: p.TimeZone, DigestHour: p.DigestHour, Channels: map[string]map[string]openapi.PreferencesChannels{}}
	if out.Language == "" {
		out.Language = openapi.PreferencesLanguageEn
	}
	if out.TimeZone == "" {
		out.TimeZone = "UTC"
	}
	if out.DigestHour == nil {
		out.DigestHour = new(notify.DefaultDigestHour)
	}
	available := []string{string(notify.ChannelInbox)}
	channels := []notify.Channel{notify.ChannelInbox}
	for _, c := range a.Channels {
		available, channels = append(available, string(c)), append(channels, c)
	}
	out.Available = &available
	for c, kinds := range p.Table(channels) {
		out.Channels[string(c)] = map[string]openapi.PreferencesChannels{}
		for k, w := range kinds {
			out.Channels[string(c)][string(k)] = openapi.PreferencesChannels(w)
		}
	}
	return out
}

// PutPreferences implements openapi.StrictServerInterface.
func (a *api) PutPreferences(ctx context.Context, r openapi.PutPreferencesRequestObject) (openapi.PutPreferencesResponseObject, error) {
	p := notify.Preferences{Language: string(r.Body.Language), TimeZone: r.Body.TimeZone, DigestHour: r.Body.DigestHour, Choices: map[notify.Channel]map[notify.Kind]notify.Timing{}}
	for c, kinds := range r.Body.Channels {
		if c == string(notify.ChannelInbox) {
			continue // the inbox has everything, always
		}
		p.Choices[notify.Channel(c)] = map[notify.Kind]notify.Timing{}
		for k, w := range kinds {
			p.Choices[notify.Channel(c)][notify.Kind(k)] = notify.Timing(w)
		}
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := a.Inbox.SetPreferences(core.RequestContext(ctx), core.Caller(ctx).ID, p, a.Now()); err != nil {
		return nil, err
	}
	return openapi.PutPreferences200JSONResponse(a.preferencesView(p)), nil
}
