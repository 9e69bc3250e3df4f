package writequeue

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Run calls turn for whoever's turn it is, until the context ends.
func (l *Queue) Run(ctx context.Context, c clock.WithTicker, turn func(Admission)) error {
	for {
		for _, t := range l.AdmitNext(c.Now()) {
			turn(t)
		}
		old, stop := l.alarm(c)
		select {
		case <-ctx.Done():
			stop()
			return nil
		case <-l.wake:
			stop()
		case <-old:
		}
	}
}

// alarm rings when what is counted has grown old, if anybody waits for that.
func (l *Queue) alarm(c clock.WithTicker) (<-chan time.Time, func()) {
	idle, ends := l.nextChange(c.Now())
	if !ends {
		return nil, func() {}
	}
	t := c.NewTimer(max(idle, time.Millisecond))
	return t.C(), func() { t.Stop() }
}
