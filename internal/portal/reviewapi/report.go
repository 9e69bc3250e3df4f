package reviewapi

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	// linesPerPart is the number of lines that the report reads at once.
	linesPerPart = 500
	// reportWriteTimeout is the time after which a report that cannot be written to is aborted.
	reportWriteTimeout = 10 * time.Second
)

// ExportReview implements openapi.StrictServerInterface.
func (a *API) ExportReview(ctx context.Context, r openapi.ExportReviewRequestObject) (openapi.ExportReviewResponseObject, error) {
	x, people, err := a.review(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	if people != nil { // the route admits nobody for whom this holds
		return nil, notFound()
	}
	return &report{api: a, ctx: core.RequestContext(ctx), campaign: x}, nil
}

// report writes the lines of a campaign as CSV, without buffering them.
type report struct {
	api      *API
	ctx      context.Context
	campaign accessreview.Campaign
}

var reportColumns = []string{"review", "name", "line", "application", "application title", "resource", "resource title", "class", "sensitivity", "actions",
	"ticket", "granted at", "ends at", "requesters", "reviewers", "reviewer rule", "evidence at", "evidence days", "last used", "connections",
	"observed well enough", "observed %", "flows lost %", "recommendation", "decision", "decided by", "on behalf of",
	"decided at", "nobody decided", "comment", "new end",
	"state", "outcome", "outcome at", "grant version", "kind"}

// VisitExportReviewResponse writes the report to its end, or breaks the connection, so that a caller can distinguish a complete
// report.
func (x *report) VisitExportReviewResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="access-review-%s.csv"`, accessreview.FormatID(x.campaign.ID)))
	w.WriteHeader(http.StatusOK)
	if err := x.write(w); err != nil {
		x.api.Log.Warn("the report of an access review broke off", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (x *report) write(w http.ResponseWriter) error {
	out, c := csv.NewWriter(w), x.api.Catalog()
	control := http.NewResponseController(w)
	if err := out.Write(reportColumns); err != nil {
		return err
	}
	after := accessreview.Position{Campaign: x.campaign.ID}
	for {
		lines, err := x.api.Store.Lines(x.ctx, accessreview.LineFilter{Campaign: x.campaign.ID, After: after, Limit: linesPerPart})
		if err != nil {
			return err
		}
		if err := control.SetWriteDeadline(time.Now().Add(reportWriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return fmt.Errorf("extend the answer: %w", err)
		}
		for i := range lines {
			if err := out.Write(reportRow(c, &x.campaign, &lines[i])); err != nil {
				return err
			}
			after.Number = lines[i].Number
		}
		if out.Flush(); out.Error() != nil || len(lines) < linesPerPart {
			return out.Error()
		}
	}
}

func reportRow(c *catalog.Catalog, x *accessreview.Campaign, l *accessreview.Line) []string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	yes := func(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] }
	titles := func(names []string) string {
		var out []string
		for _, name := range names {
			if e, ok := c.ByName(name); ok {
				out = append(out, e.Title)
			}
		}
		return strings.Join(out, "; ")
	}
	kind := approval.KindGrant
	if l.Scope != nil {
		kind = approval.KindStatement
	}
	subjects, resources := l.Ends()
	e := l.Evidence
	row := []string{accessreview.FormatID(l.Campaign), x.Name, strconv.Itoa(l.Number), strings.Join(subjects, " "), titles(subjects),
		strings.Join(resources, " "), titles(resources), l.Class, string(l.Sensitivity), strings.Join(l.Actions, " "),
		approval.FormatID(l.Target.Ticket), at(l.Since), at(l.End),
		strings.Join(l.Requesters, " "), strings.Join(l.Reviewers, " "), string(l.Rule), at(e.At), strconv.Itoa(e.Days), at(e.LastUsed),
		strconv.FormatInt(e.Count, 10), yes(e.Watched && !e.Uncertain), strconv.FormatFloat(e.WatchedPercent, 'f', 1, 64),
		strconv.FormatFloat(e.LostPercent, 'f', 1, 64),
		string(l.Recommendation), string(l.Decision), l.DecidedBy, l.OnBehalfOf, at(l.DecidedAt), yes(l.Silent), l.Comment, at(l.Until), string(l.State),
		string(l.Outcome), at(l.OutcomeAt), l.Grant, string(kind)}
	if e.At.IsZero() {
		for i := 17; i <= 22; i++ {
			row[i] = ""
		}
	}
	for i := range row {
		row[i] = core.HarmlessCell(row[i])
	}
	return row
}
