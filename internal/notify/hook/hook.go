// Package hook posts changes to receivers that the operator configured, as signed JSON (docs/notifications.md). It may
// not know who is told what.
package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/webhooksender"
)

// Sender implements notify.Sender.
type Sender struct{ Target *webhooksender.Target }

// Body is what is posted.
type Body struct {
	ID          string         `json:"id"`   // the same when it is posted again
	Type        string         `json:"type"` // ticket.submitted, delegation.begun, resource.announced and so on
	At          time.Time      `json:"at"`
	Ticket      string         `json:"ticket,omitempty"`
	TicketKind  string         `json:"ticketKind,omitempty"`
	State       string         `json:"state,omitempty"`
	ActorID     string         `json:"actorId,omitempty"` // empty: the portal itself
	Actor       string         `json:"actor,omitempty"`
	OnBehalfOf  string         `json:"onBehalfOf,omitempty"`
	RequesterID string         `json:"requesterId,omitempty"`
	Requester   string         `json:"requester,omitempty"`
	Step        string         `json:"step,omitempty"`
	Reason      string         `json:"reason,omitempty"`
	Comment     string         `json:"comment,omitempty"`
	Items       []notify.About `json:"items,omitempty"`
	More        int            `json:"more,omitempty"`
	Until       time.Time      `json:"until,omitzero"`
	Told        []Told         `json:"told"`
	Title       string         `json:"title"`
	URL         string         `json:"url"`
}

// Told is one person who is told.
type Told struct {
	Person string      `json:"person"`
	Kind   notify.Kind `json:"kind"`
}

// Send implements notify.Sender.
func (s *Sender) Send(ctx context.Context, p notify.Parcel) error {
	body, err := json.Marshal(bodyOf(p))
	if err != nil {
		return &notify.Problem{Err: fmt.Errorf("encode the change: %w", err), Permanent: true}
	}
	return Problem(s.Target.Post(ctx, p.ID, body))
}

func bodyOf(p notify.Parcel) Body {
	m, f := p.Message, p.Message.Facts
	b := Body{ID: p.ID, Type: "ticket." + f.Event, At: m.At.UTC(), Ticket: fmt.Sprintf("T-%d", m.Ticket), TicketKind: f.TicketKind, State: f.State,
		ActorID: f.ActorID, Actor: f.Actor, OnBehalfOf: f.ActorFor, RequesterID: f.RequesterID, Requester: f.Requester, Step: f.Step,
		Reason: f.Reason, Comment: f.Comment, Items: f.Items, More: f.More, Until: f.Until, Told: []Told{}, Title: p.Text.Title, URL: p.Text.Link}
	if m.Ticket == 0 && m.Kind == notify.KindRollout {
		b.Type, b.Ticket = "resource."+f.Event, ""
	} else if m.Ticket == 0 {
		b.Type, b.Ticket = "delegation."+f.Event, ""
	}
	for _, person := range slices.Sorted(maps.Keys(f.Told)) {
		b.Told = append(b.Told, Told{person, f.Told[person]})
	}
	return b
}

// Problem says what to do about an answer.
func Problem(err error) error {
	var status *webhooksender.StatusError
	if errors.As(err, &status) {
		return &notify.Problem{Err: err, Permanent: status.Permanent(), RetryAfter: status.RetryAfter}
	}
	return err
}
