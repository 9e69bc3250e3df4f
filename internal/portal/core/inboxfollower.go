package core

import (
	"context"
	"log/slog"
	"time"

	"github.com/acp-io/acp/internal/notify"
)

// arrivalReader provides the latest messages of all inboxes; see notify.Store.
type arrivalReader interface {
	Arrived(ctx context.Context, after int64, limit int) ([]notify.Arrival, error)
}

// FollowInboxes publishes changes of inboxes by other replicas.
func (h *Hub) FollowInboxes(ctx context.Context, inboxes arrivalReader, every time.Duration, log *slog.Logger) {
	t := time.NewTicker(every)
	defer t.Stop()
	f := &inboxFollower{inboxes: inboxes}
	for {
		if err := f.poll(ctx, h.Inbox); err != nil && ctx.Err() == nil {
			log.Warn("new notifications could not be read; retrying", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

const (
	// The last ids are read again, because a transaction of another replica may have a lower id and commit later.
	inboxOverlap = 200
	inboxPage    = 1000
)

type inboxFollower struct {
	inboxes   arrivalReader
	published map[int64]bool // of the overlap; nil before it begins
	start     int64          // what was there when it began is no news
	newest    int64
}

func (f *inboxFollower) poll(ctx context.Context, tell func(person string)) error {
	if f.published == nil {
		there, err := f.inboxes.Arrived(ctx, -1, 1)
		if err != nil {
			return err
		}
		for _, a := range there {
			f.start, f.newest = a.ID, a.ID
		}
		f.published = map[int64]bool{}
		return nil
	}
	arrived, err := f.inboxes.Arrived(ctx, max(f.start, f.newest-inboxOverlap), inboxPage)
	if err != nil {
		return err
	}
	people := map[string]bool{}
	for _, a := range arrived {
		if !f.published[a.ID] {
			f.published[a.ID], people[a.Person] = true, true
			f.newest = max(f.newest, a.ID)
		}
	}
	for id := range f.published {
		if id <= f.newest-inboxOverlap {
			delete(f.published, id)
		}
	}
	for p := range people {
		tell(p)
	}
	return nil
}
