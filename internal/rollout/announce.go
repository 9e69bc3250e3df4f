package rollout

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
)

// Notice is the content of an announcement to the clients' owners.
type Notice struct {
	Message   string
	EnforceAt time.Time // as planned; zero if not stated
}

// announceEvery bounds how often an owner can send announcements to the owners of all clients of their resource.
const announceEvery = 10 * time.Minute

// Announced is the result of an announcement.
type Announced struct {
	Notified int
	Unowned  []string // clients without an owner in the catalog
}

// Announce notifies the owners of the clients that were seen, and those of the resource, that the resource will be
// closed.
func (s *Service) Announce(ctx context.Context, a approval.Actor, e catalog.Entity, n Notice, clients []string) (Announced, error) {
	if err := s.allowed(a, e); err != nil {
		return Announced{}, err
	}
	n.Message = strings.TrimSpace(n.Message)
	now := s.Now()
	switch {
	case n.Message == "" || utf8.RuneCountInString(n.Message) > approval.MaxText:
		return Announced{}, invalid("message", message.AnnounceTextLength(approval.MaxText))
	case !n.EnforceAt.IsZero() && n.EnforceAt.Before(now):
		return Announced{}, invalid("enforceAt", message.AnnounceInstantInPast())
	}
	p, err := s.protection(e)
	if err != nil {
		return Announced{}, err
	}
	if stage := StageOf(Input{Protection: p, Now: now}); stage == StageObserve {
		return Announced{}, fail(approval.CodeConflict, message.AnnounceObserve(e.Title))
	}
	people, unowned := owners(s.Catalog(), e, clients)
	delete(people, a.ID)
	notified := len(people)
	_, err = s.Store.Change(ctx, e.Name, func(st *State) (News, error) {
		if st.Announcement != nil && now.Before(st.Announcement.At.Add(announceEvery)) {
			return News{}, fail(approval.CodeConflict, message.AnnounceJustAnnounced(e.Title))
		}
		st.Announcement = &Announcement{At: now, By: a.ID, Message: n.Message, EnforceAt: n.EnforceAt.UTC(), Notified: notified}
		details := map[string]string{"message": n.Message, "told": strconv.Itoa(notified), "clients": strconv.Itoa(len(clients))}
		if !n.EnforceAt.IsZero() {
			details["enforceAt"] = n.EnforceAt.UTC().Format(time.RFC3339)
		}
		return News{
			Entries: []ledger.Entry{line(now, a.ID, "resource.announced", e, details)},
			ResourceEvents: []notify.ResourceEvent{
				resourceEvent(now, notify.EventAnnounced, e, notify.Facts{ActorID: a.ID, Comment: n.Message, Until: n.EnforceAt}, people),
			},
		}, nil
	})
	if err != nil {
		return Announced{}, err
	}
	return Announced{Notified: notified, Unowned: unowned}, nil
}

// unannounce deletes the announcement of a resource that returned to the first stage.
func (w *Watcher) unannounce(ctx context.Context, e catalog.Entity) error {
	_, err := w.Store.Change(ctx, e.Name, func(st *State) (News, error) {
		st.Announcement = nil
		return News{}, nil
	})
	return err
}

// owners returns the owners of the clients, each with their applications, those of the resource, and the clients
// without owner.
func owners(c *catalog.Catalog, e catalog.Entity, clients []string) (people map[string][]notify.About, unowned []string) {
	people = map[string][]notify.About{}
	for _, p := range c.OwnerPeople(e) {
		people[p] = nil
	}
	for _, name := range clients {
		app, known := c.ByName(name)
		if !known {
			unowned = append(unowned, name)
			continue
		}
		those := c.OwnerPeople(app)
		if len(those) == 0 {
			unowned = append(unowned, name)
		}
		for _, p := range those {
			people[p] = append(people[p], notify.About{Application: app.Title, Resource: e.Title})
		}
	}
	slices.Sort(unowned)
	return people, unowned
}
