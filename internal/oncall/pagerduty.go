package oncall

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	pagerDutyAPI  = "https://api.pagerduty.com"
	pagerDutyPage = 100
	// pagerDutyPages bounds the pages that are read.
	pagerDutyPages = 10
)

// onCalls is a page of GET /oncalls, https://developer.pagerduty.com/api-reference/3a6b910f11050-list-all-of-the-on-calls.
type onCalls struct {
	OnCalls []struct {
		EscalationPolicy struct {
			ID string `json:"id"`
		} `json:"escalation_policy"`
		EscalationLevel int `json:"escalation_level"`
		User            struct {
			Email string `json:"email"`
		} `json:"user"`
		Start *time.Time `json:"start"` // null: always
		End   *time.Time `json:"end"`
	} `json:"oncalls"`
	More bool `json:"more"`
}

// read implements remote.
func (p *PagerDuty) read(ctx context.Context, client *http.Client, now time.Time) (tiers, error) {
	base, err := baseURL(orDefault(p.URL, pagerDutyAPI))
	if err != nil {
		return nil, err
	}
	token, err := readToken(p.TokenFile)
	if err != nil {
		return nil, err
	}
	header := http.Header{"Authorization": {"Token token=" + token}, "Accept": {"application/vnd.pagerduty+json;version=2"}}
	out := tiers{}
	for page := range pagerDutyPages {
		u := base.JoinPath("oncalls")
		u.RawQuery = url.Values{
			"escalation_policy_ids[]": {p.EscalationPolicy},
			"include[]":               {"users"},
			"time_zone":               {"UTC"},
			"limit":                   {fmt.Sprint(pagerDutyPage)},
			"offset":                  {fmt.Sprint(page * pagerDutyPage)},
		}.Encode()
		var got onCalls
		if err := get(ctx, client, u, header, &got); err != nil {
			return nil, err
		}
		for _, x := range got.OnCalls {
			// The answer is not trusted to be about what was asked for.
			if x.EscalationPolicy.ID != p.EscalationPolicy || x.Start != nil && now.Before(*x.Start) || x.End != nil && !now.Before(*x.End) {
				continue
			}
			if err := out.add(x.EscalationLevel, x.User.Email); err != nil {
				return nil, err
			}
		}
		if !got.More {
			return out, nil
		}
	}
	return nil, fmt.Errorf("%s has more than %d entries for %s", base.Host, pagerDutyPage*pagerDutyPages, p.EscalationPolicy)
}
