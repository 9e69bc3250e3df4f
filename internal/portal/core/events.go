package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	heartbeat = 15 * time.Second
	// streamWriteTimeout is the time after which a stream that cannot be written to is closed.
	streamWriteTimeout = 10 * time.Second
)

// stream is one open event stream.
type stream struct {
	s       *Server
	request *http.Request
	who     approval.Actor
	claimed []string // the roles of the login; none with a token
	token   string   // the bearer token that it was opened with; empty for a session
	events  <-chan event
	cancel  func()
}

// StreamEvents implements openapi.StrictServerInterface.
func (s *Server) StreamEvents(ctx context.Context, _ openapi.StreamEventsRequestObject) (openapi.StreamEventsResponseObject, error) {
	who, err := s.Tickets.Actor(RequestContext(ctx), Caller(ctx))
	if err != nil {
		return nil, err
	}
	ch, cancel, ok := s.Hub.subscribe(who.ID)
	if !ok {
		return nil, NewProblem(http.StatusTooManyRequests, "rate-limited", message.CallTooManyStreams(streamsPerPerson))
	}
	x := &stream{s: s, request: requestOf(ctx), who: who, events: ch, cancel: cancel}
	if Token(GinContext(ctx)) != nil {
		x.token = bearerSecret(x.request.Header.Get("Authorization"))
	} else {
		x.claimed, _ = s.sessions.Get(RequestContext(ctx), sessGroups).([]string)
	}
	return x, nil
}

// VisitStreamEventsResponse writes events until the page is closed, the session ends or the portal shuts down.
func (s *stream) VisitStreamEventsResponse(w http.ResponseWriter) error {
	defer s.cancel()
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if err := s.write(w, out, "ping", struct{}{}); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-s.request.Context().Done():
			return nil
		case <-s.s.stop.Done():
			return nil
		case <-beat.C:
			if !s.valid() {
				return nil
			}
			if err := s.write(w, out, "ping", struct{}{}); err != nil {
				return err
			}
		case n, ok := <-s.events:
			if !ok {
				return nil
			}
			if err := s.send(w, out, n); err != nil {
				return err
			}
		}
	}
}

func (s *stream) send(w http.ResponseWriter, out *http.ResponseController, n event) error {
	c := s.s.Catalog()
	if t := n.ticket; t != nil {
		// Roles are read for each event, as for every other call, because a page may stay open for days.
		who := actorOf(c, s.who.ID, s.claimed)
		who.StandsFor = s.who.StandsFor
		if _, known := c.Person(who.ID); !known || !approval.MayDo(c, who, t).See {
			return nil
		}
		return s.write(w, out, "ticket", map[string]any{"id": t.ID(), "state": t.State(), "version": t.Version})
	}
	if n.inbox != "" {
		return s.write(w, out, "inbox", struct{}{})
	}
	e, ok := c.ByName(n.resource)
	if !ok {
		return nil
	}
	return s.write(w, out, "resource", map[string]any{"id": e.ID})
}

func (s *stream) write(w http.ResponseWriter, out *http.ResponseController, event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if err := out.SetWriteDeadline(time.Now().Add(streamWriteTimeout)); err != nil {
		return fmt.Errorf("extend the stream: %w", err)
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return out.Flush()
}

// valid reports whether the session or token that opened the stream is still valid; it may have been ended in another tab. It
// also reads the roles and delegations of the owner again.
func (s *stream) valid() bool {
	// A new context is used, because Load would return the session that the context of the request already has.
	ctx, cancel := context.WithTimeout(context.Background(), streamWriteTimeout)
	defer cancel()
	now, err := s.owner(ctx)
	switch {
	case errors.Is(err, credential.ErrUnknown):
		return false
	case err != nil:
		return true // the store is not available; the session is checked again later
	}
	if now, err = s.s.Tickets.Actor(ctx, now); err == nil {
		s.who = now
	}
	return true
}

// owner returns the current owner of the stream, or ErrUnknown if there is none any more.
func (s *stream) owner(ctx context.Context) (approval.Actor, error) {
	if s.token != "" {
		_, a, err := s.s.ownerOf(ctx, s.token)
		return a, err
	}
	cookie, err := s.request.Cookie(s.s.sessions.Cookie.Name)
	if err != nil {
		return approval.Actor{}, credential.ErrUnknown
	}
	ctx, err = s.s.sessions.Load(ctx, cookie.Value)
	if err != nil {
		return approval.Actor{}, err
	}
	cat := s.s.Catalog()
	if _, known := cat.Person(s.who.ID); !known || s.s.sessions.GetString(ctx, sessPerson) != s.who.ID {
		return approval.Actor{}, credential.ErrUnknown
	}
	groups, _ := s.s.sessions.Get(ctx, sessGroups).([]string)
	return actorOf(cat, s.who.ID, groups), nil
}
