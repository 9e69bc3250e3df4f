package bench

import (
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	cases := map[string]struct {
		in     []time.Duration
		q      float64
		want   time.Duration
		reason string
	}{
		"median":  {hundred, 0.50, 50, "nearest rank, and the input need not be sorted"},
		"p99":     {hundred, 0.99, 99, "one in a hundred is above"},
		"few":     {[]time.Duration{3, 1, 2}, 0.99, 3, "of few values the p99 is the largest, never less"},
		"nothing": {nil, 0.5, 0, "no values, no panic"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Quantile(c.in, c.q); got != c.want {
				t.Errorf("Quantile(%v) = %d, want %d: %s", c.q, got, c.want, c.reason)
			}
		})
	}
}
