package accountapi

import (
	"context"
	"strconv"
	"time"

	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/savedview"
)

// ListSavedViews implements openapi.StrictServerInterface.
func (a *API) ListSavedViews(ctx context.Context, _ openapi.ListSavedViewsRequestObject) (openapi.ListSavedViewsResponseObject, error) {
	all, err := a.Saved.Views(core.RequestContext(ctx), core.Caller(ctx).ID)
	if err != nil {
		return nil, err
	}
	out := openapi.ListSavedViews200JSONResponse{Items: make([]openapi.SavedView, 0, len(all))}
	for _, v := range all {
		out.Items = append(out.Items, savedView(v))
	}
	return out, nil
}

// SaveView implements openapi.StrictServerInterface.
func (a *API) SaveView(ctx context.Context, r openapi.SaveViewRequestObject) (openapi.SaveViewResponseObject, error) {
	v, err := savedview.View{Page: savedview.Page(r.Body.Page), Name: r.Body.Name, Query: r.Body.Query, SavedAt: a.Now().Truncate(time.Microsecond)}.Normalize()
	if err != nil {
		return nil, err
	}
	if v, err = a.Saved.Save(core.RequestContext(ctx), core.Caller(ctx).ID, v); err != nil {
		return nil, err
	}
	return openapi.SaveView200JSONResponse(savedView(v)), nil
}

// DeleteSavedView implements openapi.StrictServerInterface.
func (a *API) DeleteSavedView(ctx context.Context, r openapi.DeleteSavedViewRequestObject) (openapi.DeleteSavedViewResponseObject, error) {
	id, err := strconv.ParseInt(r.Id, 10, 64)
	if err != nil {
		return nil, savedview.ErrUnknown
	}
	if err := a.Saved.Delete(core.RequestContext(ctx), core.Caller(ctx).ID, id); err != nil {
		return nil, err
	}
	return openapi.DeleteSavedView204Response{}, nil
}

func savedView(v savedview.View) openapi.SavedView {
	return openapi.SavedView{Id: strconv.FormatInt(v.ID, 10), Page: openapi.SavedViewPage(v.Page), Name: v.Name, Query: v.Query, SavedAt: v.SavedAt.UTC()}
}
