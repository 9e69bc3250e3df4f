package hostcluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"
)

func TestClockIsNotBehindTheHost(t *testing.T) {
	host := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason string
		// At each response, own is how far the program's clock is ahead, passed is the time since the response before,
		// and under is how long the response took.
		own, passed, under []time.Duration
		want               []time.Duration
		told               []string
	}{
		"right": {"whole seconds are no difference", []time.Duration{0, 900 * time.Millisecond, -2 * time.Second}, nil, nil, []time.Duration{0, 0, 0}, nil},
		"ahead": {
			"a clock that is ahead ends grants early, and opens nothing that ended",
			[]time.Duration{10 * time.Minute}, nil, nil, []time.Duration{0}, nil,
		},
		"behind": {"grants that ended stay ended", []time.Duration{-10 * time.Minute, -10 * time.Minute}, nil, nil,
			[]time.Duration{10 * time.Minute, 10 * time.Minute}, []string{"10m0s"}},
		"slow answer": {"an answer that was long under way says less", []time.Duration{-time.Minute, -time.Minute}, nil, []time.Duration{0, 20 * time.Second},
			[]time.Duration{time.Minute, time.Minute}, []string{"1m0s"}},
		"set right": {"believed when all answers of a while say so",
			[]time.Duration{-time.Minute, 0, 0}, []time.Duration{0, time.Second, 40 * time.Second}, nil,
			[]time.Duration{time.Minute, time.Minute, 0}, []string{"1m0s", "0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			at := host
			var told []string
			own := testclock.NewFakeClock(at)
			c := &Clock{WithTicker: own, OnChange: func(behind time.Duration) { told = append(told, behind.String()) }}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", at.Format(http.TimeFormat))
			}))
			defer server.Close()
			client := &http.Client{Transport: c.Wrap(http.DefaultTransport)}
			for i, ahead := range tc.own {
				if tc.passed != nil {
					at = at.Add(tc.passed[i])
				}
				arrives := at.Add(ahead)
				if tc.under != nil {
					arrives = arrives.Add(tc.under[i])
				}
				own.SetTime(arrives)
				res, err := client.Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if diff := cmp.Diff(fmt.Sprint(tc.want[i]), c.Now().Sub(arrives).String()); diff != "" {
					t.Errorf("%s: answer %d (-want +got)\n%s", tc.reason, i, diff)
				}
			}
			if diff := cmp.Diff(tc.told, told); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
