package governanceapi

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	listAccess = "access"
	// maxLinks is the maximum number of links in a graph. More cannot be read by people and would need many megabytes.
	maxLinks = 20_000
	// maxAccessText is the maximum length of the text of a filter, in bytes.
	maxAccessText = 512
)

// edges returns the edges that match a filter, in order. cut reports whether there are too many to evaluate all of them.
func (a *API) edges(ctx context.Context, p openapi.GetAccessGraphParams) (edges []governance.Edge, cut bool, err error) {
	if err := core.RequireGovernor(core.Caller(ctx)); err != nil {
		return nil, false, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, false, err
	}
	f, err := a.accessFilter(p)
	if err != nil {
		return nil, false, err
	}
	edges, cut = governance.Edges(snap, a.Now(), f.matches)
	return edges, cut, core.RequestContext(ctx).Err()
}

// accessFilter is the filter of the access map.
type accessFilter struct {
	c                 *catalog.Catalog
	subject, resource string
	team              *catalog.Owner
	class, effect     string
	modes             []openapi.Mode
	origins           []openapi.PolicyOriginKind
	broad             bool
	before            time.Time // zero selects any end
	part              string
	policies          map[string]governance.OriginKind
	texts             map[string]string
}

func (a *API) accessFilter(p openapi.GetAccessGraphParams) (*accessFilter, error) {
	f := &accessFilter{
		c:       a.Catalog(),
		class:   core.Value(p.Class),
		effect:  string(core.Value(p.Effect)),
		modes:   core.Value(p.Mode),
		origins: core.Value(p.Origin),
		broad:   core.Value(p.Broad),
		part:    strings.ToLower(core.Value(p.Q)),
		texts:   map[string]string{},
	}
	for name, text := range map[string]string{
		"subject": core.Value(p.Subject), "resource": core.Value(p.Resource), "class": f.class, "team": core.Value(p.Team), "q": f.part,
	} {
		if len(text) > maxAccessText {
			return nil, core.InvalidParameter(name, message.FieldTooLong())
		}
	}
	if p.Effect != nil && !p.Effect.Valid() {
		return nil, core.InvalidParameter("effect", message.FieldOneOf([]string{"Allow", "Deny"}))
	}
	for _, m := range f.modes {
		if !m.Valid() {
			return nil, core.InvalidParameter("mode", message.FieldOneOf([]string{"Observe", "Audit", "Enforce"}))
		}
	}
	for _, o := range f.origins {
		if !o.Valid() {
			return nil, core.InvalidParameter("origin", message.FieldOneOf([]string{"portal", "gitops", "kubectl", "other"}))
		}
	}
	if p.ExpiresWithinDays != nil {
		if *p.ExpiresWithinDays < 1 || *p.ExpiresWithinDays > 366 {
			return nil, core.InvalidParameter("expiresWithinDays", message.FieldRange(1, 366))
		}
		f.before = a.Now().Add(time.Duration(*p.ExpiresWithinDays) * 24 * time.Hour)
	}
	f.subject = nameOf(core.Value(p.Subject), f.c.Application)
	f.resource = nameOf(core.Value(p.Resource), f.c.Resource)
	if t := core.Value(p.Team); t != "" {
		kind, id, ok := strings.Cut(t, ":")
		if !ok || id == "" || kind != string(catalog.OwnerPerson) && kind != string(catalog.OwnerGroup) {
			return nil, core.InvalidParameter("team", message.FieldTeam())
		}
		f.team = &catalog.Owner{Kind: catalog.OwnerKind(kind), ID: id}
	}
	if len(f.origins) > 0 {
		in, _ := a.Host.Input()
		f.policies = make(map[string]governance.OriginKind, len(in.Policies))
		for _, p := range in.Policies {
			f.policies[p.Name] = governance.OriginOf(p).Kind
		}
	}
	return f, nil
}

// nameOf returns the resource name of a catalog id, or the text itself if there is no such id.
func nameOf(text string, find func(string) (catalog.Entity, bool)) string {
	if e, ok := find(text); ok {
		return e.Name
	}
	return text
}

// matches reports whether an edge matches the filter.
func (f *accessFilter) matches(e *governance.Edge) bool {
	switch {
	case f.subject != "" && !matchesEnd(e.Subject, f.subject), f.resource != "" && !matchesEnd(e.Resource, f.resource), f.class != "" && e.Class != f.class,
		f.effect != "" && string(e.Effect) != f.effect, f.broad && !e.Broad(), len(f.modes) > 0 && !slices.Contains(f.modes, openapi.Mode(e.Mode)),
		len(f.origins) > 0 && !slices.Contains(f.origins, openapi.PolicyOriginKind(f.policies[e.Ref.Policy])),
		!f.before.IsZero() && (e.NotAfter.IsZero() || e.NotAfter.After(f.before)),
		f.team != nil && !f.owned(e.Subject) && !f.owned(e.Resource):
		return false
	}
	return f.part == "" || strings.Contains(f.text(e.Subject), f.part) || strings.Contains(f.text(e.Resource), f.part) ||
		strings.Contains(e.Ref.Policy+"/"+e.Ref.SID, f.part) ||
		slices.ContainsFunc(e.Actions, func(x string) bool { return strings.Contains(x, f.part) })
}

// matchesEnd reports whether an end as written equals or covers the name in the filter.
func matchesEnd(written, name string) bool {
	return written == name || governance.Covers(written, name)
}

func (f *accessFilter) owned(name string) bool {
	e, ok := f.c.ByName(name)
	return ok && slices.Contains(e.Owners, *f.team)
}

// text returns the text of an end that is searched for words.
func (f *accessFilter) text(name string) string {
	text, ok := f.texts[name]
	if !ok {
		text = strings.ToLower(name)
		if e, known := f.c.ByName(name); known {
			text += "\n" + strings.ToLower(e.Title+"\n"+e.ID)
		}
		f.texts[name] = text
	}
	return text
}

// edgeKeys contains the columns by which edges are sorted, apart from the subject, with which their key begins.
var edgeKeys = map[string]func(governance.Edge) string{
	"resource": func(e governance.Edge) string { return e.Resource },
	"policy":   func(e governance.Edge) string { return e.Ref.Policy + "/" + e.Ref.SID },
	"until": func(e governance.Edge) string {
		if e.NotAfter.IsZero() {
			return core.NumberKey(math.MaxInt64)
		}
		return core.NumberKey(e.NotAfter.Unix())
	},
}

// ListAccess implements openapi.StrictServerInterface.
func (a *API) ListAccess(ctx context.Context, r openapi.ListAccessRequestObject) (openapi.ListAccessResponseObject, error) {
	p := r.Params
	sort, err := core.ParseSort(p.Sort, "subject", "-subject", "resource", "-resource", "policy", "-policy", "until", "-until", "used", "-used")
	if err != nil {
		return nil, err
	}
	edges, _, err := a.edges(
		ctx,
		openapi.GetAccessGraphParams{Subject: p.Subject, Resource: p.Resource, Team: p.Team, Class: p.Class, Mode: p.Mode, Effect: p.Effect,
			Origin: p.Origin, Broad: p.Broad, ExpiresWithinDays: p.ExpiresWithinDays, Q: p.Q},
	)
	if err != nil {
		return nil, err
	}
	rows := core.Rows[governance.Edge]{All: edges, ID: func(e governance.Edge) string { return e.Key() }, Keys: edgeKeys}
	byUse := strings.TrimPrefix(sort.String(), "-") == "used"
	var used edgeUses
	if byUse {
		if core.Value(p.Subject) == "" && core.Value(p.Resource) == "" || len(edges) > maxUses {
			return nil, core.InvalidParameter("sort", message.FieldSortNeedsName())
		}
		if used, err = a.lastUses(ctx, edges); err != nil {
			return nil, err
		}
		rows.Keys = map[string]func(governance.Edge) string{"used": used.key}
	}
	shown, next, err := core.SortedPage(listAccess, sort, rows, p.Cursor, p.Limit)
	if err != nil {
		return nil, err
	}
	if !byUse {
		if used, err = a.lastUses(ctx, shown); err != nil {
			return nil, err
		}
	}
	out := openapi.ListAccess200JSONResponse{Total: len(edges), NextCursor: next, FlowsAvailable: used.last != nil}
	out.Items = a.edgeViews(shown, used)
	return out, nil
}

// edgeUses contains the tickets and the last uses of edges.
type edgeUses struct {
	from views.Origins
	last *views.LastUses // nil if the flows could not be read
}

// key returns the last use of an edge as a key of a sorted list.
func (u edgeUses) key(e governance.Edge) string {
	if _, at := u.last.Of(&e); at != nil {
		return core.NumberKey(at.Unix())
	}
	return core.NumberKey(0)
}

// lastUses reads the tickets and the last uses of edges.
func (a *API) lastUses(ctx context.Context, edges []governance.Edge) (edgeUses, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return edgeUses{}, err
	}
	grants := make([]policy.Grant, len(edges))
	for i := range edges {
		grants[i] = edges[i].Grant
	}
	from, err := a.OriginsOf(ctx, grants)
	if err != nil {
		return edgeUses{}, err
	}
	return edgeUses{from, a.LastUses(ctx, views.UsesQuery{Snapshot: snap, Edges: edges, Origins: from, Window: views.MaxWindow})}, nil
}

// edgeViews returns the views of edges, each with its ticket and its last use.
func (a *API) edgeViews(edges []governance.Edge, used edgeUses) []openapi.AccessEdge {
	c := a.Catalog()
	written := map[string]openapi.PolicyOrigin{}
	out := make([]openapi.AccessEdge, 0, len(edges))
	for i := range edges {
		e := &edges[i]
		origin, ok := written[e.Ref.Policy]
		if !ok {
			origin = a.originOfPolicy(e.Ref.Policy)
			written[e.Ref.Policy] = origin
		}
		x := openapi.AccessEdge{
			Subject:      views.Ref(c, e.Subject),
			SubjectKind:  openapi.SubjectKind(e.SubjectKind),
			SubjectTeams: teamsOf(c, e.Subject),
			Resource:     views.Ref(c, e.Resource),
			ResourceTeams: teamsOf(
				c,
				e.Resource,
			),
			Wildcard:  e.Wildcard,
			Class:     core.Optional(e.Class),
			Effect:    openapi.StatementEffect(e.Effect),
			Actions:   append([]string{}, e.Actions...),
			Policy:    e.Ref.Policy,
			Sid:       e.Ref.SID,
			Origin:    origin,
			Counting:  e.Counting,
			NotBefore: views.Time(e.NotBefore),
			NotAfter:  views.Time(e.NotAfter),
			Hours:     views.Hours(e.Hours),
		}
		if e.Mode != "" {
			x.Mode = new(openapi.Mode(e.Mode))
		}
		x.Ticket, x.TicketVisible, x.Reason = used.from.Reason(c, e.Grant)
		x.Use, x.LastUsed = used.last.Of(e)
		out = append(out, x)
	}
	return out
}

func teamsOf(c *catalog.Catalog, name string) []openapi.OwnerRef {
	if e, ok := c.ByName(name); ok {
		return views.Owners(c, e)
	}
	return []openapi.OwnerRef{}
}

func (a *API) originOfPolicy(name string) openapi.PolicyOrigin {
	p, ok := a.Host.Cached(name)
	if !ok {
		return openapi.PolicyOrigin{Kind: openapi.PolicyOriginKindOther}
	}
	return originView(governance.OriginOf(p))
}

func originView(o governance.Origin) openapi.PolicyOrigin {
	return openapi.PolicyOrigin{Kind: openapi.PolicyOriginKind(o.Kind), Manager: core.Optional(o.Manager), At: views.Time(o.At)}
}
