package ticketapi

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	maxActions  = 32
	maxSpec     = 64 << 10
	maxClusters = 1000
)

// request converts a request and checks its form. Its meaning is checked later, with the catalog. Texts of objects are parsed only
// for people who may propose objects, or who may ask who would decide about them.
func (a *API) request(who approval.Actor, b *openapi.NewTicket) (approval.Request, error) {
	if n := len(b.Items); n < 1 || n > approval.MaxItems {
		return approval.Request{}, core.InvalidField("items", message.FieldItemCount(approval.MaxItems))
	}
	if !who.Security && !who.Auditor && slices.ContainsFunc(b.Items, func(it openapi.NewTicketItem) bool { return it.Object != nil }) {
		organizations, err := a.Tickets.Organizations()
		if err != nil {
			return approval.Request{}, err
		}
		if !approval.AdministersAny(a.Catalog(), who.ID, organizations) {
			return approval.Request{}, core.Forbidden(message.RequestSecurityOnly())
		}
	}
	r := approval.Request{Kind: approval.KindGrant, Reason: b.Reason, BreakGlass: core.Value(b.BreakGlass)}
	if b.Kind != nil {
		if r.Kind = approval.Kind(*b.Kind); !b.Kind.Valid() {
			return r, core.InvalidField("kind", message.FieldOneOf(kindNames()))
		}
	}
	r.Adopt = core.Value(b.Adopt)
	if b.Override != nil {
		r.Override = b.Override.Reason
	}
	if p := b.Package; p != nil {
		r.Package = &approval.PackageChoice{Name: p.Name, Version: p.Version}
	}
	whole, err := duration("durationSeconds", b.DurationSeconds)
	if err != nil {
		return r, err
	}
	for i, it := range b.Items {
		x, err := requestItem(fmt.Sprintf("items[%d].", i), it)
		if err != nil {
			return r, err
		}
		if it.DurationSeconds == nil {
			x.Duration = whole
		}
		r.Items = append(r.Items, x)
	}
	return r, nil
}

func kindNames() (out []string) {
	for _, k := range approval.Kinds() {
		out = append(out, string(k))
	}
	return out
}

func requestItem(path string, it openapi.NewTicketItem) (x approval.RequestItem, err error) {
	x = approval.RequestItem{
		Application: core.Value(it.Application),
		Resource:    core.Value(it.Resource),
		Actions:     core.Value(it.Actions),
		Mode:        v1alpha1.Mode(core.Value(it.Mode)),
	}
	if len(x.Actions) > maxActions {
		return x, core.InvalidField(path+"actions", message.FieldMaxCount(maxActions))
	}
	if it.Mode != nil && !it.Mode.Valid() {
		return x, core.InvalidField(path+"mode", message.FieldOneOf([]string{"Observe", "Audit", "Enforce"}))
	}
	if x.Duration, err = duration(path+"durationSeconds", it.DurationSeconds); err != nil {
		return x, err
	}
	x.Hours = hoursOf(it.Hours)
	if it.Target != nil {
		n, ok := approval.ParseID(it.Target.Ticket)
		if !ok || it.Target.Item < 0 {
			return x, core.InvalidField(path+"target", message.FieldTarget())
		}
		x.Target = &approval.Target{Ticket: n, Item: it.Target.Item}
	}
	if modes := core.Value(it.ClusterModes); len(modes) > 0 {
		if len(modes) > maxClusters {
			return x, core.InvalidField(path+"clusterModes", message.FieldMaxCount(maxClusters))
		}
		x.ClusterModes = map[string]v1alpha1.Mode{}
		for cluster, m := range modes {
			if !m.Valid() {
				return x, core.InvalidField(path+"clusterModes", message.FieldModesOfClusters())
			}
			x.ClusterModes[cluster] = v1alpha1.Mode(m)
		}
	}
	if it.Object != nil {
		x.Object, err = objectChange(path+"object.", *it.Object)
	}
	if w := it.Workload; w != nil && err == nil {
		if n := len(w.Addresses); n < 1 || n > workloads.MaxAddresses {
			return x, core.InvalidField(path+"workload.addresses", message.FieldCount(workloads.MaxAddresses))
		}
		x.Workload = &approval.Registration{ID: w.Id, Addresses: w.Addresses, Description: core.Value(w.Description)}
	}
	if s := it.Scope; s != nil && err == nil {
		x.Scope, err = scopeOf(path+"scope.", *s)
	}
	if p := it.Package; p != nil && err == nil {
		x.Package, err = packageDraft(path+"package.", *p)
	}
	return x, err
}

// scopeOf converts the scope of a statement.
func scopeOf(path string, s openapi.StatementScope) (*approval.StatementScope, error) {
	switch {
	case !s.Effect.Valid():
		return nil, core.InvalidField(path+"effect", message.FieldOneOf([]string{"Allow", "Deny"}))
	case len(s.Subjects) < 1 || len(s.Subjects) > approval.MaxScopeNames:
		return nil, core.InvalidField(path+"subjects", message.FieldCount(approval.MaxScopeNames))
	case len(s.Resources) < 1 || len(s.Resources) > approval.MaxScopeNames:
		return nil, core.InvalidField(path+"resources", message.FieldCount(approval.MaxScopeNames))
	}
	return &approval.StatementScope{Effect: v1alpha1.Effect(s.Effect), Subjects: s.Subjects, Resources: s.Resources}, nil
}

// packageDraft converts a version of an access package that is requested to be published.
func packageDraft(path string, p openapi.NewPackage) (*approval.PackageDraft, error) {
	if n := len(p.Resources); n < 1 || n > accesspackage.MaxResources {
		return nil, core.InvalidField(path+"resources", message.FieldCount(accesspackage.MaxResources))
	}
	longest, err := duration(path+"durationSeconds", p.DurationSeconds)
	if err != nil {
		return nil, err
	}
	out := &approval.PackageDraft{Name: p.Name, Spec: accesspackage.Spec{Title: p.Title, Description: core.Value(p.Description), Team: p.Team,
		DurationSeconds: int64(longest / time.Second), Hours: hoursOf(p.Hours), Chain: accesspackage.Chain(p.Chain)},
		ToHolders: core.Value(p.ToHolders)}
	for i, r := range p.Resources {
		if len(r.Actions) > maxActions {
			return nil, core.InvalidField(fmt.Sprintf("%sresources[%d].actions", path, i), message.FieldMaxCount(maxActions))
		}
		out.Resources = append(out.Resources, approval.PackageResource{ID: r.Resource, Actions: r.Actions})
	}
	return out, nil
}

func objectChange(path string, o openapi.ObjectChange) (*approval.ObjectChange, error) {
	switch {
	case !o.Kind.Valid():
		return nil, core.InvalidField(path+"kind", message.FieldOneOf([]string{"ResourceClass", "SubjectClass", "ApprovalPolicy"}))
	case !o.Verb.Valid():
		return nil, core.InvalidField(path+"verb", message.FieldOneOf([]string{"create", "update", "delete"}))
	case len(o.Name) > 253:
		return nil, core.InvalidField(path+"name", message.FieldMaxCharacters(253))
	}
	out := &approval.ObjectChange{Kind: string(o.Kind), Name: o.Name, Verb: string(o.Verb)}
	text := core.Value(o.Spec)
	if text == "" {
		return out, nil
	}
	if len(text) > maxSpec {
		return nil, core.InvalidField(path+"spec", message.FieldMaxBytes(maxSpec))
	}
	spec, err := specJSON(text)
	if err != nil {
		return nil, core.InvalidField(path+"spec", message.FieldSpecForm())
	}
	out.Spec = spec
	return out, nil
}

// duration converts a number of seconds, which is checked before the conversion, because it could overflow.
func duration(path string, seconds *int64) (time.Duration, error) {
	const least, most = int64(approval.MinDuration / time.Second), int64(approval.MaxDuration / time.Second)
	if seconds == nil {
		return 0, nil
	}
	if *seconds < least || *seconds > most {
		return 0, &core.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid", Message: message.CallDurationRange(),
			Fields: []approval.Field{{Path: path, Code: "range", Message: message.FieldRangeOrAbsent(int(least), int(most))}}}
	}
	return time.Duration(*seconds) * time.Second, nil
}

// hoursOf returns the hours of a request; nil if it has none.
func hoursOf(w *openapi.WeeklyHours) *v1alpha1.WeeklyHours {
	if w == nil {
		return nil
	}
	out := &v1alpha1.WeeklyHours{TimeZone: w.TimeZone}
	for _, p := range w.Periods {
		period := v1alpha1.DailyPeriod{From: p.From, To: p.To}
		for _, d := range p.Days {
			period.Days = append(period.Days, v1alpha1.Weekday(d))
		}
		out.Periods = append(out.Periods, period)
	}
	return out
}
