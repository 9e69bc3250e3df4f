package ledgerapi

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const listLedger = "ledger"

// ListLedger implements openapi.StrictServerInterface.
func (a *API) ListLedger(ctx context.Context, r openapi.ListLedgerRequestObject) (openapi.ListLedgerResponseObject, error) {
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	f := ledger.Filter{
		Actor:  core.Value(r.Params.Actor),
		Action: core.Value(r.Params.Action),
		Object: core.Value(r.Params.Object),
		From:   core.Value(r.Params.From),
		To:     core.Value(r.Params.To),
		Limit:  n,
	}
	sort, err := core.ParseSort(r.Params.Sort, "-seq", "seq")
	if err != nil {
		return nil, err
	}
	f.Oldest = !sort.Descending
	if f.After, err = core.DecodeNumberCursor(sort.List(listLedger), r.Params.Cursor); err != nil {
		return nil, err
	}
	lines, next, err := a.Ledger.List(core.RequestContext(ctx), f)
	if err != nil {
		return nil, err
	}
	out := openapi.ListLedger200JSONResponse{Items: linesOf(a.Catalog(), lines, nil)}
	if next > 0 {
		out.NextCursor = core.EncodeNumberCursor(sort.List(listLedger), next)
	}
	return out, nil
}

// ticketLines is the number of lines on a page of the history of one ticket. A ticket with fifty items has some hundreds, so that one page has
// nearly every history.
const ticketLines = ledger.MaxPage

// listTicketLedger is the list of the history of one ticket; the id of the ticket follows.
const listTicketLedger = "ticket-ledger/"

// ListTicketLedger implements openapi.StrictServerInterface.
func (a *API) ListTicketLedger(ctx context.Context, r openapi.ListTicketLedgerRequestObject) (openapi.ListTicketLedgerResponseObject, error) {
	t, err := a.Ticket(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	f := ledger.Filter{Object: t.ID(), Oldest: true, Limit: ticketLines}
	if f.After, err = core.DecodeNumberCursor(listTicketLedger+t.ID(), r.Params.Cursor); err != nil {
		return nil, err
	}
	lines, next, err := a.Ledger.List(core.RequestContext(ctx), f)
	if err != nil {
		return nil, err
	}
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	out := openapi.ListTicketLedger200JSONResponse{Items: linesOf(c, lines, hidesClients(c, who, t))}
	if next > 0 {
		out.NextCursor = core.EncodeNumberCursor(listTicketLedger+t.ID(), next)
	}
	return out, nil
}

// hidesClients returns a function that reports whether an entry about a ticket must not name clients to a person. It applies the rule of the
// page of the ticket, which shows the same lines.
func hidesClients(c *catalog.Catalog, who approval.Actor, t *approval.Ticket) func(ledger.Entry) bool {
	return func(e ledger.Entry) bool {
		if who.Security || who.Auditor {
			return false
		}
		position, err := strconv.Atoi(e.Details["item"])
		return err != nil || position < 1 || position > len(t.Items) || !views.SeesClients(c, who, t, position-1)
	}
}

// linesOf returns the views of lines. hides reports whether clients are left out of an entry; nil if the caller may see all of them.
func linesOf(c *catalog.Catalog, lines []ledger.Line, hides func(ledger.Entry) bool) []openapi.LedgerLine {
	out := make([]openapi.LedgerLine, 0, len(lines))
	for _, l := range lines {
		var body struct {
			ledger.Entry
			Prev string
		}
		x := openapi.LedgerLine{Seq: l.Seq, Hash: l.Hash}
		// A damaged line is shown as far as it can be read. The verification reports it.
		if err := json.Unmarshal([]byte(l.Text), &body); err == nil {
			x.At, x.Action, x.Object, x.Prev = body.At.UTC(), body.Action, body.Object, body.Prev
			x.Message = core.OptionalMessage(body.Message())
			if len(body.Details) > 0 {
				comment := commentLines(body.Entry, hides)
				x.Details, x.Labels, x.Texts = &body.Details, labelsOf(body.Entry), textsOf(body.Entry, comment)
			}
			if body.Actor != "" {
				x.Actor = new(views.Person(c, body.Actor))
			}
		}
		out = append(out, x)
	}
	return out
}

// labelsOf returns the names of the keys of an entry's details; nil if no key has one.
func labelsOf(e ledger.Entry) *map[string]message.Message {
	if labels := e.Labels(); len(labels) > 0 {
		return &labels
	}
	return nil
}

// commentLines returns the messages of the comment of an entry if the comment consists of lines that show what an item grants; nil otherwise.
// If hides reports that the entry must not name clients, it removes the lines that do from the details of the entry, too, and says so in their
// place.
func commentLines(e ledger.Entry, hides func(ledger.Entry) bool) []message.Message {
	kind, _ := strings.CutPrefix(e.Action, "ticket.")
	lines := approval.EventLines(approval.EventKind(kind), e.Details["comment"])
	if lines == nil || hides == nil || !hides(e) {
		return approval.LineMessages(lines)
	}
	shown := approval.WithoutClients(lines)
	out := approval.LineMessages(shown)
	if len(shown) < len(lines) {
		note := message.LedgerClientsLeftOut()
		out = append(out, note)
		e.Details["comment"] = strings.Join(append(shown, note.Text), "\n")
	}
	return out
}

// textsOf returns the details of an entry that can be shown in other languages, with a message for each line; nil if there are none. comment are
// the messages of the lines of its comment.
func textsOf(e ledger.Entry, comment []message.Message) *map[string][]message.Message {
	out := map[string][]message.Message{}
	for key, m := range e.Texts() {
		out[key] = []message.Message{m}
	}
	if len(comment) > 0 {
		out["comment"] = comment
	}
	if len(out) == 0 {
		return nil
	}
	return &out
}

// chargeWholeLedger charges the caller's budget for operations that read the whole ledger.
func (a *API) chargeWholeLedger(ctx context.Context) error {
	return a.Server.Charge(core.GinContext(ctx), core.BudgetWholeLedger, core.Caller(ctx).ID)
}
