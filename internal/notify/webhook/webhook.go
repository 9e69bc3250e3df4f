// Package webhook posts changes as signed JSON to receivers that the operator configured (docs/notifications.md). It does not
// determine recipients.
package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/webhooksender"
)

// Sender implements notify.Sender with a signed webhook.
type Sender struct {
	Target *webhooksender.Target
	// Receiver is set if the receiver may answer; its posts then say how.
	Receiver *Receiver
}

// Body is the JSON body of a post.
type Body struct {
	ID          string    `json:"id"`   // the same for repeated posts
	Type        string    `json:"type"` // for example ticket.submitted, delegation.begun, resource.announced, review.opened
	At          time.Time `json:"at"`
	Ticket      string    `json:"ticket,omitempty"`
	TicketKind  string    `json:"ticketKind,omitempty"`
	State       string    `json:"state,omitempty"`
	ActorID     string    `json:"actorId,omitempty"` // empty for the portal itself
	Actor       string    `json:"actor,omitempty"`
	OnBehalfOf  string    `json:"onBehalfOf,omitempty"`
	RequesterID string    `json:"requesterId,omitempty"`
	Requester   string    `json:"requester,omitempty"`
	Step        string    `json:"step,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Comment     string    `json:"comment,omitempty"`
	// Message is why the portal made the change; Comment is its English text then.
	Message    message.Message `json:"message,omitzero"`
	Items      []notify.About  `json:"items,omitempty"`
	More       int             `json:"more,omitempty"`
	Until      time.Time       `json:"until,omitzero"`
	Recipients []Recipient     `json:"recipients"`
	Title      string          `json:"title"`
	URL        string          `json:"url"`
	// Answer says how the receiver answers; absent if the ticket cannot be decided by an answer, or the receiver may not.
	Answer *Offer `json:"answer,omitempty"`
}

// Recipient is one person who gets a message about the change.
type Recipient struct {
	Person string      `json:"person"`
	Kind   notify.Kind `json:"kind"`
}

// Send implements notify.Sender.
func (s *Sender) Send(ctx context.Context, p notify.Notification) error {
	content := bodyOf(p)
	if s.Receiver != nil && p.Answer != nil {
		offer, err := s.Receiver.offer(*p.Answer, s.Target.Now())
		if err != nil {
			return err
		}
		content.Answer = &offer
	}
	body, err := json.Marshal(content)
	if err != nil {
		return &notify.Problem{Err: fmt.Errorf("encode the change: %w", err), Permanent: true}
	}
	return Problem(s.Target.Post(ctx, p.ID, body))
}

func bodyOf(p notify.Notification) Body {
	m, f := p.Message, p.Message.Facts
	b := Body{
		ID:          p.ID,
		Type:        "ticket." + f.Event,
		At:          m.At.UTC(),
		Ticket:      fmt.Sprintf("T-%d", m.Ticket),
		TicketKind:  f.TicketKind,
		State:       f.State,
		ActorID:     f.ActorID,
		Actor:       f.Actor,
		OnBehalfOf:  f.ActorFor,
		RequesterID: f.RequesterID,
		Requester:   f.Requester,
		Step:        f.Step,
		Reason:      f.Reason,
		Comment:     cmp.Or(f.Comment, f.Message.Text),
		Message:     f.Message,
		Items:       f.Items,
		More:        f.More,
		Until:       f.Until,
		Recipients:  []Recipient{},
		Title:       p.Text.Title,
		URL:         p.Text.Link,
	}
	if m.Ticket == 0 {
		b.Ticket = ""
		switch m.Kind {
		case notify.KindRollout:
			b.Type = "resource." + f.Event
		case notify.KindAccessReview:
			b.Type = "review." + strings.TrimPrefix(f.Event, "review-")
		default:
			b.Type = "delegation." + f.Event
		}
	}
	for _, person := range slices.Sorted(maps.Keys(f.Recipients)) {
		b.Recipients = append(b.Recipients, Recipient{person, f.Recipients[person]})
	}
	return b
}

// Problem converts an error of the webhook sender to a *notify.Problem if a retry does not help or the receiver requested a
// pause.
func Problem(err error) error {
	var status *webhooksender.StatusError
	if errors.As(err, &status) {
		return &notify.Problem{Err: err, Permanent: status.Permanent(), RetryAfter: status.RetryAfter}
	}
	return err
}
