package answerapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify/webhook"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// Values of Answer.Decision.
const (
	decisionApprove = "approve"
	decisionReject  = "reject"
)

// Answer is the body by which a receiver answers. The fields from Ticket to Expires repeat the offer.
type Answer struct {
	Ticket   string    `json:"ticket"`
	Version  int64     `json:"version"`
	Digest   string    `json:"digest"`
	Token    string    `json:"token"`
	Expires  time.Time `json:"expires"`
	Decision string    `json:"decision"` // approve or reject
	Comment  string    `json:"comment"`  // required to reject
	// Person identifies the person who decided, by one of the fields.
	Person struct {
		ID    string `json:"id"`
		Email string `json:"email"`
	} `json:"person"`
}

// answered is the body of the response to an answer that counts.
type answered struct {
	Ticket  string `json:"ticket"`
	State   string `json:"state"`
	Version int64  `json:"version"`
}

// linkedProblem is the body of the response to an answer that does not count. The link leads to the ticket in the portal, where a person who
// may decide it can do so after a recent login.
type linkedProblem struct {
	openapi.Problem
	Link string `json:"link"`
}

// webhookAnswer receives the answer of a receiver.
func (a *API) webhookAnswer(w http.ResponseWriter, r *http.Request) {
	receiver := a.Receivers[r.PathValue("name")]
	if receiver == nil {
		a.fail(w, notConfigured())
		return
	}
	now := a.Server.Now()
	body, id, err := readSigned(w, r, now, receiver.Verify)
	if err != nil {
		a.fail(w, err)
		return
	}
	x, err := ParseAnswer(body)
	if err != nil {
		a.fail(w, err)
		return
	}
	if !a.acquire() {
		a.fail(w, busy())
		return
	}
	defer a.release()
	if !a.seen.first("webhook "+receiver.Name+" "+id, now) {
		a.fail(w, replayed())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), workTime)
	defer cancel()
	t, err := a.decideForReceiver(ctx, receiver, x, now)
	if err != nil {
		a.failWithLink(w, err, x.Ticket)
		return
	}
	a.write(w, http.StatusOK, "application/json", answered{Ticket: t.ID(), State: string(t.State()), Version: t.Version})
}

// ParseAnswer parses the body of an answer whose signature was verified.
func ParseAnswer(body []byte) (Answer, error) {
	var x Answer
	if err := core.CheckJSON(body); err != nil {
		return x, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return x, malformed()
	}
	if x.Decision != decisionApprove && x.Decision != decisionReject {
		return x, core.InvalidField("decision", message.CallParameterOneOf("decision", []string{decisionApprove, decisionReject}))
	}
	if (x.Person.ID == "") == (x.Person.Email == "") {
		return x, core.InvalidField("person", message.AnswerOnePerson())
	}
	return x, core.CheckTextLength("comment", x.Comment)
}

func (a *API) decideForReceiver(ctx context.Context, receiver *webhook.Receiver, x Answer, now time.Time) (*approval.Ticket, error) {
	offer := webhook.Offer{Ticket: x.Ticket, Version: x.Version, Digest: x.Digest, Token: x.Token, Expires: x.Expires}
	offered, err := receiver.Offered(offer)
	if err != nil {
		return nil, err
	}
	if !offered {
		return nil, core.Forbidden(message.AnswerNotOffered())
	}
	if !now.Before(x.Expires) {
		return nil, &approval.Error{Code: approval.CodeStale, Message: message.AnswerExpired()}
	}
	var person catalog.Person
	found := false
	if x.Person.ID != "" {
		person, found = a.Server.Catalog().Person(x.Person.ID)
	} else {
		person, found = a.Server.Catalog().PersonByEmail(x.Person.Email)
	}
	if !found {
		return nil, unknownPerson()
	}
	return a.decide(ctx, person, decision{
		ticket: x.Ticket, version: x.Version, digest: x.Digest,
		approve: x.Decision == decisionApprove, comment: x.Comment, through: approval.ThroughWebhook + receiver.Name,
	})
}
