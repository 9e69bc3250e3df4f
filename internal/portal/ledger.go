package portal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	listLedger = "ledger"
	// verifyPatience is the time limit for verifying a ledger of many millions of lines.
	verifyPatience = 10 * time.Minute
)

// ListLedger implements openapi.StrictServerInterface.
func (a *api) ListLedger(ctx context.Context, r openapi.ListLedgerRequestObject) (openapi.ListLedgerResponseObject, error) {
	n, err := pageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	f := ledger.Filter{Actor: value(r.Params.Actor), Action: value(r.Params.Action), Object: value(r.Params.Object), From: value(r.Params.From), To: value(r.Params.To), Limit: n}
	if f.Before, err = numberCursor(listLedger, r.Params.Cursor); err != nil {
		return nil, err
	}
	lines, next, err := a.Ledger.List(plain(ctx), f)
	if err != nil {
		return nil, err
	}
	out := openapi.ListLedger200JSONResponse{Items: linesOf(a.Catalog(), lines)}
	if next > 0 {
		out.NextCursor = encodeNumber(listLedger, next)
	}
	return out, nil
}

// ticketLines is the maximum number of lines in the history of one ticket. A ticket with fifty items has some hundreds.
const ticketLines = ledger.MaxPage

// ListTicketLedger implements openapi.StrictServerInterface.
func (a *api) ListTicketLedger(ctx context.Context, r openapi.ListTicketLedgerRequestObject) (openapi.ListTicketLedgerResponseObject, error) {
	t, err := a.ticket(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	lines, _, err := a.Ledger.List(plain(ctx), ledger.Filter{Object: t.ID(), Limit: ticketLines})
	if err != nil {
		return nil, err
	}
	items := linesOf(a.Catalog(), lines)
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return openapi.ListTicketLedger200JSONResponse{Items: items}, nil
}

// governs returns an error unless the person may see the whole fleet: the security team and auditors.
func governs(who approval.Actor) error {
	if who.Security || who.Auditor {
		return nil
	}
	return forbidden(message.AccessSecurityAndAuditors())
}

func linesOf(c *catalog.Catalog, lines []ledger.Line) []openapi.LedgerLine {
	out := make([]openapi.LedgerLine, 0, len(lines))
	for _, l := range lines {
		var body struct {
			At      time.Time
			Actor   string
			Action  string
			Object  string
			Details map[string]string
			Prev    string
		}
		x := openapi.LedgerLine{Seq: l.Seq, Hash: l.Hash}
		// A damaged line is shown as far as it can be read. The verification reports it.
		if err := json.Unmarshal([]byte(l.Text), &body); err == nil {
			x.At, x.Action, x.Object, x.Prev = body.At.UTC(), body.Action, body.Object, body.Prev
			if len(body.Details) > 0 {
				x.Details = &body.Details
			}
			if body.Actor != "" {
				x.Actor = new(personOf(c, body.Actor))
			}
		}
		out = append(out, x)
	}
	return out
}

// VerifyLedger implements openapi.StrictServerInterface.
func (a *api) VerifyLedger(ctx context.Context, _ openapi.VerifyLedgerRequestObject) (openapi.VerifyLedgerResponseObject, error) {
	if err := a.mayReadAll(ctx); err != nil {
		return nil, err
	}
	if err := patience(ctx, verifyPatience); err != nil {
		return nil, err
	}
	out := openapi.VerifyLedger200JSONResponse{Intact: true}
	var witnesses []ledger.Witness
	if a.Witnesses != nil {
		var err error
		if witnesses, err = a.Witnesses(plain(ctx)); err != nil {
			a.Log.Warn("an anchor of the ledger cannot be read", "error", err)
			out.Intact, out.Reason = false, new(message.LedgerAnchorUnreadable())
		}
	}
	report, err := ledger.Check(a.Ledger.Lines(plain(ctx), 1), 1, witnesses)
	out.Lines, out.Head = report.Last, report.Hash
	var broken *ledger.BrokenError
	switch {
	case errors.As(err, &broken):
		out.Intact, out.BrokenAt, out.Reason = false, &broken.Seq, &broken.Reason
	case err != nil:
		return nil, err
	}
	newest := map[string]ledger.Witness{}
	var names []string
	for _, w := range witnesses {
		if old, ok := newest[w.Anchor]; !ok || w.Seq > old.Seq {
			if !ok {
				names = append(names, w.Anchor)
			}
			newest[w.Anchor] = w
		}
	}
	anchors := make([]openapi.AnchorVerification, len(names))
	for i, name := range names {
		w := newest[name]
		anchors[i] = openapi.AnchorVerification{Anchor: name, Seq: w.Seq, At: when(w.At), Matches: broken == nil || w.Seq < broken.Seq}
		if !anchors[i].Matches {
			anchors[i].Message = &broken.Reason
		}
	}
	out.Anchors = &anchors
	return out, nil
}

// mayReadAll charges the caller's budget for operations that read the whole ledger.
func (a *api) mayReadAll(ctx context.Context) error {
	return a.budgeted(ginOf(ctx), budgetWhole, actor(ctx).ID)
}

// ExportLedger implements openapi.StrictServerInterface.
func (a *api) ExportLedger(ctx context.Context, r openapi.ExportLedgerRequestObject) (openapi.ExportLedgerResponseObject, error) {
	if err := a.mayReadAll(ctx); err != nil {
		return nil, err
	}
	after := value(r.Params.AfterSeq)
	if after < 0 {
		return nil, newProblem(http.StatusBadRequest, "invalid", message.CallParameterNegative("afterSeq"))
	}
	return &export{s: a.Server, ctx: plain(ctx), from: after + 1}, nil
}

// export writes the ledger as a stream, without buffering it.
type export struct {
	s    *Server
	ctx  context.Context
	from int64
}

// VisitExportLedgerResponse writes the ledger to its end, or breaks the connection, so that a caller can distinguish a complete
// ledger from one that could not be read to its end.
func (x *export) VisitExportLedgerResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="ledger.jsonl"`)
	w.WriteHeader(http.StatusOK)
	if _, err := ledger.Export(&patientWriter{w, http.NewResponseController(w)}, x.s.Ledger.Lines(x.ctx, x.from)); err != nil {
		x.s.Log.Warn("an export of the ledger broke off", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// patientWriter extends the write deadline for each part of a long response.
type patientWriter struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

func (p *patientWriter) Write(data []byte) (int, error) {
	if err := p.out.SetWriteDeadline(time.Now().Add(streamPatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, fmt.Errorf("extend the answer: %w", err)
	}
	return p.w.Write(data)
}
