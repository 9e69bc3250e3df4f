package ledgerapi

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// verifyTimeout is the time limit for verifying a ledger of many millions of lines.
const verifyTimeout = 10 * time.Minute

// VerifyLedger implements openapi.StrictServerInterface.
func (a *API) VerifyLedger(ctx context.Context, _ openapi.VerifyLedgerRequestObject) (openapi.VerifyLedgerResponseObject, error) {
	if err := a.chargeWholeLedger(ctx); err != nil {
		return nil, err
	}
	if err := core.ExtendWriteDeadline(ctx, verifyTimeout); err != nil {
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
		anchors[i] = openapi.AnchorVerification{Anchor: name, Seq: w.Seq, At: views.Time(w.At), Matches: broken == nil || w.Seq < broken.Seq}
		if !anchors[i].Matches {
			anchors[i].Message = &broken.Reason
		}
	}
	out.Anchors = &anchors
	return out, nil
}
