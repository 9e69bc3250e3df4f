package catalogapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// maxChanges is the maximum number of changes that a preview lists. Its counts include all changes.
const maxChanges = 500

// ListCatalogSources implements openapi.StrictServerInterface.
func (a *API) ListCatalogSources(ctx context.Context, _ openapi.ListCatalogSourcesRequestObject) (openapi.ListCatalogSourcesResponseObject, error) {
	who := core.Caller(ctx)
	statuses, err := a.Directory.Statuses(core.RequestContext(ctx))
	if err != nil {
		return nil, err
	}
	sources := map[string]*openapi.CatalogSource{catalog.Portal: {Id: catalog.Portal, Kind: openapi.CatalogSourceKindPortal}}
	source := func(id string) *openapi.CatalogSource {
		if sources[id] == nil {
			kind := openapi.CatalogSourceKindUpload
			if id == catalog.SCIM {
				kind = openapi.CatalogSourceKindScim
			}
			sources[id] = &openapi.CatalogSource{Id: id, Kind: kind}
		}
		return sources[id]
	}
	for _, s := range a.Directory.Sources {
		x := source(s.Name())
		x.Kind = openapi.CatalogSourceKindBackstage
		if f, ok := s.(catalog.Folder); ok {
			x.Kind, x.Location = openapi.CatalogSourceKindFiles, &f.Dir
		}
	}
	for _, e := range a.Directory.Stored() {
		x := source(e.Source)
		x.Entities++
		if !e.Gone.IsZero() {
			x.Gone = new(core.Value(x.Gone) + 1)
		}
	}
	for _, st := range statuses {
		x := source(st.Source)
		x.LastSync, x.LastError = views.Time(st.SucceededAt), core.Optional(st.Error)
		if st.PendingPreview == "" {
			continue
		}
		d, err := a.Directory.ShowPreview(core.RequestContext(ctx), catalog.Actor{ID: who.ID, Security: who.Security}, st.PendingPreview)
		if err != nil { // an auditor, or it was decided meanwhile
			x.Waiting = &openapi.SyncPreview{Token: "", Gone: st.PendingRemovals, Changes: []openapi.SyncChange{}}
			continue
		}
		x.Waiting = new(syncPreview(d, st.PendingPreview))
	}
	out := openapi.ListCatalogSources200JSONResponse{Items: []openapi.CatalogSource{}}
	for _, x := range sources {
		out.Items = append(out.Items, *x)
	}
	slices.SortFunc(out.Items, func(x, y openapi.CatalogSource) int { return strings.Compare(x.Id, y.Id) })
	return out, nil
}

// PreviewSync implements openapi.StrictServerInterface. It reads a configured source; any other name is an upload.
func (a *API) PreviewSync(ctx context.Context, r openapi.PreviewSyncRequestObject) (openapi.PreviewSyncResponseObject, error) {
	by := editor(ctx)
	reading, err := a.reading(ctx, r.Id, *r.Body)
	if err != nil {
		return nil, err
	}
	d, token, err := a.Directory.Preview(core.RequestContext(ctx), by, r.Id, reading)
	if err != nil {
		return nil, catalogProblem(err)
	}
	return openapi.PreviewSync200JSONResponse(syncPreview(d, token)), nil
}

func (a *API) reading(ctx context.Context, source string, in openapi.SyncInput) (catalog.SourceContent, error) {
	text := core.Value(in.Content)
	for _, s := range a.Directory.Sources {
		if s.Name() != source {
			continue
		}
		if text != "" {
			return catalog.SourceContent{}, core.InvalidField("content", message.FieldContentAbsent())
		}
		reading, err := s.Read(core.RequestContext(ctx))
		if err != nil {
			a.Log.Warn("a catalog source cannot be read", "source", source, "error", err)
			return reading, core.NewProblem(http.StatusServiceUnavailable, "unavailable", message.CatalogSourceUnreadable())
		}
		return reading, nil
	}
	var out catalog.SourceContent
	switch core.Value(in.Format) {
	case openapi.SyncInputFormatCsv:
		if kind := core.Value(in.Kind); !kind.Valid() {
			return out, core.InvalidField("kind", message.FieldCsvKind())
		}
		out.AddCSV(catalog.Kind(*in.Kind), "upload", []byte(text))
	case openapi.SyncInputFormatBackstage:
		out.AddYAML("upload", []byte(text))
	default:
		return out, core.InvalidField("format", message.FieldOneOf([]string{"backstage", "csv"}))
	}
	if len(out.Records) == 0 && len(out.Problems) == 0 {
		return out, core.InvalidField("content", message.FieldEntityMissing())
	}
	return out, nil
}

// ApplySync implements openapi.StrictServerInterface.
func (a *API) ApplySync(ctx context.Context, r openapi.ApplySyncRequestObject) (openapi.ApplySyncResponseObject, error) {
	remove := core.Value(r.Body.RemoveGone)
	d, err := a.Directory.Apply(
		core.RequestContext(ctx),
		editor(ctx),
		r.Body.Token,
		catalog.ApplyOptions{RemoveGone: remove, Reason: core.Value(r.Body.Reason)},
	)
	if err != nil {
		return nil, catalogProblem(err)
	}
	out := openapi.ApplySync200JSONResponse{Added: len(d.Created) + len(d.Returned), Changed: len(d.Updated), Gone: len(d.Gone)}
	if remove {
		out.Removed = &out.Gone
	}
	return out, nil
}

func syncPreview(d catalog.Diff, token string) openapi.SyncPreview {
	out := openapi.SyncPreview{
		Token:     token,
		Added:     len(d.Created) + len(d.Returned),
		Changed:   len(d.Updated),
		Gone:      len(d.Gone),
		Unchanged: new(d.Unchanged),
		Changes:   []openapi.SyncChange{},
	}
	add := func(verb openapi.SyncChangeVerb, list []catalog.Change) {
		for _, c := range list {
			if len(out.Changes) < maxChanges {
				out.Changes = append(out.Changes, syncChange(verb, c))
			}
		}
	}
	add(openapi.SyncChangeVerbGone, d.Gone) // what people look for comes first
	add(openapi.SyncChangeVerbChange, d.Updated)
	add(openapi.SyncChangeVerbAdd, d.Created)
	add(openapi.SyncChangeVerbAdd, d.Returned)
	problems := make([]message.Message, 0, len(d.Problems)+len(d.Orphans))
	for _, p := range d.Problems {
		if len(problems) < maxChanges {
			problems = append(problems, p.Located())
		}
	}
	for _, o := range d.Orphans {
		if len(problems) < maxChanges {
			problems = append(problems, message.CatalogWouldBeOrphan(o.String()))
		}
	}
	if len(problems) > 0 {
		out.Problems = &problems
	}
	return out
}

func syncChange(verb openapi.SyncChangeVerb, c catalog.Change) openapi.SyncChange {
	out := openapi.SyncChange{Verb: verb, Kind: openapi.SyncChangeKind(c.Ref.Kind), Id: c.Ref.ID, Title: c.Title}
	if list := c.Dependents.Consequences(); len(list) > 0 {
		out.Consequences = &list
	}
	if len(c.Fields) > 0 {
		fields := make([]struct {
			After  string `json:"after"`
			Before string `json:"before"`
			Field  string `json:"field"`
		}, len(c.Fields))
		for i, f := range c.Fields {
			fields[i].Field, fields[i].Before, fields[i].After = f.Name, f.Before, f.After
		}
		out.Fields = &fields
	}
	return out
}

// editor returns the caller as an actor of the catalog, which decides what they may change.
func editor(ctx context.Context) catalog.Actor {
	who := core.Caller(ctx)
	return catalog.Actor{ID: who.ID, Security: who.Security && !who.Auditor}
}

// catalogProblem converts an error of the catalog into a problem of the API.
func catalogProblem(err error) error {
	var field *catalog.FieldError
	if errors.As(err, &field) {
		return &core.Problem{
			Status:  http.StatusUnprocessableEntity,
			Code:    "invalid",
			Message: field.Message,
			Fields:  []approval.Field{{Path: field.Field, Code: "invalid", Message: field.Message}},
		}
	}
	var refusal *catalog.Error
	if !errors.As(err, &refusal) {
		return err
	}
	for kind, p := range map[error]core.Problem{
		catalog.ErrForbidden: {Status: http.StatusForbidden, Code: "forbidden"}, catalog.ErrNotFound: {Status: http.StatusNotFound, Code: "not-found"},
		catalog.ErrConflict: {Status: http.StatusConflict, Code: "conflict"}, catalog.ErrChanged: {Status: http.StatusConflict, Code: "stale"},
	} {
		if errors.Is(refusal.Kind, kind) {
			p.Message = refusal.Message
			return &p
		}
	}
	return err
}

// sentenceProblem makes a sentence of the message of an error.
func sentenceProblem(p core.Problem, err error) error {
	p.Message = message.Sentence(message.Of(err))
	return &p
}
