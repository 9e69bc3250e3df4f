package portal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	listLedger = "ledger"
	// verifyPatience is the time limit for verifying a ledger of many millions of lines.
	verifyPatience = 10 * time.Minute
	// exportPatience is the time after which an export that cannot be written to is aborted.
	exportPatience = 10 * time.Second
)

// ListLedger implements openapi.StrictServerInterface.
func (a *api) ListLedger(ctx context.Context, r openapi.ListLedgerRequestObject) (openapi.ListLedgerResponseObject, error) {
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	f := ledger.Filter{Actor: core.Value(r.Params.Actor), Action: core.Value(r.Params.Action), Object: core.Value(r.Params.Object), From: core.Value(r.Params.From), To: core.Value(r.Params.To), Limit: n}
	if f.Before, err = core.DecodeNumberCursor(listLedger, r.Params.Cursor); err != nil {
		return nil, err
	}
	lines, next, err := a.Ledger.List(core.RequestContext(ctx), f)
	if err != nil {
		return nil, err
	}
	out := openapi.ListLedger200JSONResponse{Items: linesOf(a.Catalog(), lines)}
	if next > 0 {
		out.NextCursor = core.EncodeNumberCursor(listLedger, next)
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
	lines, _, err := a.Ledger.List(core.RequestContext(ctx), ledger.Filter{Object: t.ID(), Limit: ticketLines})
	if err != nil {
		return nil, err
	}
	items := linesOf(a.Catalog(), lines)
	for i, j := 0, len(items)-1; i < j; i, j = i+1, j-1 {
		items[i], items[j] = items[j], items[i]
	}
	return openapi.ListTicketLedger200JSONResponse{Items: items}, nil
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
	if err := core.ExtendWriteDeadline(ctx, verifyPatience); err != nil {
		return nil, err
	}
	out := openapi.VerifyLedger200JSONResponse{Intact: true}
	var witnesses []ledger.Witness
	if a.Witnesses != nil {
		var err error
		if witnesses, err = a.Witnesses(core.RequestContext(ctx)); err != nil {
			a.Log.Warn("an anchor of the ledger cannot be read", "error", err)
			out.Intact, out.Reason = false, new(message.LedgerAnchorUnreadable())
		}
	}
	report, err := ledger.Check(a.Ledger.Lines(core.RequestContext(ctx), 1), 1, witnesses)
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
	return a.Charge(core.GinContext(ctx), core.BudgetWholeLedger, core.Caller(ctx).ID)
}

// ExportLedger implements openapi.StrictServerInterface.
func (a *api) ExportLedger(ctx context.Context, r openapi.ExportLedgerRequestObject) (openapi.ExportLedgerResponseObject, error) {
	if err := a.mayReadAll(ctx); err != nil {
		return nil, err
	}
	after := core.Value(r.Params.AfterSeq)
	if after < 0 {
		return nil, core.NewProblem(http.StatusBadRequest, "invalid", message.CallParameterNegative("afterSeq"))
	}
	return &export{api: a, ctx: core.RequestContext(ctx), from: after + 1}, nil
}

// export writes the ledger as a stream, without buffering it.
type export struct {
	api  *api
	ctx  context.Context
	from int64
}

// VisitExportLedgerResponse writes the ledger to its end, or breaks the connection, so that a caller can distinguish a complete
// ledger from one that could not be read to its end.
func (x *export) VisitExportLedgerResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="ledger.jsonl"`)
	w.WriteHeader(http.StatusOK)
	if _, err := ledger.Export(&patientWriter{w, http.NewResponseController(w)}, x.api.Ledger.Lines(x.ctx, x.from)); err != nil {
		x.api.Log.Warn("an export of the ledger broke off", "error", err)
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
	if err := p.out.SetWriteDeadline(time.Now().Add(exportPatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, fmt.Errorf("extend the answer: %w", err)
	}
	return p.w.Write(data)
}
