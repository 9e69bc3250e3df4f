package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/api/v1alpha1"
)

// seen is how far a unit is in m1.
func seen(state v1alpha1.MemberState, desired, observed string, propagated bool) v1alpha1.ClusterState {
	return v1alpha1.ClusterState{Name: "m1", State: state, DesiredRevision: desired, ObservedRevision: observed, Propagated: propagated}
}

func TestMember(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const pending, realized, drifted, away = v1alpha1.MemberPending, v1alpha1.MemberRealized, v1alpha1.MemberDrifted, v1alpha1.MemberUnreachable
	type look struct {
		second float64
		state  v1alpha1.ClusterState
	}
	for _, c := range []struct {
		reason               string
		told                 v1alpha1.ClusterState
		looks                []look
		realizes, propagates string // count and sum
		drifts               float64
	}{
		{
			"a new unit arrives", v1alpha1.ClusterState{},
			[]look{
				{0, seen(pending, "a", "", false)}, {1, seen(pending, "a", "", true)},
				{3, seen(realized, "a", "a", true)}, {9, seen(realized, "a", "a", true)},
			},
			"1 3", "1 1", 0,
		},
		{
			"a change arrives before KubeFed says so", seen(realized, "a", "a", true),
			[]look{{0, seen(pending, "b", "a", false)}, {2, seen(realized, "b", "b", false)}, {3, seen(realized, "b", "b", true)}},
			"1 2", "1 3", 0,
		},
		{
			"the process before began it", seen(pending, "a", "", false),
			[]look{{0, seen(pending, "a", "", false)}, {2, seen(realized, "a", "a", true)}}, "0 0", "0 0", 0,
		},
		{
			"a second change begins anew", seen(realized, "a", "a", true),
			[]look{{0, seen(pending, "b", "a", false)}, {5, seen(pending, "c", "b", false)}, {6, seen(realized, "c", "c", true)}},
			"1 1", "1 1", 0,
		},
		{
			"a change that is taken back was never waited for", seen(realized, "a", "a", true),
			[]look{{0, seen(pending, "b", "a", false)}, {5, seen(realized, "a", "a", true)}}, "0 0", "0 0", 0,
		},
		{
			"the same thing twice", seen(realized, "a", "a", true),
			[]look{
				{0, seen(pending, "b", "a", false)}, {1, seen(realized, "b", "b", true)},
				{2, seen(pending, "a", "b", false)}, {4, seen(realized, "a", "a", true)},
			},
			"2 3", "2 3", 0,
		},
		{
			"what was last seen of a member that is away is not there now", seen(realized, "a", "a", true),
			[]look{{0, seen(away, "b", "b", false)}, {7, seen(realized, "b", "b", true)}}, "0 0", "0 0", 0,
		},
		{
			"a member that was away catches up", seen(realized, "a", "a", true),
			[]look{{0, seen(away, "b", "a", false)}, {7, seen(realized, "b", "b", true)}}, "1 7", "1 7", 0,
		},
		{
			"a removal is no arrival", seen(realized, "a", "a", true),
			[]look{{0, seen(pending, "", "a", false)}, {7, seen(realized, "", "", true)}}, "0 0", "0 0", 0,
		},
		{
			"a drift counts when it begins", seen(realized, "a", "a", true),
			[]look{
				{0, seen(drifted, "a", "x", true)}, {1, seen(drifted, "a", "y", true)},
				{2, seen(realized, "a", "a", true)}, {3, seen(drifted, "a", "x", true)},
			},
			"0 0", "0 0", 2,
		},
		{
			"a drift that the previous process reported was counted by it", seen(drifted, "a", "x", true),
			[]look{{0, seen(drifted, "a", "x", true)}}, "0 0", "0 0", 0,
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			m, err := New(reg)
			if err != nil {
				t.Fatal(err)
			}
			before := c.told
			for _, l := range c.looks {
				m.RecordMember("r", before, l.state, l.state.Propagated, start.Add(time.Duration(l.second*float64(time.Second))), time.Time{})
				before = l.state
			}
			for name, want := range map[string]string{"acp_realize_seconds": c.realizes, "acp_propagate_seconds": c.propagates} {
				if got := histogram(t, reg, name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			if got := testutil.ToFloat64(m.drift.WithLabelValues("m1")); got != c.drifts {
				t.Errorf("%v drifts, want %v", got, c.drifts)
			}
			if last := c.looks[len(c.looks)-1].state.State; last == realized && len(m.waiting) != 0 {
				t.Errorf("something is waited for: %v", m.waiting)
			}
		})
	}
}

func TestMemberCountsFromTheRequest(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := New(reg)
	if err != nil {
		t.Fatal(err)
	}
	asked := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	waiting := seen(v1alpha1.MemberPending, "a", "", false)
	m.RecordMember("r", v1alpha1.ClusterState{}, waiting, false, asked.Add(2*time.Second), asked)
	m.RecordMember("r", waiting, seen(v1alpha1.MemberRealized, "a", "a", true), true, asked.Add(5*time.Second), asked.Add(4*time.Second))
	if got := histogram(t, reg, "acp_realize_seconds"); got != "1 5" {
		t.Error(got)
	}
	m.RecordMember("s", v1alpha1.ClusterState{}, waiting, false, asked, asked)
	m.Forget("s")
	if len(m.waiting) != 0 {
		t.Errorf("what is gone is waited for: %v", m.waiting)
	}
}

// The read-back is not a report by KubeFed, although the status counts it as propagated.
func TestReadBackIsNotPropagation(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := New(reg)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pending, there := seen(v1alpha1.MemberPending, "a", "", false), seen(v1alpha1.MemberRealized, "a", "a", true)
	m.RecordMember("r", v1alpha1.ClusterState{}, pending, false, start, start)
	m.RecordMember("r", pending, there, false, start.Add(time.Second), start)
	if got := histogram(t, reg, "acp_propagate_seconds"); got != "0 0" {
		t.Errorf("KubeFed has reported nothing, and it was measured: %s", got)
	}
	m.RecordMember("r", there, there, true, start.Add(4*time.Second), start)
	if got := histogram(t, reg, "acp_propagate_seconds"); got != "1 4" {
		t.Errorf("KubeFed reported after 4 s: %s", got)
	}
	if got := histogram(t, reg, "acp_realize_seconds"); got != "1 1" {
		t.Errorf("it was read back after 1 s: %s", got)
	}
}

func TestExpired(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := New(reg)
	if err != nil {
		t.Fatal(err)
	}
	m.RecordExpiry(90 * time.Second)
	m.RecordExpiry(-time.Second) // clocks differ
	if got := histogram(t, reg, "acp_expiry_lag_seconds"); got != "2 90" {
		t.Error(got)
	}
	if _, err := New(reg); err == nil || !strings.Contains(err.Error(), "register") {
		t.Errorf("they were registered twice: %v", err)
	}
}

// histogram is the count and the sum of a histogram with one series, or none.
func histogram(t *testing.T, reg *prometheus.Registry, name string) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name && len(f.GetMetric()) == 1 {
			h := f.GetMetric()[0].GetHistogram()
			return fmt.Sprint(h.GetSampleCount(), " ", h.GetSampleSum())
		}
	}
	return "0 0"
}
