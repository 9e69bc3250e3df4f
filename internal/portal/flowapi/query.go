package flowapi

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
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	// maxFlowValues is the maximum number of values of a parameter, and maxFlowValue the maximum length of each in bytes.
	maxFlowValues = 50
	maxFlowValue  = 512
	// maxFlowText is the maximum length of the text that is searched, in bytes.
	maxFlowText = 200
)

// filter returns the filter of a query, restricted to flows that the caller may see.
func (a *API) filter(who approval.Actor, p openapi.ListFlowsParams) (audit.Filter, error) {
	return a.filterUpTo(who, p, views.MaxWindow)
}

// filterUpTo is filter with another maximum of the period.
func (a *API) filterUpTo(who approval.Actor, p openapi.ListFlowsParams, longest time.Duration) (audit.Filter, error) {
	f := audit.Filter{
		Within:       a.FlowScope(who),
		Policy:       core.Value(p.Policy),
		SID:          core.Value(p.Sid),
		Unattributed: core.Value(p.Unattributed),
		Disagree:     core.Value(p.Disagree),
		Text:         core.Value(p.Q),
	}
	var err error
	if f.Since, f.Until, err = a.WindowUpTo(p.Since, p.Until, views.DeniedWindow, longest); err != nil {
		return f, err
	}
	if len(f.Text) > maxFlowText || len(f.Policy) > maxFlowValue || len(f.SID) > maxFlowValue {
		return f, core.InvalidParameter("q", message.FieldTooLong())
	}
	for name, values := range map[string][]string{
		"subject": core.Value(p.Subject), "resource": core.Value(p.Resource),
		"cluster": core.Value(p.Cluster), "action": core.Value(p.Action),
	} {
		if err := checkValues(name, values); err != nil {
			return f, err
		}
	}
	c := a.Catalog()
	f.Subjects = resourceNames(core.Value(p.Subject), func(id string) (catalog.Entity, bool) { return c.Application(id) })
	f.Resources = resourceNames(core.Value(p.Resource), func(id string) (catalog.Entity, bool) { return c.Resource(id) })
	f.Clusters, f.Actions = core.Value(p.Cluster), core.Value(p.Action)
	if f.Decisions, err = decisions(p.Decision); err != nil {
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

func checkValues(name string, values []string) error {
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

// resourceNames returns the resource names of catalog ids.
func resourceNames(in []string, find func(string) (catalog.Entity, bool)) []string {
	out := make([]string, 0, len(in))
	for _, v := range in {
		if e, ok := find(v); ok {
			v = e.Name
		}
		out = append(out, v)
	}
	return out
}

func decisions(in *openapi.DecisionFilter) ([]policy.Verdict, error) {
	if len(core.Value(in)) > maxFlowValues {
		return nil, core.InvalidParameter("decision", message.FieldMaxValues(maxFlowValues))
	}
	var out []policy.Verdict
	for _, d := range core.Value(in) {
		if !d.Valid() {
			return nil, core.NewProblem(
				http.StatusBadRequest,
				"invalid",
				message.CallParameterOneOf("decision", []string{"allowed", "denied", "default-denied", "audited", "unmanaged"}),
			)
		}
		out = append(out, policy.Verdict(d))
	}
	return out, nil
}

// steps are the possible steps of a series without a given one. The series then has at least half of the wanted points.
var steps = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

const wantedPoints = 150

// seriesStep returns the step that the caller gave, or the shortest one that gives no more than the wanted number of points.
func seriesStep(seconds *int, window time.Duration) (time.Duration, error) {
	if seconds != nil {
		if *seconds < 60 || *seconds%60 != 0 || *seconds > int(views.MaxWindow/time.Second) {
			return 0, core.InvalidParameter("stepSeconds", message.FieldStep())
		}
		return time.Duration(*seconds) * time.Second, nil
	}
	for _, s := range steps {
		if window/s <= wantedPoints {
			return s, nil
		}
	}
	return steps[len(steps)-1], nil
}
