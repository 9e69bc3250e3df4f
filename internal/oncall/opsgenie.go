package oncall

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const opsgenieAPI = "https://api.opsgenie.com"

// whoIsOnCall is the answer of GET /v2/schedules/{identifier}/on-calls?flat=true,
// https://docs.opsgenie.com/docs/who-is-on-call-api. The recipients are the names of users, which are e-mail addresses.
type whoIsOnCall struct {
	Data *struct {
		Parent struct {
			ID      string `json:"id"`
			Name    string `json:"name"`
			Enabled *bool  `json:"enabled"`
		} `json:"_parent"`
		OnCallRecipients []string `json:"onCallRecipients"`
	} `json:"data"`
}

// read implements remote.
func (o *Opsgenie) read(ctx context.Context, client *http.Client, _ time.Time) (tiers, error) {
	base, err := baseURL(orDefault(o.URL, opsgenieAPI))
	if err != nil {
		return nil, err
	}
	token, err := readToken(o.TokenFile)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Authorization": {"GenieKey " + token}, "Accept": {"application/json"}}
	out := tiers{}
	for i, schedule := range o.Schedules {
		u := base.JoinPath("v2", "schedules", url.PathEscape(schedule), "on-calls")
		u.RawQuery = url.Values{"scheduleIdentifierType": {orDefault(o.Identifier, "name")}, "flat": {"true"}}.Encode()
		var got whoIsOnCall
		if err := get(ctx, client, u, header, &got); err != nil {
			return nil, err
		}
		if got.Data == nil {
			return nil, fmt.Errorf("the answer of %s has no data", base.Host)
		}
		// The answer is not trusted to be about what was asked for.
		if parent := got.Data.Parent; parent.Name != schedule && parent.ID != schedule {
			return nil, fmt.Errorf("%s answered about another schedule than %q", base.Host, schedule)
		}
		out[i+1] = []string{} // the tier exists, also if nobody is on call
		if enabled := got.Data.Parent.Enabled; enabled != nil && !*enabled {
			continue
		}
		for _, name := range got.Data.OnCallRecipients {
			if err := out.add(i+1, name); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
