// Package answerapi receives decisions that people make outside of the portal: by buttons in Slack's messages, and through receivers of
// webhooks that the operator permits to answer. Its callers have no session, so it verifies who signed a request, finds the person in the
// catalog, and leaves every rule about decisions to approval.Service. It must not import other features.
package answerapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/notify/slack"
	"github.com/acp-io/acp/internal/notify/webhook"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/webhooksender"
)

const (
	// workTime bounds what is done for one answer, also after its response.
	workTime = 15 * time.Second
	// maxAtOnce is the number of answers that are processed at the same time.
	maxAtOnce = 16
)

// Config is the configuration of an API. Slack and Receivers are optional.
type Config struct {
	Server *core.Server
	// Slack is the bot in whose messages people can decide; nil if nobody can.
	Slack *slack.Bot
	// Receivers are the receivers of webhooks that may answer, by name.
	Receivers map[string]*webhook.Receiver
	// Preferences returns the languages of people.
	Preferences func(ctx context.Context, people ...string) (map[string]notify.Preferences, error)
}

// API is an HTTP handler of the paths below /integrations.
type API struct {
	Config
	mux   http.ServeMux
	slots chan struct{}
	seen  memory
}

// New returns an API.
func New(c Config) *API {
	a := &API{Config: c, slots: make(chan struct{}, maxAtOnce)}
	a.mux.HandleFunc("POST /integrations/slack/interactions", a.slackInteraction)
	a.mux.HandleFunc("POST /integrations/webhooks/{name}/answers", a.webhookAnswer)
	a.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { a.fail(w, notConfigured()) })
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// notConfigured is the error for a channel that does not exist or may not answer, which look the same.
func notConfigured() error {
	return core.NewProblem(http.StatusNotFound, "not-found", message.AnswerNoChannel())
}

func unsigned() error {
	return core.NewProblem(http.StatusUnauthorized, "unsigned", message.AnswerUnsigned())
}

func replayed() error {
	return core.NewProblem(http.StatusConflict, "replayed", message.AnswerReplayed())
}

func malformed() error {
	return core.NewProblem(http.StatusBadRequest, "invalid", message.CallMalformed())
}

func unknownPerson() error {
	return core.NewProblem(http.StatusForbidden, "forbidden", message.AnswerUnknownPerson())
}

// busy is the error of a request while maxAtOnce others are processed.
func busy() error {
	return core.NewProblem(http.StatusServiceUnavailable, "unavailable", message.CallTimeout())
}

// readSigned reads a request, and verifies its signature by a function that returns what identifies the request.
func readSigned(
	w http.ResponseWriter, r *http.Request, now time.Time, verify func(header http.Header, body []byte, now time.Time) (string, error),
) (body []byte, id string, err error) {
	if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, core.MaxBody)); err != nil {
		return nil, "", err
	}
	id, err = verify(r.Header, body, now)
	if errors.Is(err, slack.ErrUnsigned) || errors.Is(err, webhooksender.ErrUnsigned) {
		err = unsigned()
	}
	return body, id, err
}

// acquire reserves one of the slots for processing. If it returns true, the caller must call a.release.
func (a *API) acquire() bool {
	select {
	case a.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (a *API) release() { <-a.slots }

// decision is what a person decided, with what they were shown.
type decision struct {
	ticket  string
	version int64
	digest  string
	approve bool
	comment string
	through string
}

// decide decides as a person whom the channel has identified. The rules and the budget of the portal apply.
func (a *API) decide(ctx context.Context, person catalog.Person, d decision) (*approval.Ticket, error) {
	if err := a.Server.ChargePerson(person.ID); err != nil {
		return nil, err
	}
	number, ok := approval.ParseID(d.ticket)
	if !ok {
		return nil, approval.NotFound()
	}
	// Another replica may have read that a resource is more sensitive now, or that a person left.
	if err := a.Server.Directory.Refresh(ctx); err != nil {
		return nil, err
	}
	who := core.ActorWithoutSession(a.Server.Catalog(), person.ID)
	who.Through = d.through
	t, err := a.Server.Tickets.DecideOutside(ctx, who, number, d.version, d.digest, d.approve, d.comment)
	a.Server.Log.Info("a decision outside of the portal", "person", person.ID, "through", d.through, "ticket", d.ticket, "approve", d.approve, "error", err)
	return t, err
}

// link returns the address of a ticket, or of the portal if the ID is none.
func (a *API) link(ticket string) string {
	if _, ok := approval.ParseID(ticket); !ok {
		return a.Server.PublicURL.String()
	}
	return a.Server.PublicURL.JoinPath("tickets", ticket).String()
}

func (a *API) fail(w http.ResponseWriter, err error) {
	p := a.problemOf(err)
	a.write(w, p.Status, "application/problem+json", p)
}

// failWithLink is fail with the address of the ticket.
func (a *API) failWithLink(w http.ResponseWriter, err error, ticket string) {
	p := a.problemOf(err)
	a.write(w, p.Status, "application/problem+json", linkedProblem{Problem: p, Link: a.link(ticket)})
}

func (a *API) problemOf(err error) openapi.Problem {
	p := core.ToProblem(err)
	if p.Status >= http.StatusInternalServerError {
		a.Server.Log.Error("an answer failed", "error", err)
	}
	return p
}

func (a *API) write(w http.ResponseWriter, status int, media string, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		a.Server.Log.Error("a response could not be encoded", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_, _ = w.Write(data) // The caller has disconnected; nothing is left to do.
}

const (
	// remembered is how long requests are remembered: signed times may differ from the clock by five minutes in each direction.
	remembered = 11 * time.Minute
	// maxRemembered bounds the memory. Only signed requests are remembered, so that strangers cannot fill it.
	maxRemembered = 10_000
)

// memory remembers the requests of the last minutes, so that a repeated one is refused. Each replica has its own; that a decision is bound
// to a version of the ticket makes it count once among all of them.
type memory struct {
	mu sync.Mutex
	at map[string]time.Time
}

// first reports whether a request was not seen before. While the memory is full, it returns false.
func (m *memory) first(key string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := m.at[key]; ok && now.Sub(at) < remembered {
		return false
	}
	if len(m.at) >= maxRemembered {
		for k, at := range m.at {
			if now.Sub(at) >= remembered {
				delete(m.at, k)
			}
		}
	}
	if len(m.at) >= maxRemembered {
		return false
	}
	if m.at == nil {
		m.at = map[string]time.Time{}
	}
	m.at[key] = now
	return true
}
