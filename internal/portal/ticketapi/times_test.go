package ticketapi

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/approval"
)

func TestTicketTimes(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type line struct {
		second  int
		kind    approval.EventKind
		item    int
		cluster string
	}
	const whole = approval.WholeTicket
	for _, c := range []struct {
		reason string
		lines  []line
		want   []string // stage, cluster, count, sum
	}{
		{"from asking to everywhere", []line{
			{0, approval.EventSubmitted, whole, ""}, {60, approval.EventStepApproved, 0, ""},
			{100, approval.EventApproved, 0, ""}, {101, approval.EventWritten, 0, ""},
			{102, approval.EventCompiled, 0, ""}, {103, approval.EventPropagated, 0, "m1"}, {104, approval.EventRealized, 0, "m1"},
			{107, approval.EventPropagated, 0, "m2"}, {109, approval.EventRealized, 0, "m2"}, {109, approval.EventEffective, 0, ""},
		}, []string{"apply  1 1", "approve  1 100", "effective  1 9", "effective m1 1 4", "effective m2 1 9"}},
		{"each item by itself", []line{
			{0, approval.EventSubmitted, whole, ""}, {10, approval.EventApproved, 0, ""},
			{30, approval.EventApproved, 1, ""}, {31, approval.EventWritten, 1, ""}, {50, approval.EventWritten, 0, ""},
		}, []string{"apply  2 41", "approve  2 40"}},
		{"a later revision in the same member is no arrival", []line{
			{0, approval.EventSubmitted, whole, ""}, {10, approval.EventApproved, 0, ""},
			{12, approval.EventRealized, 0, "m1"}, {500, approval.EventRealized, 0, "m1"},
		}, []string{"approve  1 10", "effective m1 1 2"}},
		{"break glass begins at once", []line{
			{0, approval.EventSubmitted, whole, ""}, {0, approval.EventBreakGlass, 0, ""},
			{2, approval.EventWritten, 0, ""}, {3, approval.EventRealized, 0, "m1"},
		}, []string{"apply  1 2", "effective m1 1 3"}},
		{"a revocation has its own stage", []line{
			{0, approval.EventSubmitted, whole, ""}, {1, approval.EventApproved, 0, ""},
			{2, approval.EventRealized, 0, "m1"}, {2, approval.EventEffective, 0, ""},
			{1000, approval.EventRevokeRequested, 0, ""}, {1003, approval.EventRealized, 0, "m1"}, {1004, approval.EventRevoked, 0, ""},
		}, []string{"approve  1 1", "effective  1 1", "effective m1 1 1", "revoke  1 4", "revoke m1 1 3"}},
		{"an expiry too", []line{
			{0, approval.EventSubmitted, whole, ""}, {1, approval.EventApproved, 0, ""},
			{1000, approval.EventExpired, 0, ""}, {1002, approval.EventRevoked, 0, ""},
		}, []string{"approve  1 1", "revoke  1 2"}},
		{"a comment ends nothing", []line{{0, approval.EventSubmitted, whole, ""}, {5, approval.EventComment, whole, ""}}, nil},
		{"a line without a beginning", []line{{5, approval.EventRealized, 0, "m1"}, {6, approval.EventRevoked, 0, ""}}, nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			times := NewTicketTimes(reg)
			x := &approval.Ticket{}
			for n, l := range c.lines {
				at := start.Add(time.Duration(l.second) * time.Second)
				x.Events = append(x.Events, approval.Event{At: at, Kind: l.kind, Item: l.item, Cluster: l.cluster})
				x.UpdatedAt = at
				if n+1 < len(c.lines) && c.lines[n+1].second == l.second {
					continue // of the same change
				}
				times.Changed(x)
			}
			x.UpdatedAt = x.UpdatedAt.Add(time.Second)
			times.Changed(x) // a change without a line
			if d := cmp.Diff(c.want, histograms(t, reg)); d != "" {
				t.Error(d)
			}
		})
	}
}

func histograms(t *testing.T, reg *prometheus.Registry) []string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out = append(out, fmt.Sprint(labels["stage"], " ", labels["cluster"], " ", m.GetHistogram().GetSampleCount(), " ", m.GetHistogram().GetSampleSum()))
		}
	}
	slices.Sort(out)
	return out
}
