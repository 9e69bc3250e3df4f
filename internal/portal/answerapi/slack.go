package answerapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify/slack"
	"github.com/acp-io/acp/internal/portal/core"
)

// slackInteraction receives what people do with messages in Slack. Slack waits three seconds, so the response is sent as soon as the
// signature is verified; the result appears in the message. The handler returns after the work is done, so that a shutdown waits for it.
func (a *API) slackInteraction(w http.ResponseWriter, r *http.Request) {
	if a.Slack == nil {
		a.fail(w, notConfigured())
		return
	}
	now := a.Server.Now()
	body, signature, err := readSigned(w, r, now, a.Slack.Verify)
	if err != nil {
		a.fail(w, err)
		return
	}
	x, err := slack.ParseInteraction(body)
	if err != nil {
		a.fail(w, malformed())
		return
	}
	if x.Act == slack.ActNone {
		w.WriteHeader(http.StatusOK)
		return
	}
	if !a.acquire() {
		a.fail(w, busy())
		return
	}
	defer a.release()
	if !a.seen.first("slack "+signature, now) {
		a.fail(w, replayed())
		return
	}
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		a.Server.Log.Warn("the response to Slack was not sent at once", "error", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), workTime)
	defer cancel()
	a.interact(ctx, x)
}

// interact asks for the reason of a rejection, or decides and shows the result.
func (a *API) interact(ctx context.Context, x slack.Interaction) {
	to := a.reader(ctx, x.Binding.Person)
	reply := func(m message.Message) slack.Reply {
		return slack.Reply{Text: x.Binding.Ticket + ": " + m.RenderFor(to), Open: message.NotificationOpen().RenderFor(to), Link: a.link(x.Binding.Ticket)}
	}
	if x.Act == slack.ActReject {
		err := a.Slack.AskReason(ctx, x, message.AnswerReason().RenderFor(to), message.AnswerReject().RenderFor(to), message.AnswerCancel().RenderFor(to))
		if err != nil {
			a.Server.Log.Warn("Slack's dialog for a reason could not be opened", "error", err)
			a.shown(a.Slack.Say(ctx, x, reply(message.AnswerNoDialog())))
		}
		return
	}
	t, err := a.decideInSlack(ctx, x)
	switch {
	case err == nil && x.Act == slack.ActApprove:
		a.shown(a.Slack.Replace(ctx, x, reply(message.AnswerApproved(t.ID(), string(t.State())))))
	case err == nil:
		a.shown(a.Slack.Replace(ctx, x, reply(message.AnswerRejected(t.ID()))))
	case final(err):
		a.shown(a.Slack.Replace(ctx, x, reply(core.ToProblem(err).Message)))
	default:
		a.Server.Log.Warn("a decision in Slack was refused", "error", err)
		a.shown(a.Slack.Say(ctx, x, reply(core.ToProblem(err).Message)))
	}
}

// final reports whether the button can never decide the ticket, so that it is removed.
func final(err error) bool {
	switch approval.CodeOf(err) {
	case approval.CodeStale, approval.CodeConflict, approval.CodeNotFound:
		return true
	}
	return false
}

// shown logs that a result could not be shown. The decision is made, or not; the button of a decided ticket is refused.
func (a *API) shown(err error) {
	if err != nil {
		a.Server.Log.Warn("the result of a decision could not be shown in Slack", "error", err)
	}
}

func (a *API) decideInSlack(ctx context.Context, x slack.Interaction) (*approval.Ticket, error) {
	person, err := a.slackPerson(ctx, x)
	if err != nil {
		return nil, err
	}
	if person.ID != x.Binding.Person {
		return nil, core.Forbidden(message.AnswerNotForwarded())
	}
	return a.decide(ctx, person, decision{
		ticket: x.Binding.Ticket, version: x.Binding.Version, digest: x.Binding.Digest,
		approve: x.Act == slack.ActApprove, comment: x.Reason, through: approval.ThroughSlack,
	})
}

// slackPerson returns the person of the catalog who pressed a button.
func (a *API) slackPerson(ctx context.Context, x slack.Interaction) (catalog.Person, error) {
	address, err := a.Slack.Email(ctx, x.User, x.Team)
	if errors.Is(err, slack.ErrUnknownUser) {
		a.Server.Log.Warn("a user of Slack is nobody who may decide", "user", x.User, "error", err)
		return catalog.Person{}, unknownPerson()
	}
	if err != nil {
		return catalog.Person{}, &approval.Error{Code: approval.CodeUnavailable, Message: message.CallTimeout(), Err: err}
	}
	person, ok := a.Server.Catalog().PersonByEmail(address)
	if !ok {
		return catalog.Person{}, unknownPerson()
	}
	return person, nil
}

// reader returns the language and the time zone of a person, or the defaults if they are not known.
func (a *API) reader(ctx context.Context, person string) message.Reader {
	chosen, err := a.Preferences(ctx, person)
	if err != nil {
		a.Server.Log.Warn("the language of a person could not be read", "error", err)
	}
	return chosen[person].Reader()
}
