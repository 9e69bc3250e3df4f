// Package scim serves the people and groups of the catalog to provisioning clients by SCIM 2.0 (RFC 7643 and RFC 7644). A user is a
// person, whose id is the userName; a group is a group, whose id is made of its displayName when it is created. The client can read
// and change only what it created: the source SCIM of the catalog. The package maps attributes, applies patches and selects the
// entities of a page; the catalog decides what may be changed. It imports internal/catalog, and no other package of the portal.
package scim

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/elimity-com/scim"
	scimerrors "github.com/elimity-com/scim/errors"
	"github.com/elimity-com/scim/optional"
	"github.com/elimity-com/scim/schema"

	"github.com/acp-io/acp/internal/catalog"
)

const (
	// maxPage is the maximum number of resources in a page of a list.
	maxPage = 200
	// maxFilter is the maximum length of a filter, in bytes.
	maxFilter = 1024
	// maxOperations is the maximum number of operations of a patch.
	maxOperations = 1000

	usersEndpoint, groupsEndpoint, bulkPath = "/Users", "/Groups", "/v2/Bulk"
)

// Directory is the part of catalog.Service that a Handler needs.
type Directory interface {
	Refresh(ctx context.Context) error
	Catalog() *catalog.Catalog
	Stored() []catalog.Stored
	Provisioned(ref catalog.Ref) (catalog.Stored, bool)
	Provision(ctx context.Context, a catalog.Actor, rec catalog.Record, version int64) (catalog.Stored, error)
	Deprovision(ctx context.Context, a catalog.Actor, ref catalog.Ref, version int64) error
}

// Config configures a handler. All fields are required.
type Config struct {
	Directory Directory
	// Actor returns the caller of a request, who was authenticated before.
	Actor func(*http.Request) catalog.Actor
	// BaseURL is the address of the service, such as https://acp.example.com/scim/v2.
	BaseURL string
	Log     *slog.Logger
}

// allowTextValues makes the library accept the texts "True" and "False" as values of boolean attributes, which Entra ID sends. The setting is
// global to the library, so it is changed once, before the first handler is used.
var allowTextValues = sync.OnceFunc(func() { schema.SetAllowStringValues(true) })

// New returns a handler of the paths below /v2.
func New(c Config) (http.Handler, error) {
	allowTextValues()
	types := []scim.ResourceType{
		{
			ID: optional.NewString("User"), Name: "User", Endpoint: usersEndpoint, Schema: schema.CoreUserSchema(),
			Description:      optional.NewString("A person of the catalog"),
			SchemaExtensions: []scim.SchemaExtension{{Schema: schema.ExtensionEnterpriseUser()}},
			Handler:          &handler{Config: c, kind: userKind},
		},
		{
			ID: optional.NewString("Group"), Name: "Group", Endpoint: groupsEndpoint, Schema: schema.CoreGroupSchema(),
			Description: optional.NewString("A group of people of the catalog"),
			Handler:     &handler{Config: c, kind: groupKind},
		},
	}
	server, err := scim.NewServer(&scim.ServerArgs{
		ServiceProviderConfig: &scim.ServiceProviderConfig{
			MaxResults: maxPage, SupportFiltering: true, SupportPatch: true,
			AuthenticationSchemes: []scim.AuthenticationScheme{{
				Type: scim.AuthenticationTypeOauthBearerToken, Name: "Machine token", Primary: true,
				Description: "A machine token of the portal with the scope catalog:write, of a security administrator",
			}},
		},
		ResourceTypes: types,
	}, scim.WithBaseURL(c.BaseURL))
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refused := readBody(r)
		if r.URL.Path == bulkPath {
			refused = &scimerrors.ScimError{Status: http.StatusNotImplemented, Detail: "Bulk requests are not supported."}
		}
		if refused != nil {
			body, err := refused.MarshalJSON()
			if err != nil {
				c.Log.Error("a SCIM error cannot be written", "error", err)
			}
			w.Header().Set("Content-Type", "application/scim+json")
			w.WriteHeader(refused.Status)
			_, _ = w.Write(body) // the client may have gone
			return
		}
		server.ServeHTTP(w, r)
	}), nil
}

// attributes contains the attributes of a resource. Names of attributes are case-insensitive.
type attributes = scim.ResourceAttributes

// kind is how one kind of entities is mapped.
type kind struct {
	kind catalog.Kind
	// attributes returns the attributes of an entity.
	attributes func(h *handler, x catalog.Stored) attributes
	// record returns the record that attributes describe. id is "" for a new one.
	record func(h *handler, id string, in attributes) (catalog.Record, error)
}

// handler implements scim.ResourceHandler and scim.ResourceSearcher for one kind of entities.
type handler struct {
	Config
	kind kind
}

var (
	_ scim.ResourceHandler  = (*handler)(nil)
	_ scim.ResourceSearcher = (*handler)(nil)
)

func (h *handler) ref(id string) catalog.Ref { return catalog.Ref{Kind: h.kind.kind, ID: id} }

// read returns the present version of a resource.
func (h *handler) read(r *http.Request, id string) (catalog.Stored, error) {
	if err := h.Directory.Refresh(r.Context()); err != nil {
		return catalog.Stored{}, h.failed(r, err)
	}
	x, ok := h.Directory.Provisioned(h.ref(id))
	if !ok {
		return x, scimerrors.ScimErrorResourceNotFound(id)
	}
	return x, nil
}

// readToChange is read, and checks the version that the client requires.
func (h *handler) readToChange(r *http.Request, id string) (catalog.Stored, error) {
	x, err := h.read(r, id)
	if err != nil {
		return x, err
	}
	if want := r.Header.Get("If-Match"); want != "" && want != "*" && want != version(x) {
		return x, scimerrors.ScimError{Status: http.StatusPreconditionFailed, Detail: "The resource has changed since it was read: read it again."}
	}
	return x, nil
}

func version(x catalog.Stored) string { return `W/"` + strconv.FormatInt(x.Version, 10) + `"` }

func (h *handler) resource(x catalog.Stored) scim.Resource {
	out := scim.Resource{ID: x.ID, Attributes: h.kind.attributes(h, x), Meta: scim.Meta{Version: version(x)}}
	if x.ExternalID != "" {
		out.ExternalID = optional.NewString(x.ExternalID)
	}
	return out
}

// Create implements scim.ResourceHandler.
func (h *handler) Create(r *http.Request, in attributes) (scim.Resource, error) {
	return h.write(r, "", in, 0)
}

// Replace implements scim.ResourceHandler.
func (h *handler) Replace(r *http.Request, id string, in attributes) (scim.Resource, error) {
	x, err := h.readToChange(r, id)
	if err != nil {
		return scim.Resource{}, err
	}
	return h.write(r, id, in, x.Version)
}

// Patch implements scim.ResourceHandler.
func (h *handler) Patch(r *http.Request, id string, operations []scim.PatchOperation) (scim.Resource, error) {
	x, err := h.readToChange(r, id)
	if err != nil {
		return scim.Resource{}, err
	}
	in := h.kind.attributes(h, x)
	if x.ExternalID != "" {
		in[schema.CommonAttributeExternalID] = x.ExternalID
	}
	for _, o := range operations {
		if err := apply(in, o); err != nil {
			return scim.Resource{}, err
		}
	}
	return h.write(r, id, in, x.Version)
}

// write stores what attributes describe.
func (h *handler) write(r *http.Request, id string, in attributes, version int64) (scim.Resource, error) {
	rec, err := h.kind.record(h, id, in)
	if err != nil {
		return scim.Resource{}, err
	}
	rec.ExternalID = text(in, schema.CommonAttributeExternalID)
	x, err := h.Directory.Provision(r.Context(), h.Actor(r), rec, version)
	if err != nil {
		return scim.Resource{}, h.failed(r, err)
	}
	return h.resource(x), nil
}

// Delete implements scim.ResourceHandler.
func (h *handler) Delete(r *http.Request, id string) error {
	x, err := h.readToChange(r, id)
	if err != nil {
		return err
	}
	if err := h.Directory.Deprovision(r.Context(), h.Actor(r), x.Ref(), x.Version); err != nil {
		return h.failed(r, err)
	}
	return nil
}

// Get implements scim.ResourceHandler.
func (h *handler) Get(r *http.Request, id string) (scim.Resource, error) {
	x, err := h.read(r, id)
	if err != nil {
		return scim.Resource{}, err
	}
	return h.resource(x), nil
}

// GetAll implements scim.ResourceHandler.
func (h *handler) GetAll(r *http.Request, p scim.ListRequestParams) (scim.Page, error) {
	var passes func(map[string]any) error
	if p.FilterValidator != nil {
		passes = p.FilterValidator.PassesFilter
	}
	return h.page(r, passes, p.StartIndex, p.Count)
}

// Search implements scim.ResourceSearcher.
func (h *handler) Search(r *http.Request, p scim.SearchParams) (scim.Page, error) {
	var passes func(map[string]any) error
	if p.FilterValidator != nil {
		passes = p.FilterValidator.PassesFilter
	}
	return h.page(r, passes, p.StartIndex, p.Count)
}

// page returns the resources from a 1-based index on that pass a filter, which may be nil.
func (h *handler) page(r *http.Request, passes func(map[string]any) error, from, count int) (scim.Page, error) {
	if err := h.Directory.Refresh(r.Context()); err != nil {
		return scim.Page{}, h.failed(r, err)
	}
	out := scim.Page{Resources: []scim.Resource{}}
	for _, x := range h.Directory.Stored() {
		if x.Kind != h.kind.kind {
			continue
		}
		if _, ok := h.Directory.Provisioned(x.Ref()); !ok {
			continue
		}
		if passes == nil && (out.TotalResults+1 < from || len(out.Resources) >= count) {
			out.TotalResults++ // it is on another page
			continue
		}
		res := h.resource(x)
		if passes != nil && passes(filtered(res)) != nil {
			continue
		}
		if out.TotalResults++; out.TotalResults >= from && len(out.Resources) < count {
			out.Resources = append(out.Resources, res)
		}
	}
	return out, nil
}

// filtered returns the attributes of a resource that filters may name.
func filtered(r scim.Resource) map[string]any {
	out := maps.Clone(map[string]any(r.Attributes))
	out[schema.CommonAttributeID] = r.ID
	if r.ExternalID.Present() {
		out[schema.CommonAttributeExternalID] = r.ExternalID.Value()
	}
	return out
}

// failed converts an error of the catalog. Details of other errors are only logged.
func (h *handler) failed(r *http.Request, err error) error {
	var field *catalog.FieldError
	if errors.As(err, &field) {
		return scimerrors.ScimError{Status: http.StatusBadRequest, ScimType: scimerrors.ScimTypeInvalidValue, Detail: field.Message.Text}
	}
	var refusal *catalog.Error
	if !errors.As(err, &refusal) {
		h.Log.Error("a SCIM request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		return scimerrors.ScimError{Status: http.StatusInternalServerError, Detail: "The catalog cannot be read or changed now: try again later."}
	}
	out := scimerrors.ScimError{Status: http.StatusInternalServerError, Detail: refusal.Message.Text}
	switch {
	case errors.Is(err, catalog.ErrForbidden):
		out.Status = http.StatusForbidden
	case errors.Is(err, catalog.ErrNotFound):
		out.Status = http.StatusNotFound
	case errors.Is(err, catalog.ErrConflict), errors.Is(err, catalog.ErrChanged):
		out.Status = http.StatusConflict
		if r.Method == http.MethodPost {
			out.ScimType = scimerrors.ScimTypeUniqueness
		}
	}
	return out
}

func invalidValue(detail string) error {
	return scimerrors.ScimError{Status: http.StatusBadRequest, ScimType: scimerrors.ScimTypeInvalidValue, Detail: detail}
}

// get returns the attribute with a name in any case, or nil.
func get(in map[string]any, name string) any {
	if v, ok := in[name]; ok {
		return v
	}
	return in[key(in, name)]
}

// key returns the name with which a map has an attribute, or the given name if it does not have it.
func key(in map[string]any, name string) string {
	for _, k := range slices.Sorted(maps.Keys(in)) {
		if strings.EqualFold(k, name) {
			return k
		}
	}
	return name
}

// text returns a string attribute, or "".
func text(in map[string]any, name string) string {
	s, _ := get(in, name).(string)
	return s
}
