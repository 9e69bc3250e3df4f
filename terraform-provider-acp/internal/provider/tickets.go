package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/portalclient"
)

// The values of wait_for.
const (
	waitSubmitted = "submitted"
	waitApproved  = "approved"
	waitRealized  = "realized"
)

const (
	defaultTimeout = "1h"
	maxTimeout     = 7 * 24 * time.Hour
	minPause       = 500 * time.Millisecond
	maxPause       = 10 * time.Second
	// mostReason is the maximum length of a reason in the portal.
	mostReason = 2000
	// endReason is the reason of a withdrawal or a revocation.
	endReason = "Removed from the Terraform configuration."
)

// errTimeout means that a ticket did not reach a state in time. The ticket continues.
var errTimeout = errors.New("timeout")

// endedError means that a ticket ended without being in force.
type endedError struct{ text string }

func (e *endedError) Error() string { return e.text }

// checkTicketID returns an error if a text is not the id of a ticket. An id becomes a part of a path.
func checkTicketID(id string) error {
	digits, ok := strings.CutPrefix(id, "T-")
	if n, err := strconv.ParseUint(digits, 10, 63); !ok || err != nil || n < 1 || len(digits) > 12 || digits != strconv.FormatUint(n, 10) {
		return fmt.Errorf("%q is not the id of a ticket, such as T-42", printable(id))
	}
	return nil
}

// ticket returns a ticket.
func (p *portal) ticket(ctx context.Context, id string) (portalclient.Ticket, error) {
	var t portalclient.Ticket
	if err := checkTicketID(id); err != nil {
		return t, err
	}
	return t, p.Get(ctx, "/tickets/"+id, nil, &t)
}

// submit creates a ticket. A repeated attempt creates no second ticket.
func (p *portal) submit(ctx context.Context, body portalclient.NewTicket) (portalclient.Ticket, error) {
	var t portalclient.Ticket
	return t, p.Post(ctx, "/tickets", newKey(), body, &t)
}

// duplicateOf returns the ticket that already requests the same, if the caller may see it.
func duplicateOf(err error) string {
	var e *portalclient.Error
	if errors.As(err, &e) && e.Code == "duplicate" && e.Ticket != nil && checkTicketID(*e.Ticket) == nil {
		return *e.Ticket
	}
	return ""
}

// deniedStates are the states of tickets that people, or a timeout, refused or ended. They are not requested again without a change.
var deniedStates = []portalclient.TicketState{portalclient.TicketStateRejected, portalclient.TicketStateTimedOut, portalclient.TicketStateRevoked}

// denied reports whether a ticket was refused, or its access was revoked.
func denied(s portalclient.TicketState) bool { return slices.Contains(deniedStates, s) }

// gone reports whether a ticket has no effect any more and was not refused.
func gone(s portalclient.TicketState) bool {
	return s == portalclient.TicketStateWithdrawn || s == portalclient.TicketStateExpired
}

// reached reports whether a state is what wait_for requests.
func reached(s portalclient.TicketState, waitFor string) bool {
	switch s {
	case portalclient.TicketStateEffective:
		return true
	case portalclient.TicketStateApproved, portalclient.TicketStateApplying:
		return waitFor != waitRealized
	case portalclient.TicketStatePending:
		return waitFor == waitSubmitted
	}
	return false
}

// await polls a ticket until done accepts it, for at most a time. It returns the last known state of the ticket also with an error.
func (p *portal) await(
	ctx context.Context,
	t portalclient.Ticket,
	most time.Duration,
	done func(portalclient.TicketState) (bool, error),
) (portalclient.Ticket, error) {
	deadline := p.after(most)
	pause := minPause
	for {
		if ok, err := done(t.State); ok || err != nil {
			return t, err
		}
		select {
		case <-ctx.Done():
			return t, fmt.Errorf("wait for %s: %w", t.Id, ctx.Err())
		case <-deadline:
			return t, errTimeout
		case <-p.after(pause):
		}
		now, err := p.ticket(ctx, t.Id)
		if err != nil {
			return t, fmt.Errorf("read %s: %w", t.Id, err)
		}
		if now.State == t.State {
			pause = min(pause*3/2, maxPause)
		} else {
			pause = minPause
		}
		t = now
	}
}

// awaitForce waits until a ticket is what wait_for requests.
func (p *portal) awaitForce(ctx context.Context, t portalclient.Ticket, waitFor string, most time.Duration) (portalclient.Ticket, error) {
	now, err := p.await(ctx, t, most, func(s portalclient.TicketState) (bool, error) {
		switch {
		case reached(s, waitFor):
			return true, nil
		case denied(s), gone(s), s == portalclient.TicketStateFailed, s == portalclient.TicketStateRevoking:
			return false, &endedError{}
		}
		return false, nil
	})
	var ended *endedError
	switch {
	case errors.As(err, &ended):
		ended.text = p.why(now)
	case errors.Is(err, errTimeout):
		err = fmt.Errorf("%w: %s is still %s after %s and continues in the portal; it waits for %s: %s", errTimeout, now.Id, now.State, most, waitText(now),
			p.ticketURL(now.Id))
	}
	return now, err
}

func waitText(t portalclient.Ticket) string {
	if w := waitsFor(t); len(w) > 0 {
		return strings.Join(w, ", ")
	}
	return "the portal"
}

// why describes why a ticket is not in force: who refused or ended it, with which reason, and where to read more.
func (p *portal) why(t portalclient.Ticket) string {
	text := fmt.Sprintf("%s is %s", t.Id, t.State)
	kinds := map[portalclient.EventKind]string{
		portalclient.EventKindStepRejected:    "rejected by",
		portalclient.EventKindTimedOut:        "timed out",
		portalclient.EventKindWithdrawn:       "withdrawn by",
		portalclient.EventKindRevokeRequested: "revoked by",
		portalclient.EventKindReviewRejected:  "rejected in the review by",
		portalclient.EventKindExpired:         "expired",
		portalclient.EventKindFailed:          "failed",
	}
	for _, e := range slices.Backward(t.Events) {
		verb, ok := kinds[e.Kind]
		if !ok {
			continue
		}
		if e.Actor != nil {
			text += ": " + verb + " " + e.Actor.DisplayName + " (" + e.Actor.Id + ")"
			if e.OnBehalfOf != nil {
				text += " for " + e.OnBehalfOf.DisplayName
			}
		} else {
			text += ": " + strings.TrimSuffix(verb, " by") + " by the portal"
		}
		if e.Step != nil {
			text += ", step " + *e.Step
		}
		if e.Comment != nil && *e.Comment != "" {
			text += fmt.Sprintf(": %q", *e.Comment)
		}
		if e.Message != nil {
			text += ": " + e.Message.Text
		}
		break
	}
	if m := messageOf(t); m != "" {
		text += "\n" + m
	}
	return printable(text) + "\n" + p.ticketURL(t.Id)
}

// messageOf returns what a ticket waits for or why it failed, or "".
func messageOf(t portalclient.Ticket) string {
	for _, it := range t.Items {
		if it.Message != nil {
			return printable(it.Message.Text)
		}
	}
	if t.Message != nil {
		return printable(t.Message.Text)
	}
	return ""
}

// waitsFor returns the ids of the approvers of the current steps, and the members that do not have the change yet.
func waitsFor(t portalclient.Ticket) []string {
	out := []string{}
	for _, it := range t.Items {
		for _, s := range it.Steps {
			if s.State != portalclient.StepStateCurrent {
				continue
			}
			for _, a := range s.Approvers {
				out = append(out, a.Id)
			}
		}
		if it.WaitingFor != nil {
			out = append(out, *it.WaitingFor...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// withdraw withdraws a pending ticket. It returns the state of the ticket afterwards, which is not withdrawn if it was decided in the meantime.
func (p *portal) withdraw(ctx context.Context, id string) (portalclient.Ticket, error) {
	var t portalclient.Ticket
	err := p.Post(ctx, "/tickets/"+id+"/withdraw", "", portalclient.ReasonBody{Reason: endReason}, &t)
	if changed(err) {
		return p.ticket(ctx, id)
	}
	return t, err
}

// endTries is how often the end of a ticket is requested that changes at the same time.
const endTries = 5

// end withdraws or revokes a ticket of access, and waits until no member has the access any more.
func (p *portal) end(ctx context.Context, id string, most time.Duration) error {
	t, err := p.ticket(ctx, id)
	for range endTries {
		if notFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t.State {
		case portalclient.TicketStatePending:
			t, err = p.withdraw(ctx, id)
			continue
		case portalclient.TicketStateApproved, portalclient.TicketStateApplying, portalclient.TicketStateEffective, portalclient.TicketStateFailed:
			var now portalclient.Ticket
			if err = p.Post(ctx, "/tickets/"+id+"/revoke", "", portalclient.ReasonBody{Reason: endReason}, &now); err == nil {
				t = now
			} else if changed(err) {
				t, err = p.ticket(ctx, id)
			}
			continue
		}
		break
	}
	if err != nil {
		return err
	}
	t, err = p.await(ctx, t, most, func(s portalclient.TicketState) (bool, error) { return denied(s) || gone(s), nil })
	if errors.Is(err, errTimeout) {
		return fmt.Errorf("%s is still %s after %s, so members may still give the access; it waits for %s: %s", id, t.State, most, waitText(t), p.ticketURL(id))
	}
	return err
}
