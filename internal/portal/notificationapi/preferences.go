package notificationapi

import (
	"context"

	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

func (a *API) preferences(ctx context.Context, person string) (notify.Preferences, error) {
	all, err := a.Inbox.Preferences(core.RequestContext(ctx), person)
	return all[person], err
}

// GetPreferences implements openapi.StrictServerInterface.
func (a *API) GetPreferences(ctx context.Context, _ openapi.GetPreferencesRequestObject) (openapi.GetPreferencesResponseObject, error) {
	p, err := a.preferences(ctx, core.Caller(ctx).ID)
	if err != nil {
		return nil, err
	}
	return openapi.GetPreferences200JSONResponse(a.preferencesView(p)), nil
}

func (a *API) preferencesView(p notify.Preferences) openapi.Preferences {
	out := openapi.Preferences{
		Language:   openapi.PreferencesLanguage(p.Language),
		TimeZone:   p.TimeZone,
		DigestHour: p.DigestHour,
		Channels:   map[string]map[string]openapi.PreferencesChannels{},
	}
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
func (a *API) PutPreferences(ctx context.Context, r openapi.PutPreferencesRequestObject) (openapi.PutPreferencesResponseObject, error) {
	p := notify.Preferences{
		Language:   string(r.Body.Language),
		TimeZone:   r.Body.TimeZone,
		DigestHour: r.Body.DigestHour,
		Choices:    map[notify.Channel]map[notify.Kind]notify.Timing{},
	}
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
