package core

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	now := time.Unix(1700000000, 0)
	fail := false
	m := newMetrics(reg, NewHub(), func(context.Context) (Stats, error) {
		if fail {
			return Stats{}, errors.New("the store is away")
		}
		return Stats{Tickets: map[string]int64{"pending": 3, "effective": 7}, Outbox: 2, Oldest: now.Add(-90 * time.Second), Sessions: 5, Tokens: 1}, nil
	}, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	m.limited("requests")
	want := `
# HELP acp_portal_outbox_age_seconds How long the oldest job of the outbox has been due.
# TYPE acp_portal_outbox_age_seconds gauge
acp_portal_outbox_age_seconds 90
# HELP acp_portal_rate_limited_total Requests refused because a budget was used up.
# TYPE acp_portal_rate_limited_total counter
acp_portal_rate_limited_total{budget="requests"} 1
# HELP acp_portal_tickets Tickets by state.
# TYPE acp_portal_tickets gauge
acp_portal_tickets{state="effective"} 7
acp_portal_tickets{state="pending"} 3
`
	if err := testutil.GatherAndCompare(
		reg,
		strings.NewReader(want),
		"acp_portal_outbox_age_seconds",
		"acp_portal_rate_limited_total",
		"acp_portal_tickets",
	); err != nil {
		t.Error(err)
	}
	fail = true
	if n, err := testutil.GatherAndCount(reg, "acp_portal_tickets"); n != 0 || err != nil {
		t.Errorf("a store that is away takes its own metrics with it, and no others: %d %v", n, err)
	}
}
