package views

import (
	"context"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// DeniedWindow is the period in which refused connections are counted.
const DeniedWindow = 24 * time.Hour

// Denials returns the number of refused connections in the last day, or nil if the flow store cannot be read.
func (d *Data) Denials(ctx context.Context, q audit.DeniedQuery) map[string]int64 {
	q.Since = d.Now().Add(-DeniedWindow)
	m, err := d.Flows.Denied(core.RequestContext(ctx), q)
	if err != nil {
		d.Log.Debug("denials could not be counted", "error", err)
		return nil
	}
	if m == nil {
		m = map[string]int64{}
	}
	return m
}

// DenialCount returns the denials of a name, or nil if denials are not known.
func DenialCount(m map[string]int64, name string) *int64 {
	if m == nil {
		return nil
	}
	return new(m[name])
}

const (
	// MaxWindow is the maximum period of a flow query, unless it is about totals alone.
	MaxWindow = 31 * 24 * time.Hour
	// MaxTotalsWindow is the maximum period of a query about totals, which the SQLite store answers from sums of whole days.
	MaxTotalsWindow = LastUseWindow
)

// FlowTimeout is the time limit of a flow query. It is shorter than the server's limit for responses.
const FlowTimeout = 20 * time.Second

// clockSkew is how far the clock of a caller may be from the portal's.
const clockSkew = 24 * time.Hour

// Window returns the period of a query, which is at most MaxWindow. Without a beginning it has the default length.
// A caller who asks for the longest period up to now
// computes its beginning from their own clock, some time before the portal reads the request, so a little more is accepted and cut off.
func (d *Data) Window(since, until *time.Time, preset time.Duration) (from, to time.Time, err error) {
	return d.WindowUpTo(since, until, preset, MaxWindow)
}

// WindowUpTo is Window with another maximum, in whole days.
func (d *Data) WindowUpTo(since, until *time.Time, preset, most time.Duration) (from, to time.Time, err error) {
	now := d.Now().UTC()
	to = now
	if until != nil {
		to = until.UTC()
	}
	from = to.Add(-preset)
	if since != nil {
		from = since.UTC()
	}
	if longest := to.Add(-most); until == nil && from.Before(longest) && !from.Before(longest.Add(-clockSkew)) {
		from = longest
	}
	switch {
	case !from.Before(to):
		return from, to, core.InvalidParameter("since", message.FieldBeforeUntil())
	case to.Sub(from) > most:
		return from, to, core.InvalidParameter("since", message.FieldWindowTooLong(int(most/(24*time.Hour))))
	case to.After(now.Add(clockSkew)):
		return from, to, core.InvalidParameter("until", message.FieldInFuture())
	}
	return from, to, nil
}

// FlowScope returns the names whose flows a person may see: those that they or one of their groups own. nil means all.
func (d *Data) FlowScope(who approval.Actor) *audit.Scope {
	if who.Security || who.Auditor {
		return nil
	}
	applications, resources := d.Catalog().Owned(who.ID)
	return &audit.Scope{Subjects: Names(applications), Resources: Names(resources)}
}

// Score returns the view of the evidence for a resource at a time.
func (d *Data) Score(s insight.Score, at time.Time) openapi.EvidenceScore {
	out := openapi.EvidenceScore{
		Value:         s.Value,
		Threshold:     s.Threshold,
		Enough:        s.Enough,
		WindowSeconds: int64(d.EvidenceWindow.Seconds()),
		Parts:         []openapi.EvidencePart{},
		At:            Time(at),
		Since:         Time(at.Add(-d.EvidenceWindow)),
	}
	for _, p := range s.Parts {
		out.Parts = append(out.Parts, openapi.EvidencePart{Name: string(p.Name), Points: p.Points, Of: p.Of, Missing: core.OptionalMessage(p.Missing)})
	}
	return out
}

// DefaultQuietDays is the number of days without a use after which a statement counts as unused, unless the caller gives another one.
const DefaultQuietDays = 14

// LastUseWindow is the period that is searched for the last use of a statement.
const LastUseWindow = 366 * 24 * time.Hour

// Connection returns the view of a connection, with the ticket that its statement names.
func Connection(c *catalog.Catalog, f audit.Connection) openapi.Connection {
	end := func(name, other string) openapi.CatalogRef {
		if name == "" { // no class covers it, so the observed text is shown
			return openapi.CatalogRef{Title: other}
		}
		return Ref(c, name)
	}
	out := openapi.Connection{
		Cluster:       f.Cluster,
		SourceCluster: core.Optional(f.SourceCluster),
		Subject:       end(f.Subject, f.Source),
		Resource:      end(f.Resource, f.Destination),
		Action: core.Optional(
			f.Action,
		),
		Port:     int(f.Port),
		Protocol: string(f.Protocol),
		Decision: openapi.Decision(f.Decision),
		Verdict:  openapi.ConnectionVerdict(f.Verdict),
		Policy: core.Optional(
			f.Statement.Policy,
		),
		Sid:       core.Optional(f.Statement.SID),
		Count:     f.Count,
		FirstSeen: f.FirstSeen.UTC(),
		LastSeen:  f.LastSeen.UTC(),
	}
	if f.Disagrees() {
		out.Disagrees = new(true)
	}
	out.Ticket = StatementTicket(f.Statement, f.Resource)
	return out
}

// StatementTicket returns the ticket that a statement names, or nil. Whether the ticket asked for the statement is not verified.
func StatementTicket(ref policy.Ref, resource string) *string {
	if n, ok := ticketNumber(ref, resource); ok {
		return new(approval.FormatID(n))
	}
	return nil
}
