package ledgerapi

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/featuretest"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// chain is a ledger in memory, which fails after its lines if err is set.
type chain struct {
	ledger.Reader
	lines []ledger.Line
	err   error
	asked ledger.Filter
}

func (c *chain) Lines(_ context.Context, from int64) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		for _, l := range c.lines {
			if l.Seq >= from && !yield(l, nil) {
				return
			}
		}
		if c.err != nil {
			yield(ledger.Line{}, c.err)
		}
	}
}

func (c *chain) List(_ context.Context, f ledger.Filter) ([]ledger.Line, int64, error) {
	c.asked = f
	return c.lines, 7, nil
}

// newChain returns a ledger with a line for each actor.
func newChain(t *testing.T, actors ...string) *chain {
	t.Helper()
	out := &chain{}
	var seq int64
	var hash string
	for _, who := range actors {
		l, err := ledger.Append(seq, hash, ledger.Entry{At: featuretest.Now, Actor: who, Action: "ticket.approved", Object: "T-1",
			Details: map[string]string{"step": "owner"}})
		if err != nil {
			t.Fatal(err)
		}
		seq, hash = l.Seq, l.Hash
		out.lines = append(out.lines, l)
	}
	return out
}

// TestDamagedLinesAreListed checks that a line whose text cannot be read is listed with its number and hash, so that a damaged ledger
// does not look shorter than it is.
func TestDamagedLinesAreListed(t *testing.T) {
	lines := newChain(t, "bob", "").lines
	lines = append(lines, ledger.Line{Seq: 3, Hash: "h", Text: "{damaged"})
	got := linesOf(featuretest.Data(t).Catalog(), lines, nil)
	if len(got) != 3 {
		t.Fatalf("%d lines", len(got))
	}
	if got[0].Actor == nil || got[0].Actor.DisplayName != "Bob" || got[0].Action != "ticket.approved" || (*got[0].Details)["step"] != "owner" {
		t.Errorf("the first line is %+v", got[0])
	}
	if got[1].Actor != nil {
		t.Errorf("a line without an actor has %v", got[1].Actor)
	}
	if got[2].Seq != 3 || got[2].Hash != "h" || got[2].Action != "" {
		t.Errorf("the damaged line is %+v", got[2])
	}
}

// TestLinesHaveMessages checks that a line says in every language what was recorded, and that a line of an earlier version, which has no
// codes, is shown as it was recorded.
func TestLinesHaveMessages(t *testing.T) {
	details := map[string]string{"state": "withdrawn", "application": "orders"}
	reason := message.TicketRolloutStopped(message.GuardNewDenials(3, "east", "1h0m0s", 0))
	ledger.SetMessage(details, "comment", reason)
	coded, err := ledger.Append(0, ledger.Genesis, ledger.Entry{At: featuretest.Now, Action: "ticket.withdrawn", Object: "T-1", Details: details})
	if err != nil {
		t.Fatal(err)
	}
	earlier := map[string]string{"comment": reason.Text}
	plain, err := ledger.Append(1, coded.Hash, ledger.Entry{At: featuretest.Now, Action: "ticket.withdrawn", Object: "T-1", Details: earlier})
	if err != nil {
		t.Fatal(err)
	}
	voided, err := ledger.Append(3, "h", ledger.Entry{At: featuretest.Now, Action: "ticket.voided", Object: "T-1",
		Details: map[string]string{"comment": "in member m1\n+ spec.x: 1"}})
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := ledger.Append(2, plain.Hash, ledger.Entry{At: featuretest.Now, Action: "ticket.of-a-newer-version", Object: "T-1"})
	if err != nil {
		t.Fatal(err)
	}
	got := linesOf(featuretest.Data(t).Catalog(), []ledger.Line{coded, plain, unknown, voided}, nil)
	if diff := cmp.Diff(new(message.LedgerActionTicketWithdrawn()), got[0].Message); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(details, *got[0].Details); diff != "" {
		t.Errorf("the details are not as recorded: %s", diff)
	}
	texts := map[string][]message.Message{"state": {message.LedgerValueStateWithdrawn()}, "comment": {reason}}
	if diff := cmp.Diff(&texts, got[0].Texts); diff != "" {
		t.Error(diff)
	}
	labels := map[string]message.Message{"state": message.LedgerDetailState(), "application": message.LedgerDetailApplication(),
		"comment": message.LedgerDetailComment()}
	if diff := cmp.Diff(&labels, got[0].Labels); diff != "" {
		t.Error(diff)
	}
	if got[1].Texts != nil || (*got[1].Details)["comment"] != reason.Text || got[1].Message == nil {
		t.Errorf("a line of an earlier version is shown as %+v", got[1])
	}
	lines := map[string][]message.Message{"comment": {message.LineInMember("m1"), approval.LineMessage("+ spec.x: 1")}}
	if diff := cmp.Diff(&lines, got[3].Texts); diff != "" {
		t.Errorf("the lines of a voided approval: %s", diff)
	}
	if got[2].Message != nil || got[2].Action != "ticket.of-a-newer-version" {
		t.Errorf("a line of a newer version is shown as %+v", got[2])
	}
}

// TestPagesOfTheLedger checks that the filter and the cursor reach the ledger, and that a cursor of another list is refused.
func TestPagesOfTheLedger(t *testing.T) {
	c := newChain(t, "bob")
	a := &API{Data: featuretest.Data(t), Ledger: c}
	ctx := featuretest.Context(t, approval.Actor{ID: "grace", Auditor: true})
	first, err := a.ListLedger(ctx, openapi.ListLedgerRequestObject{Params: openapi.ListLedgerParams{Actor: new("bob"), Object: new("T-1"), Limit: new(5)}})
	if err != nil {
		t.Fatal(err)
	}
	if c.asked.Actor != "bob" || c.asked.Object != "T-1" || c.asked.Limit != 5 || c.asked.After != 0 {
		t.Errorf("the ledger was asked for %+v", c.asked)
	}
	next := first.(openapi.ListLedger200JSONResponse).NextCursor
	if _, err := a.ListLedger(ctx, openapi.ListLedgerRequestObject{Params: openapi.ListLedgerParams{Cursor: next}}); err != nil || c.asked.After != 7 {
		t.Errorf("the second page begins before %d: %v", c.asked.After, err)
	}
	var p *core.Problem
	foreign := core.EncodeNumberCursor("inbox", 7)
	if _, err := a.ListLedger(ctx, openapi.ListLedgerRequestObject{Params: openapi.ListLedgerParams{Cursor: foreign}}); !errors.As(err, &p) || p.Status != 400 {
		t.Errorf("a cursor of another list: %v", err)
	}
}

// TestPagesOfATicketsHistory checks that the history of a ticket with more lines than a page has is not cut off silently: a page has the cursor of
// the next one, which continues it, and is not accepted for another ticket.
func TestPagesOfATicketsHistory(t *testing.T) {
	store := gormstore.New(databasetest.Open(t, databasetest.SQLite(t)))
	data := featuretest.Data(t)
	data.Tickets = &approval.Service{Config: approval.Config{Store: store, Delegations: store, Catalog: data.Catalog, Now: data.Now}}
	created := func() *approval.Ticket {
		made := approval.NewTicket(approval.Draft{Kind: approval.KindGrant, Requester: "alice", Reason: "because", Items: []approval.Item{{}}}, featuretest.Now)
		ticket, err := store.Create(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		return ticket
	}
	ticket, other := created(), created()
	c := newChain(t, "alice", "bob")
	a := &API{Data: data, Ledger: c}
	ctx := featuretest.Context(t, approval.Actor{ID: "grace", Auditor: true})
	first, err := a.ListTicketLedger(ctx, openapi.ListTicketLedgerRequestObject{Id: ticket.ID()})
	if err != nil {
		t.Fatal(err)
	}
	if c.asked != (ledger.Filter{Object: ticket.ID(), Oldest: true, Limit: ledger.MaxPage}) {
		t.Errorf("the ledger was asked for %+v", c.asked)
	}
	page := first.(openapi.ListTicketLedger200JSONResponse)
	if page.NextCursor == nil || len(page.Items) != 2 || page.Items[0].Seq != 1 {
		t.Fatalf("the first page is %+v", page)
	}
	next := openapi.ListTicketLedgerRequestObject{Id: ticket.ID(), Params: openapi.ListTicketLedgerParams{Cursor: page.NextCursor}}
	if _, err := a.ListTicketLedger(ctx, next); err != nil || c.asked.After != 7 {
		t.Errorf("the second page begins after %d: %v", c.asked.After, err)
	}
	next.Id = other.ID()
	var p *core.Problem
	if _, err := a.ListTicketLedger(ctx, next); !errors.As(err, &p) || p.Status != http.StatusBadRequest {
		t.Errorf("a cursor of another ticket: %v", err)
	}
}

// TestExportIsCompleteOrAborted checks that an export has every line, and that its connection is aborted if the ledger cannot be read to
// its end, because a shorter file would look complete.
func TestExportIsCompleteOrAborted(t *testing.T) {
	c := newChain(t, "alice", "bob", "carol")
	a := &API{Data: featuretest.Data(t), Ledger: c}
	run := func(from int64) (w *httptest.ResponseRecorder, aborted any) {
		w = httptest.NewRecorder()
		defer func() { aborted = recover() }()
		x := &export{api: a, ctx: t.Context(), from: from}
		if err := x.VisitExportLedgerResponse(w); err != nil {
			t.Error(err)
		}
		return w, nil
	}
	for from, want := range map[int64]int{1: 3, 3: 1, 4: 0} {
		w, aborted := run(from)
		if n := strings.Count(w.Body.String(), "\n"); n != want || aborted != nil {
			t.Errorf("from line %d: %d lines, want %d; aborted: %v", from, n, want, aborted)
		}
	}
	c.err = errors.New("the database is away")
	_, aborted := run(1)
	if err, ok := aborted.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		t.Errorf("an incomplete export ended with %v", aborted)
	}
}
