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
	out, columns := csv.NewWriter(w), reportColumns(x.api.Catalog(), &x.campaign)
	control := http.NewResponseController(w)
	if err := core.WriteColumnNames(out, columns); err != nil {
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
			if err := core.WriteRow(out, columns, &lines[i]); err != nil {
				return err
			}
			after.Number = lines[i].Number
		}
		if out.Flush(); out.Error() != nil || len(lines) < linesPerPart {
			return out.Error()
		}
	}
}

// reportColumns returns the columns of the lines of a campaign. The columns of the evidence are empty for a line without evidence.
func reportColumns(c *catalog.Catalog, x *accessreview.Campaign) []core.Column[*accessreview.Line] {
	type line = *accessreview.Line
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	yes := func(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] }
	percent := func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
	titles := func(names []string) string {
		var out []string
		for _, name := range names {
			if e, ok := c.ByName(name); ok {
				out = append(out, e.Title)
			}
		}
		return strings.Join(out, "; ")
	}
	evidence := func(value func(*accessreview.Evidence) string) func(line) string {
		return func(l line) string {
			if l.Evidence.At.IsZero() {
				return ""
			}
			return value(&l.Evidence)
		}
	}
	type found = *accessreview.Evidence
	return []core.Column[line]{
		{Name: "review", Value: func(l line) string { return accessreview.FormatID(l.Campaign) }},
		{Name: "name", Value: func(line) string { return x.Name }},
		{Name: "line", Value: func(l line) string { return strconv.Itoa(l.Number) }},
		{Name: "application", Value: func(l line) string { subjects, _ := l.Ends(); return strings.Join(subjects, " ") }},
		{Name: "application title", Value: func(l line) string { subjects, _ := l.Ends(); return titles(subjects) }},
		{Name: "resource", Value: func(l line) string { _, resources := l.Ends(); return strings.Join(resources, " ") }},
		{Name: "resource title", Value: func(l line) string { _, resources := l.Ends(); return titles(resources) }},
		{Name: "class", Value: func(l line) string { return l.Class }},
		{Name: "sensitivity", Value: func(l line) string { return string(l.Sensitivity) }},
		{Name: "actions", Value: func(l line) string { return strings.Join(l.Actions, " ") }},
		{Name: "ticket", Value: func(l line) string { return approval.FormatID(l.Target.Ticket) }},
		{Name: "granted at", Value: func(l line) string { return at(l.Since) }},
		{Name: "ends at", Value: func(l line) string { return at(l.End) }},
		{Name: "requesters", Value: func(l line) string { return strings.Join(l.Requesters, " ") }},
		{Name: "reviewers", Value: func(l line) string { return strings.Join(l.Reviewers, " ") }},
		{Name: "reviewer rule", Value: func(l line) string { return string(l.Rule) }},
		{Name: "evidence at", Value: func(l line) string { return at(l.Evidence.At) }},
		{Name: "evidence days", Value: evidence(func(e found) string { return strconv.Itoa(e.Days) })},
		{Name: "last used", Value: evidence(func(e found) string { return at(e.LastUsed) })},
		{Name: "connections", Value: evidence(func(e found) string { return strconv.FormatInt(e.Count, 10) })},
		{Name: "observed well enough", Value: evidence(func(e found) string { return yes(e.Watched && !e.Uncertain) })},
		{Name: "observed %", Value: evidence(func(e found) string { return percent(e.WatchedPercent) })},
		{Name: "flows lost %", Value: evidence(func(e found) string { return percent(e.LostPercent) })},
		{Name: "recommendation", Value: func(l line) string { return string(l.Recommendation) }},
		{Name: "decision", Value: func(l line) string { return string(l.Decision) }},
		{Name: "decided by", Value: func(l line) string { return l.DecidedBy }},
		{Name: "on behalf of", Value: func(l line) string { return l.OnBehalfOf }},
		{Name: "decided at", Value: func(l line) string { return at(l.DecidedAt) }},
		{Name: "nobody decided", Value: func(l line) string { return yes(l.Silent) }},
		{Name: "comment", Value: func(l line) string { return l.Comment }},
		{Name: "new end", Value: func(l line) string { return at(l.Until) }},
		{Name: "state", Value: func(l line) string { return string(l.State) }},
		{Name: "outcome", Value: func(l line) string { return string(l.Outcome) }},
		{Name: "outcome at", Value: func(l line) string { return at(l.OutcomeAt) }},
		{Name: "grant version", Value: func(l line) string { return l.Grant }},
		{Name: "kind", Value: func(l line) string {
			if l.Scope != nil {
				return string(approval.KindStatement)
			}
			return string(approval.KindGrant)
		}},
	}
}
