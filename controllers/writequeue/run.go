package writequeue

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Run calls admitted for every unit that may be written, until the context ends.
func (q *Queue) Run(ctx context.Context, c clock.WithTicker, admitted func(Admission)) error {
	for {
		for _, a := range q.AdmitNext(c.Now()) {
			admitted(a)
		}
		timedOut, stop := q.timer(c)
		select {
		case <-ctx.Done():
			stop()
			return nil
		case <-q.trigger:
			stop()
		case <-timedOut:
		}
	}
}

// timer fires when the passing of time alone may let a unit be written.
func (q *Queue) timer(c clock.WithTicker) (<-chan time.Time, func()) {
	after, ends := q.nextChange(c.Now())
	if !ends {
		return nil, func() {}
	}
	t := c.NewTimer(max(after, time.Millisecond))
	return t.C(), func() { t.Stop() }
}
