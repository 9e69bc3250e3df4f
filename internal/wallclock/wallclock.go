package wallclock

import (
	"time"

	"k8s.io/utils/clock"
)

// Now returns the time of day that the program uses. Code that measures durations uses time.Now instead.
func Now() time.Time { return time.Now().Add(offset) }

// Clock returns a clock whose time is Now. Its timers run at normal speed.
func Clock() clock.WithTicker { return wall{} }

type wall struct{ clock.RealClock }

func (wall) Now() time.Time { return Now() }

func (wall) Since(t time.Time) time.Duration { return Now().Sub(t) }
