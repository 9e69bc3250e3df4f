package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

const (
	// maxNextReview bounds how far in the future the next review of a proposal can be.
	maxNextReview = 366 * 24 * time.Hour
	// NoticeEvery is the time after which the owners of an application can be notified again about the same resource.
	NoticeEvery = 7 * 24 * time.Hour
	// noticesPerDay bounds the notices of a person in noticeBudgetWindow, so that they cannot be used to flood other people.
	noticesPerDay      = 20
	noticeBudgetWindow = 24 * time.Hour
	// remindersAtOnce bounds the reminders of one check; the next check sends the others.
	remindersAtOnce = 200
)

// ProposalReview is the last review of the observed clients of a resource. The zero value means that there was none.
type ProposalReview struct {
	At time.Time
	By string // person ID
	// SeenUntil is the end of the flows that the reviewer saw. Clients that were first seen later are new.
	SeenUntil time.Time
	// NextReview is when the clients should be reviewed again; zero if no date was set.
	NextReview time.Time
	// RemindedAt is when the owners were reminded of NextReview; zero if they were not.
	RemindedAt time.Time
}

// Due reports whether the date of the next review has passed.
func (r ProposalReview) Due(now time.Time) bool {
	return !r.NextReview.IsZero() && !now.Before(r.NextReview)
}

// ClientNotice is the last notice to the owners of an application that its access to a resource is not wanted. The zero value means
// that there was none.
type ClientNotice struct {
	At         time.Time
	By         string // person ID
	Reason     string
	Recipients int // their number
}

// RepeatableAt returns when the notice can be repeated.
func (n ClientNotice) RepeatableAt() time.Time { return n.At.Add(NoticeEvery) }

// ProposalStore stores the reviews of proposals and the notices to the owners of clients. Every method is one transaction.
type ProposalStore interface {
	// ProposalReviews returns the reviews of resources by name; resources without a review are not included.
	ProposalReviews(ctx context.Context, resources ...string) (map[string]ProposalReview, error)
	// ChangeProposalReview loads the review of a resource, applies a change and stores it with its news, atomically with respect to
	// other changes of the review. An error of the change is returned unchanged, and nothing is stored.
	ChangeProposalReview(ctx context.Context, resource string, change func(*ProposalReview) (News, error)) (ProposalReview, error)
	// DueProposalReviews returns the names of at most limit resources whose next review is due and whose owners were not reminded,
	// the longest overdue first.
	DueProposalReviews(ctx context.Context, now time.Time, limit int) ([]string, error)
	// ClientNotices returns the notices about a resource by the name of the application.
	ClientNotices(ctx context.Context, resource string) (map[string]ClientNotice, error)
	// AddClientNotice stores a notice and its news. The callback gets the previous notice about the resource and the application,
	// and the number of notices that the sender sent since an instant; concurrent notices of the sender or about the resource wait.
	// An error of the callback is returned unchanged, and nothing is stored.
	AddClientNotice(
		ctx context.Context,
		resource, application, sender string,
		since time.Time,
		add func(previous ClientNotice, recent int64) (ClientNotice, News, error),
	) (ClientNotice, error)
}

// ReviewInput is the content of a review of a proposal.
type ReviewInput struct {
	// SeenUntil is the end of the flows that the reviewer saw; zero means now.
	SeenUntil time.Time
	// NextReview is when the clients should be reviewed again; zero for no date.
	NextReview time.Time
}

// ReviewProposal records that an owner of the resource or the security team reviewed its observed clients.
func (s *Service) ReviewProposal(ctx context.Context, a approval.Actor, e catalog.Entity, in ReviewInput) (ProposalReview, error) {
	if err := s.allowed(a, e); err != nil {
		return ProposalReview{}, err
	}
	now := s.Now().UTC()
	next := in.NextReview.UTC()
	if !next.IsZero() && (!next.After(now) || next.After(now.Add(maxNextReview))) {
		return ProposalReview{}, invalid("nextReview", message.ProposalReviewNext(int(maxNextReview/(24*time.Hour))))
	}
	seen := in.SeenUntil.UTC()
	if seen.IsZero() || seen.After(now) {
		seen = now
	}
	return s.Store.ChangeProposalReview(ctx, e.Name, func(r *ProposalReview) (News, error) {
		if seen.Before(r.SeenUntil) { // another reviewer saw later flows
			seen = r.SeenUntil
		}
		*r = ProposalReview{At: now, By: a.ID, SeenUntil: seen, NextReview: next}
		details := map[string]string{"seenUntil": seen.Format(time.RFC3339)}
		if !next.IsZero() {
			details["nextReview"] = next.Format(time.RFC3339)
		}
		return News{Entries: []ledger.Entry{line(now, a.ID, "resource.proposal-reviewed", e, details)}}, nil
	})
}

// SeenClient is what was seen of an application that uses a resource without a grant.
type SeenClient struct {
	// Actions are the actions that it used, and the ports that no action has, such as 9121/TCP.
	Actions  []string
	Count    int64 // of connections
	LastSeen time.Time
}

// NotifyClient notifies the owners of an application that the owners of a resource do not want to grant the access that was seen. The
// caller has to check that the application was seen.
func (s *Service) NotifyClient(ctx context.Context, a approval.Actor, e, app catalog.Entity, reason string, seen SeenClient) (ClientNotice, error) {
	if err := s.allowed(a, e); err != nil {
		return ClientNotice{}, err
	}
	reason = strings.TrimSpace(reason)
	if reason == "" || utf8.RuneCountInString(reason) > approval.MaxText {
		return ClientNotice{}, invalid("reason", message.AnnounceTextLength(approval.MaxText))
	}
	people := map[string][]notify.About{}
	for _, p := range s.Catalog().OwnerPeople(app) {
		if p != a.ID {
			people[p] = nil
		}
	}
	if len(people) == 0 {
		return ClientNotice{}, fail(approval.CodeConflict, message.ClientNoticeNoOwner(app.Title))
	}
	now := s.Now().UTC()
	return s.Store.AddClientNotice(
		ctx,
		e.Name,
		app.Name,
		a.ID,
		now.Add(-noticeBudgetWindow),
		func(previous ClientNotice, recent int64) (ClientNotice, News, error) {
			switch {
			case !previous.At.IsZero() && now.Before(previous.RepeatableAt()):
				return ClientNotice{}, News{}, fail(approval.CodeConflict, message.ClientNoticeTooSoon(app.Title, previous.RepeatableAt()))
			case recent >= noticesPerDay:
				return ClientNotice{}, News{}, fail(approval.CodeConflict, message.ClientNoticeBudget(noticesPerDay))
			}
			n := ClientNotice{At: now, By: a.ID, Reason: reason, Recipients: len(people)}
			details := map[string]string{
				"application": app.Name, "actions": strings.Join(seen.Actions, ", "), "connections": strconv.FormatInt(seen.Count, 10),
				"lastSeen": seen.LastSeen.UTC().Format(time.RFC3339), "reason": reason, "recipients": strconv.Itoa(len(people)),
			}
			event := notify.ResourceEvent{
				// The application is part of the identifier, because several notices about a resource can have the same time.
				Event: fmt.Sprintf("%s/%s/%s/%d", e.ID, notify.EventClientNotice, app.ID, now.UnixNano()), At: now, People: people,
				Facts: notify.Facts{
					Event: notify.EventClientNotice, ActorID: a.ID, Reason: reason, Count: seen.Count, Begin: seen.LastSeen.UTC(),
					Items: []notify.About{{Application: app.Title, Resource: e.Title, Actions: seen.Actions}}, Page: "applications/" + app.ID,
				},
			}
			return n, News{Entries: []ledger.Entry{line(now, a.ID, "resource.client-notice", e, details)}, ResourceEvents: []notify.ResourceEvent{event}}, nil
		},
	)
}

// RemindReviews notifies the owners of resources whose review is due, once for each date.
func (w *Watcher) RemindReviews(ctx context.Context) error {
	now := w.Now().UTC()
	due, err := w.Store.DueProposalReviews(ctx, now, remindersAtOnce)
	if err != nil {
		return err
	}
	var failed error
	for _, name := range due {
		_, err := w.Store.ChangeProposalReview(ctx, name, func(r *ProposalReview) (News, error) {
			if !r.Due(now) || !r.RemindedAt.IsZero() { // it was reviewed meanwhile
				return News{}, nil
			}
			r.RemindedAt = now
			e, ok := w.Catalog().Resource(idOf(w.Catalog(), name))
			if !ok {
				return News{}, nil // nobody to notify
			}
			people := map[string][]notify.About{}
			for _, p := range w.Catalog().OwnerPeople(e) {
				people[p] = nil
			}
			return News{ResourceEvents: []notify.ResourceEvent{
				resourceEvent(r.NextReview, notify.EventReviewDue, e, notify.Facts{Until: r.NextReview}, people),
			}}, nil
		})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("remind of the review of %s: %w", cmp.Or(idOf(w.Catalog(), name), name), err))
		}
	}
	return failed
}
