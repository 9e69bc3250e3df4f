package reviewapi

import (
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// TestDaysOutsideOfTheLimits checks that numbers of days which a duration cannot hold are refused. 213505 days exceed it by so much that the
// overflow would be one day, which is accepted.
func TestDaysOutsideOfTheLimits(t *testing.T) {
	for name, set := range map[string]func(*openapi.NewAccessReview, int){
		"remindEveryDays":     func(b *openapi.NewAccessReview, n int) { b.RemindEveryDays = &n },
		"graceDays":           func(b *openapi.NewAccessReview, n int) { b.GraceDays = &n },
		"scope.olderThanDays": func(b *openapi.NewAccessReview, n int) { b.Scope = &openapi.ReviewScope{OlderThanDays: &n} },
	} {
		for _, n := range []int{-1, math.MinInt, -213503, 3661, 213505, math.MaxInt} {
			b := &openapi.NewAccessReview{Name: "Quarter", Silence: openapi.ReviewSilenceShorten}
			set(b, n)
			var p *core.Problem
			if _, err := input(b); !errors.As(err, &p) || p.Status != http.StatusUnprocessableEntity || len(p.Fields) != 1 || p.Fields[0].Path != name {
				t.Errorf("%s %d: %v", name, n, err)
			}
		}
	}
}

// TestDaysWithinTheLimits checks the durations of a request, and the default of graceDays.
func TestDaysWithinTheLimits(t *testing.T) {
	in, err := input(&openapi.NewAccessReview{RemindEveryDays: new(7), Scope: &openapi.ReviewScope{OlderThanDays: new(3660)}})
	if err != nil || in.RemindEvery != 7*24*time.Hour || in.Grace != 14*24*time.Hour || in.Scope.OlderThan != 3660*24*time.Hour {
		t.Errorf("%+v, %v", in, err)
	}
	if in, err := input(&openapi.NewAccessReview{GraceDays: new(180)}); err != nil || in.Grace != 180*24*time.Hour || in.RemindEvery != 0 {
		t.Errorf("%+v, %v", in, err)
	}
}
