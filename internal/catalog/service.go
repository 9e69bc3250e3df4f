package catalog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Actor is the person who requests a change.
type Actor struct {
	ID       string
	Security bool
	// Delegate decides about changes of single entities by an actor who is not a security administrator; nil if the actor may make none.
	Delegate Delegate
}

// Delegate decides whether an actor may make a change of an entity by the catalog of the same revision, and returns the organization for
// which they make it. Before is nil if the entity is new, and after is nil if it is retired. It returns an *Error with ErrForbidden if
// the actor may not make the change.
type Delegate func(c *Catalog, before, after *Record) (organization string, err error)

// Config configures a Service.
type Config struct {
	Store Store
	// Sources are synced periodically.
	Sources []Source
	// Grants returns the grants in force from or to a resource name. Nil means that they are not known.
	Grants func(name string) []Grant
	Now    func() time.Time
	Log    *slog.Logger
}

// Service holds the catalog's current view, changes it, and syncs it with its sources. It is safe for concurrent use.
type Service struct {
	Config
	view    atomic.Pointer[view]
	refresh sync.Mutex // one reload at a time
	syncing sync.Mutex // one sync at a time
	last    map[string]lastSync
}

// view is everything that is derived from one revision.
type view struct {
	*state
	catalog *Catalog
	index   *Index
}

// PreviewLifetime is how long a preview can be applied.
const PreviewLifetime = time.Hour

// NewService returns a Service that has read the catalog from its store.
func NewService(ctx context.Context, c Config) (*Service, error) {
	s := &Service{Config: c, last: map[string]lastSync{}}
	names := map[string]bool{Portal: true, SCIM: true}
	for _, src := range c.Sources {
		if name := src.Name(); names[name] || !idPattern.MatchString(name) {
			return nil, fmt.Errorf(
				"catalog source %q: give each source a name of its own, of letters, digits, '-', '_' and '.', and none %q or %q",
				name,
				Portal,
				SCIM,
			)
		}
		names[src.Name()] = true
	}
	if err := s.reload(ctx, -1); err != nil {
		return nil, err
	}
	return s, nil
}

// Catalog returns the current catalog.
func (s *Service) Catalog() *Catalog { return s.view.Load().catalog }

// Index returns the search index of the current catalog.
func (s *Service) Index() *Index { return s.view.Load().index }

// Revision returns the revision of the current catalog.
func (s *Service) Revision() int64 { return s.view.Load().revision }

// Refresh loads what other replicas have changed.
func (s *Service) Refresh(ctx context.Context) error {
	rev, err := s.Store.Revision(ctx)
	if err != nil {
		return fmt.Errorf("read the catalog's revision: %w", err)
	}
	if rev == s.Revision() {
		return nil
	}
	return s.reload(ctx, s.Revision())
}

func (s *Service) reload(ctx context.Context, from int64) error {
	s.refresh.Lock()
	defer s.refresh.Unlock()
	if v := s.view.Load(); v != nil && v.revision != from {
		return nil // Another goroutine has reloaded it meanwhile.
	}
	stored, rev, err := s.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("read the catalog: %w", err)
	}
	s.publish(newState(rev, stored))
	return nil
}

// publish replaces the view, unless the current one is newer.
func (s *Service) publish(st *state) {
	c := Build(st.live())
	v := &view{state: st, catalog: c, index: NewIndex(c)}
	for {
		old := s.view.Load()
		if old != nil && old.revision >= st.revision && st.revision != 0 {
			return
		}
		if s.view.CompareAndSwap(old, v) {
			return
		}
	}
}

// write changes the store and publishes the result.
func (s *Service) write(ctx context.Context, from *state, w Write) error {
	rev, err := s.Store.Write(ctx, from.revision, w)
	if errors.Is(err, ErrChanged) {
		if err := s.Refresh(ctx); err != nil {
			return err
		}
		return changedSince()
	}
	if err != nil {
		return fmt.Errorf("write the catalog: %w", err)
	}
	s.publish(from.with(w, rev))
	return nil
}

// Preview returns what the content of a source would change, and stores it under a token for Apply. Only security administrators may
// call it.
func (s *Service) Preview(ctx context.Context, a Actor, source string, r SourceContent) (Diff, string, error) {
	if err := s.authorize(a); err != nil {
		return Diff{}, "", err
	}
	if !idPattern.MatchString(source) || source == Portal || source == SCIM {
		return Diff{}, "", fieldError("source", message.CatalogSourceInvalid(source, Portal+", "+SCIM))
	}
	if len(r.Records) > MaxRecords {
		return Diff{}, "", fieldError("entities", message.CatalogTooManyEntities(len(r.Records), MaxRecords))
	}
	token := rand.Text()
	d, err := s.preview(ctx, token, a.ID, source, r)
	return d, token, err
}

func (s *Service) preview(ctx context.Context, token, actor, source string, r SourceContent) (Diff, error) {
	if err := s.Refresh(ctx); err != nil {
		return Diff{}, err
	}
	v := s.view.Load()
	d, w := v.sync(source, r, s.Now())
	s.explain(v, &d, w)
	p := Preview{Token: token, Source: source, Actor: actor, Revision: v.revision, Content: r, Created: s.Now()}
	if err := s.Store.KeepPreview(ctx, p, s.Now().Add(-PreviewLifetime)); err != nil {
		return Diff{}, fmt.Errorf("keep the preview: %w", err)
	}
	return d, nil
}

// explain completes a difference: what depends on entities that are gone, and which entities lose their last owner.
func (s *Service) explain(v *view, d *Diff, w Write) {
	after := v.with(w, v.revision)
	refs := make([]Ref, 0, len(d.Gone))
	for _, c := range d.Gone {
		refs = append(refs, c.Ref)
	}
	left := after.dependents(refs)
	for i := range d.Gone {
		d.Gone[i].Dependents = s.addGrants(left[d.Gone[i].Ref], v.stored[d.Gone[i].Ref])
	}
	had := orphans(v.catalog)
	for _, ref := range orphans(Build(after.live())) {
		if !slices.Contains(had, ref) {
			d.Orphans = append(d.Orphans, ref)
		}
	}
}

func (s *Service) addGrants(l *Dependents, x Stored) *Dependents {
	if s.Grants != nil && x.Name != "" {
		l.Grants = s.Grants(x.Name)
	}
	return l
}

// ShowPreview returns a stored preview, for the person who decides about one that a sync stored.
func (s *Service) ShowPreview(ctx context.Context, a Actor, token string) (Diff, error) {
	p, v, err := s.loadPreview(ctx, a, token)
	if err != nil {
		return Diff{}, err
	}
	d, w := v.sync(p.Source, p.Content, s.Now())
	s.explain(v, &d, w)
	return d, nil
}

// ApplyOptions are options of Apply.
type ApplyOptions struct {
	// RemoveGone deletes the entities that are gone at once, because the actor has seen what depends on them.
	RemoveGone bool
	// Reason is written to the ledger.
	Reason string
}

// Apply makes the changes that a preview showed. Only the person to whom it was shown may apply it; a preview that a
// sync stored may be applied by any security administrator. It returns ErrChanged if the catalog changed since the
// preview.
func (s *Service) Apply(ctx context.Context, a Actor, token string, o ApplyOptions) (Diff, error) {
	p, v, err := s.loadPreview(ctx, a, token)
	if err != nil {
		return Diff{}, err
	}
	d, w := v.sync(p.Source, p.Content, s.Now())
	s.explain(v, &d, w)
	if p.Actor != "" { // The content of a configured source is not the actor's own.
		if err := refuseSelfGrant(v, v.with(w, v.revision), a); err != nil {
			return Diff{}, err
		}
	}
	w.Preview = token
	if err := text(o.Reason, maxLong, true); err != nil {
		return Diff{}, fieldError("reason", message.CatalogReasonInvalid(message.Of(err)))
	}
	w.Ledger = v.lines(a.ID, d, w, s.Now())
	if o.Reason != "" {
		w.Ledger[0].Details["reason"] = o.Reason
	}
	if o.RemoveGone {
		for _, c := range d.Gone {
			w.Remove = append(w.Remove, c.Ref)
		}
		lines, err := v.with(Write{Put: w.Put}, v.revision).removed(a.ID, w.Remove, s.Now())
		if err != nil {
			return Diff{}, err
		}
		w.Ledger = append(w.Ledger, lines...)
	}
	if err := s.write(ctx, v.state, w); err != nil {
		return Diff{}, err
	}
	return d, nil
}

func (s *Service) loadPreview(ctx context.Context, a Actor, token string) (Preview, *view, error) {
	if err := s.authorize(a); err != nil {
		return Preview{}, nil, err
	}
	p, err := s.Store.Preview(ctx, token)
	if err == nil && (p.Actor != "" && p.Actor != a.ID || s.Now().Sub(p.Created) > PreviewLifetime) {
		err = ErrNotFound
	}
	if errors.Is(err, ErrNotFound) {
		return p, nil, refusal(ErrNotFound, message.CatalogPreviewUnknown())
	}
	if err != nil {
		return p, nil, fmt.Errorf("read the preview: %w", err)
	}
	if err := s.Refresh(ctx); err != nil {
		return p, nil, err
	}
	v := s.view.Load()
	if v.revision != p.Revision {
		return p, nil, refusal(ErrChanged, message.CatalogPreviewOutdated())
	}
	return p, v, nil
}

func changedSince() error {
	return refusal(ErrChanged, message.CatalogChangedMeanwhile())
}

func (s *Service) authorize(a Actor) error {
	if a.ID == "" || !a.Security {
		return refusal(ErrForbidden, message.CatalogSecurityOnly())
	}
	return nil
}

// refuseSelfGrant refuses a change by which the actor could decide more than before. It permits everything on an empty
// catalog, because otherwise no one could begin.
func refuseSelfGrant(v *view, after *state, a Actor) error {
	if v.catalog.Empty() {
		return nil
	}
	if got := gainedPowers(v.catalog, Build(after.live()), a.ID); len(got) > 0 {
		return refusal(ErrForbidden, message.CatalogAuthorityToOneself(abbreviate(got)))
	}
	return nil
}

// abbreviate joins the beginning of a list.
func abbreviate(list []string) string {
	const most = 5
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
