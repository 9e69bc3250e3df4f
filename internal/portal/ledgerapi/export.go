package ledgerapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// exportWriteTimeout is the time after which an export that cannot be written to is aborted.
const exportWriteTimeout = 10 * time.Second

// ExportLedger implements openapi.StrictServerInterface.
func (a *API) ExportLedger(ctx context.Context, r openapi.ExportLedgerRequestObject) (openapi.ExportLedgerResponseObject, error) {
	if err := a.chargeWholeLedger(ctx); err != nil {
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
	api  *API
	ctx  context.Context
	from int64
}

// VisitExportLedgerResponse writes the ledger to its end, or breaks the connection, so that a caller can distinguish a complete
// ledger from one that could not be read to its end.
func (x *export) VisitExportLedgerResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="ledger.jsonl"`)
	w.WriteHeader(http.StatusOK)
	if _, err := ledger.Export(&deadlineWriter{w, http.NewResponseController(w)}, x.api.Ledger.Lines(x.ctx, x.from)); err != nil {
		x.api.Log.Warn("an export of the ledger was interrupted", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// deadlineWriter extends the write deadline for each part of a long response.
type deadlineWriter struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

func (w *deadlineWriter) Write(data []byte) (int, error) {
	if err := w.out.SetWriteDeadline(time.Now().Add(exportWriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, fmt.Errorf("extend the answer: %w", err)
	}
	return w.w.Write(data)
}
