package wallclock

import (
	"time"

	"k8s.io/utils/clock"
)

// Now is the time of day as the program sees it. What only measures how long something takes uses time.Now.
func Now() time.Time { return time.Now().Add(offset) }

// Clock is the same for who waits, too: timers run as they do everywhere.
func Clock() clock.WithTicker { return wall{} }

type wall struct{ clock.RealClock }

func (wall) Now() time.Time { return Now() }

func (wall) Since(t time.Time) time.Duration { return Now().Sub(t) }
