package portal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	heartbeat = 15 * time.Second
	// A stream that cannot be written to for this long is dead.
	streamPatience = 10 * time.Second
)

// stream is one open event stream.
type stream struct {
	s       *Server
	request *http.Request
	who     string
	claimed []string // roles that the login gave him
	token   string   // the bearer token that it was opened with; empty: a session
	news    <-chan news
	cancel  func()
}

// StreamEvents implements openapi.StrictServerInterface.
func (a *api) StreamEvents(ctx context.Context, _ openapi.StreamEventsRequestObject) (openapi.StreamEventsResponseObject, error) {
	who := actor(ctx)
	ch, cancel, ok := a.Hub.subscribe(who.ID)
	if !ok {
		return nil, problemf(http.StatusTooManyRequests, "rate-limited", "You have %d event streams open: close some pages.", streamsPerPerson)
	}
	x := &stream{s: a.Server, request: requestOf(ctx), who: who.ID, news: ch, cancel: cancel}
	if tokenOf(ginOf(ctx)) != nil {
		x.token = bearerSecret(x.request.Header.Get("Authorization"))
	} else {
		x.claimed, _ = a.sessions.Get(plain(ctx), sessGroups).([]string)
	}
	return x, nil
}

// VisitStreamEventsResponse writes until the page, the session or the portal ends.
func (x *stream) VisitStreamEventsResponse(w http.ResponseWriter) error {
	defer x.cancel()
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if err := x.write(w, out, "ping", struct{}{}); err != nil {
		return err
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-x.request.Context().Done():
			return nil
		case <-x.s.stop.Done():
			return nil
		case <-beat.C:
			if !x.alive() {
				return nil
			}
			if err := x.write(w, out, "ping", struct{}{}); err != nil {
				return err
			}
		case n, ok := <-x.news:
			if !ok {
				return nil
			}
			if err := x.tell(w, out, n); err != nil {
				return err
			}
		}
	}
}

func (x *stream) tell(w http.ResponseWriter, out *http.ResponseController, n news) error {
	c := x.s.Catalog()
	if t := n.ticket; t != nil {
		// Roles are looked up each time, as for every other call: a page stays open for days.
		if _, known := c.Person(x.who); !known || !approval.MayDo(c, actorOf(c, x.who, x.claimed), t).See {
			return nil
		}
		return x.write(w, out, "ticket", map[string]any{"id": t.ID(), "state": t.State(), "version": t.Version})
	}
	e, ok := c.ByName(n.resource)
	if !ok {
		return nil
	}
	return x.write(w, out, "resource", map[string]any{"id": e.ID})
}

func (x *stream) write(w http.ResponseWriter, out *http.ResponseController, event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if err := out.SetWriteDeadline(time.Now().Add(streamPatience)); err != nil {
		return fmt.Errorf("extend the stream: %w", err)
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return out.Flush()
}

// alive tells whether the session or token that opened the stream still holds; it may have been ended in another tab.
func (x *stream) alive() bool {
	if x.token != "" {
		_, a, err := x.s.ownerOf(x.request.Context(), x.token)
		return !errors.Is(err, credential.ErrUnknown) && (err != nil || a.ID == x.who)
	}
	cookie, err := x.request.Cookie(cookieName)
	if err != nil {
		return false
	}
	// A context of its own: the request's already has a session loaded, which Load would return as it was.
	ctx, cancel := context.WithTimeout(context.Background(), streamPatience)
	defer cancel()
	ctx, err = x.s.sessions.Load(ctx, cookie.Value)
	if err != nil {
		return true // the store is away; the session's own end is checked when it is back
	}
	_, known := x.s.Catalog().Person(x.who)
	return known && x.s.sessions.GetString(ctx, sessPerson) == x.who
}
