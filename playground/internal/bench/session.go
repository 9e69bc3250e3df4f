package bench

import (
	"context"
	"time"
)

// Session is the session of a user in the portal, for other packages.
type Session struct{ person *person }

// Login logs a user in as a browser does.
func Login(ctx context.Context, portal, name string) (Session, error) {
	p, err := login(ctx, portal, name)
	return Session{p}, err
}

// Call sends one request to the API. in and out may be nil.
func (s Session) Call(ctx context.Context, method, path string, in, out any) error {
	return s.person.call(ctx, method, path, in, out)
}

// Events are the events of tickets that a user sees, as they arrive.
type Events struct{ tickets <-chan ticketEvent }

// Events opens the event stream of the user, which ends with the context.
func (s Session) Events(ctx context.Context) (Events, error) {
	tickets, err := s.person.events(ctx)
	return Events{tickets}, err
}

// Await waits for the event with the state of a ticket, with a time limit, and returns when it arrived. It drops the events before it.
func (e Events) Await(ctx context.Context, id, state string, limit time.Duration) (time.Time, error) {
	return awaitWithin(ctx, e.tickets, id, state, limit)
}
