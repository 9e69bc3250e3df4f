package database

import (
	"testing"
	"time"
)

func TestInstant(t *testing.T) {
	for _, at := range []time.Time{{}, time.Date(2026, 11, 28, 8, 0, 0, 123_456_000, time.UTC), time.Unix(-1, 0).UTC()} {
		if got := Instant(Micros(at)); !got.Equal(at) || got.IsZero() != at.IsZero() || got.Location() != time.UTC {
			t.Errorf("%v is stored and read as %v", at, got)
		}
	}
}
