package portal

import (
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	// maxWindow is the maximum period of a flow query.
	maxWindow = 31 * 24 * time.Hour
	// maxFlowValues is the maximum number of values of a parameter, and maxFlowValue the maximum length of each in bytes.
	maxFlowValues = 50
	maxFlowValue  = 512
	maxFlowText   = 200
	// flowPatience is the time limit of a flow query. It is shorter than the server's limit for responses.
	flowPatience = 20 * time.Second
)

// window returns the period of a query. Without a beginning it has the default length.
func (a *api) window(since, until *time.Time, preset time.Duration) (from, to time.Time, err error) {
	now := a.Now().UTC()
	to = now
	if until != nil {
		to = until.UTC()
	}
	from = to.Add(-preset)
	if since != nil {
		from = since.UTC()
	}
	switch {
	case !from.Before(to):
		return from, to, core.InvalidParameter("since", message.FieldBeforeUntil())
	case to.Sub(from) > maxWindow:
		return from, to, core.InvalidParameter("since", message.FieldWindowTooLong())
	case to.After(now.Add(24 * time.Hour)): // a clock may be ahead of ours
		return from, to, core.InvalidParameter("until", message.FieldInFuture())
	}
	return from, to, nil
}

// filter returns the filter of a query, restricted to flows that the caller may see.
func (a *api) filter(who approval.Actor, p openapi.ListFlowsParams) (audit.Filter, error) {
	f := audit.Filter{Within: a.scope(who), Policy: core.Value(p.Policy), SID: core.Value(p.Sid), Unattributed: core.Value(p.Unattributed), Disagree: core.Value(p.Disagree), Text: core.Value(p.Q)}
	var err error
	if f.Since, f.Until, err = a.window(p.Since, p.Until, deniedWindow); err != nil {
		return f, err
	}
	if len(f.Text) > maxFlowText || len(f.Policy) > maxFlowValue || len(f.SID) > maxFlowValue {
		return f, core.InvalidParameter("q", message.FieldTooLong())
	}
	for name, values := range map[string][]string{"subject": core.Value(p.Subject), "resource": core.Value(p.Resource), "cluster": core.Value(p.Cluster), "action": core.Value(p.Action)} {
		if err := bounded(name, values); err != nil {
			return f, err
		}
	}
	c := a.Catalog()
	f.Subjects = names(core.Value(p.Subject), func(id string) (catalog.Entity, bool) { return c.Application(id) })
	f.Resources = names(core.Value(p.Resource), func(id string) (catalog.Entity, bool) { return c.Resource(id) })
	f.Clusters, f.Actions = core.Value(p.Cluster), core.Value(p.Action)
	if f.Decisions, err = words(p.Decision); err != nil {
		return f, err
	}
	for _, v := range core.Value(p.Verdict) {
		if !v.Valid() {
			return f, core.InvalidParameter("verdict", message.FieldOneOf([]string{"forwarded", "dropped", "audit", "unknown"}))
		}
		f.Verdicts = append(f.Verdicts, audit.Verdict(v))
	}
	if len(core.Value(p.Port)) > maxFlowValues || len(f.Verdicts) > maxFlowValues {
		return f, core.InvalidParameter("port", message.FieldMaxValues(maxFlowValues))
	}
	for _, n := range core.Value(p.Port) {
		if n < 0 || n > 65535 {
			return f, core.InvalidParameter("port", message.FieldRange(0, 65535))
		}
		f.Ports = append(f.Ports, uint16(n))
	}
	return f, nil
}

func bounded(name string, values []string) error {
	if len(values) > maxFlowValues {
		return core.InvalidParameter(name, message.FieldMaxValues(maxFlowValues))
	}
	for _, v := range values {
		if v == "" || len(v) > maxFlowValue {
			return core.InvalidParameter(name, message.FieldByteCount(maxFlowValue))
		}
	}
	return nil
}

// names returns the resource names of catalog ids.
func names(in []string, find func(string) (catalog.Entity, bool)) []string {
	out := make([]string, 0, len(in))
	for _, v := range in {
		if e, ok := find(v); ok {
			v = e.Name
		}
		out = append(out, v)
	}
	return out
}

func words(in *openapi.DecisionFilter) ([]policy.Verdict, error) {
	if len(core.Value(in)) > maxFlowValues {
		return nil, core.InvalidParameter("decision", message.FieldMaxValues(maxFlowValues))
	}
	var out []policy.Verdict
	for _, d := range core.Value(in) {
		if !d.Valid() {
			return nil, core.NewProblem(http.StatusBadRequest, "invalid", message.CallParameterOneOf("decision", []string{"allowed", "denied", "default-denied", "audited", "unmanaged"}))
		}
		out = append(out, policy.Verdict(d))
	}
	return out, nil
}

// scope returns the names whose flows a person may see: those that they or one of their groups own. nil means all.
func (a *api) scope(who approval.Actor) *audit.Scope {
	if who.Security || who.Auditor {
		return nil
	}
	applications, resources := a.Catalog().Owned(who.ID)
	return &audit.Scope{Subjects: namesOf(applications), Resources: namesOf(resources)}
}

// steps are the possible steps of a series without a given one. The series then has at least half of the wanted points.
var steps = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

const wantedSteps = 150

// seriesStep returns the step that the caller gave, or the shortest one that gives no more than the wanted number of points.
func seriesStep(seconds *int, window time.Duration) (time.Duration, error) {
	if seconds != nil {
		if *seconds < 60 || *seconds%60 != 0 || *seconds > int(maxWindow/time.Second) {
			return 0, core.InvalidParameter("stepSeconds", message.FieldStep())
		}
		return time.Duration(*seconds) * time.Second, nil
	}
	for _, s := range steps {
		if window/s <= wantedSteps {
			return s, nil
		}
	}
	return steps[len(steps)-1], nil
}
