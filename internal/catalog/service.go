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
)

// Actor is who asks for a change.
type Actor struct {
	ID       string
	Security bool
}

// Config of a Service.
type Config struct {
	Store Store
	// Sources that are synced by themselves.
	Sources []Source
	// Grants in force from or to a resource name; nil: they are not known.
	Grants func(name string) []Grant
	Now    func() time.Time
	Log    *slog.Logger
}

// Service keeps the catalog's view, changes it, and syncs it with its sources. Safe for concurrent use.
type Service struct {
	Config
	view    atomic.Pointer[view]
	refresh sync.Mutex // one reload at a time
	syncing sync.Mutex // one sync at a time
	last    map[string]lastSync
}

// view is everything that is made of one revision.
type view struct {
	*state
	catalog *Catalog
	index   *Index
}

// PreviewFor is how long a preview can be applied.
const PreviewFor = time.Hour

// NewService reads the catalog from its store.
func NewService(ctx context.Context, c Config) (*Service, error) {
	s := &Service{Config: c, last: map[string]lastSync{}}
	names := map[string]bool{Portal: true}
	for _, src := range c.Sources {
		if name := src.Name(); names[name] || !idPattern.MatchString(name) {
			return nil, fmt.Errorf("catalog source %q: give each source a name of its own, of letters, digits, '-', '_' and '.', and none %q", name, Portal)
		}
		names[src.Name()] = true
	}
	if err := s.reload(ctx, -1); err != nil {
		return nil, err
	}
	return s, nil
}

// Catalog as it is now.
func (s *Service) Catalog() *Catalog { return s.view.Load().catalog }

// Index to search the catalog as it is now.
func (s *Service) Index() *Index { return s.view.Load().index }

// Revision of the catalog as it is now.
func (s *Service) Revision() int64 { return s.view.Load().revision }

// Refresh takes over what other replicas changed.
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
		return nil // somebody else was faster
	}
	stored, rev, err := s.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("read the catalog: %w", err)
	}
	s.show(newState(rev, stored))
	return nil
}

// show swaps the view, never for an older one.
func (s *Service) show(st *state) {
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

// write changes the store and shows the change.
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
	s.show(from.with(w, rev))
	return nil
}

// Preview tells what a reading would change, and keeps it under a token for Apply. Security administrators only.
func (s *Service) Preview(ctx context.Context, a Actor, source string, r Reading) (Diff, string, error) {
	if err := s.may(a); err != nil {
		return Diff{}, "", err
	}
	if !idPattern.MatchString(source) || source == Portal {
		return Diff{}, "", fieldf("source", "source %q: use letters, digits, '-', '_' and '.', and not %q", source, Portal)
	}
	if len(r.Records) > MaxRecords {
		return Diff{}, "", fieldf("entities", "%d entities are too many: at most %d", len(r.Records), MaxRecords)
	}
	token := rand.Text()
	d, err := s.preview(ctx, token, a.ID, source, r)
	return d, token, err
}

func (s *Service) preview(ctx context.Context, token, actor, source string, r Reading) (Diff, error) {
	if err := s.Refresh(ctx); err != nil {
		return Diff{}, err
	}
	v := s.view.Load()
	d, w := v.sync(source, r, s.Now())
	s.explain(v, &d, w)
	p := Preview{Token: token, Source: source, Actor: actor, Revision: v.revision, Reading: r, Created: s.Now()}
	if err := s.Store.KeepPreview(ctx, p, s.Now().Add(-PreviewFor)); err != nil {
		return Diff{}, fmt.Errorf("keep the preview: %w", err)
	}
	return d, nil
}

// explain adds what goes with a difference: what gone entities leave behind, and who is left without an owner.
func (s *Service) explain(v *view, d *Diff, w Write) {
	after := v.with(w, v.revision)
	refs := make([]Ref, 0, len(d.Gone))
	for _, c := range d.Gone {
		refs = append(refs, c.Ref)
	}
	left := after.leaves(refs)
	for i := range d.Gone {
		d.Gone[i].Leaves = s.granted(left[d.Gone[i].Ref], v.stored[d.Gone[i].Ref])
	}
	had := orphans(v.catalog)
	for _, ref := range orphans(Build(after.live())) {
		if !slices.Contains(had, ref) {
			d.Orphans = append(d.Orphans, ref)
		}
	}
}

func (s *Service) granted(l *Leaves, x Stored) *Leaves {
	if s.Grants != nil && x.Name != "" {
		l.Grants = s.Grants(x.Name)
	}
	return l
}

// Show gives a preview again, for who decides on one that a sync left.
func (s *Service) Show(ctx context.Context, a Actor, token string) (Diff, error) {
	p, v, err := s.previewed(ctx, a, token)
	if err != nil {
		return Diff{}, err
	}
	d, w := v.sync(p.Source, p.Reading, s.Now())
	s.explain(v, &d, w)
	return d, nil
}

// ApplyOptions of Apply.
type ApplyOptions struct {
	// RemoveGone deletes what is gone at once, for who has seen what it leaves behind.
	RemoveGone bool
	// Reason for the ledger.
	Reason string
}

// Apply does what a preview showed, for the person to whom it was shown; what a sync left waiting, any security
// administrator may apply. ErrChanged: the catalog is not the one that the preview was made for.
func (s *Service) Apply(ctx context.Context, a Actor, token string, o ApplyOptions) (Diff, error) {
	p, v, err := s.previewed(ctx, a, token)
	if err != nil {
		return Diff{}, err
	}
	d, w := v.sync(p.Source, p.Reading, s.Now())
	s.explain(v, &d, w)
	if p.Actor != "" { // what a configured source says is nobody's own word
		if err := selfless(v, v.with(w, v.revision), a); err != nil {
			return Diff{}, err
		}
	}
	w.Preview = token
	if err := text(o.Reason, maxLong, true); err != nil {
		return Diff{}, fieldf("reason", "the reason: %v", err)
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

func (s *Service) previewed(ctx context.Context, a Actor, token string) (Preview, *view, error) {
	if err := s.may(a); err != nil {
		return Preview{}, nil, err
	}
	p, err := s.Store.Preview(ctx, token)
	if err == nil && (p.Actor != "" && p.Actor != a.ID || s.Now().Sub(p.Created) > PreviewFor) {
		err = ErrNotFound
	}
	if errors.Is(err, ErrNotFound) {
		return p, nil, refusal(ErrNotFound, "The preview is not known, or too old: make a new one.")
	}
	if err != nil {
		return p, nil, fmt.Errorf("read the preview: %w", err)
	}
	if err := s.Refresh(ctx); err != nil {
		return p, nil, err
	}
	v := s.view.Load()
	if v.revision != p.Revision {
		return p, nil, refusal(ErrChanged, "The catalog has changed since the preview: make a new one.")
	}
	return p, v, nil
}

func changedSince() error {
	return refusal(ErrChanged, "Somebody else has changed the catalog meanwhile: look at it again.")
}

func (s *Service) may(a Actor) error {
	if a.ID == "" || !a.Security {
		return refusal(ErrForbidden, "Only security administrators change the catalog.")
	}
	return nil
}

// selfless refuses a change by which the actor could decide more than before. On an empty catalog nobody could begin
// otherwise.
func selfless(v *view, after *state, a Actor) error {
	if v.catalog.Empty() {
		return nil
	}
	if got := gains(v.catalog, Build(after.live()), a.ID); len(got) > 0 {
		return refusal(ErrForbidden, "Nobody gives authority to himself; another security administrator has to do this: %s.", some(got))
	}
	return nil
}

// some of a long list.
func some(list []string) string {
	const most = 5
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
