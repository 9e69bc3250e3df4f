package federation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/backoff"
)

// Watch maintains the current objects of one resource of one API server, parsed to T, which it shares with its readers;
// they must not change it. Unlike an informer, it handles a resource that is not installed: it reports this, and begins
// when the resource is installed.
type Watch[T any] struct {
	client  dynamic.ResourceInterface
	pages   pageReader
	what    string
	parse   func(*unstructured.Unstructured) (T, error)
	changed func(name string)
	log     logr.Logger
	// group, if set, returns a second key by which objects can be found; an object with "" cannot.
	group func(T) string
	// everyNamespace reports whether the objects of all namespaces are watched, so that their names are not unique.
	everyNamespace bool
	// only is a field selector. Objects that it does not select are not read.
	only string
	// bounds limit the objects.
	bounds bounds
	// size, if set, returns about how many bytes are kept of an object; otherwise all of it counts.
	size func(*unstructured.Unstructured, T) int

	mu     sync.RWMutex
	items  map[string]item[T]
	groups map[string]sets.Set[string]
	// bytes is the sum of the sizes of items.
	bytes int
	// notBefore is the time before which the objects are not listed again, because they exceeded the bounds.
	notBefore time.Time
	// edits counts the changes of items.
	edits  uint64
	synced bool
	// listed reports whether the objects were listed at least once, so that items are what was last seen.
	listed bool
	err    error
	// asOf is the version up to which the objects were read.
	asOf string

	// answers counts the pages of lists and the events that the API server sent, perhaps together with those of other watches.
	answers *atomic.Uint64
}

type item[T any] struct {
	value   T
	version string
	// bytes is the size of what is kept of the object.
	bytes int
}

// NewWatch returns a watch that calls changed, without holding a lock, with the name of every object that appeared,
// changed or was deleted, and with "" when the watch itself began to work or failed.
func NewWatch[T any](client dynamic.ResourceInterface, what string, log logr.Logger,
	parse func(*unstructured.Unstructured) (T, error), changed func(name string)) *Watch[T] {
	return &Watch[T]{client: client, pages: pagesOf(client), what: what, parse: parse, changed: changed, log: log, answers: &atomic.Uint64{},
		items: map[string]item[T]{}, groups: map[string]sets.Set[string]{}}
}

// Run lists and watches until the context ends. It retries failures at intervals of at most two seconds.
func (w *Watch[T]) Run(ctx context.Context) {
	s := &reflectorStore[T]{w: w}
	lw := lister{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			if !backoff.Pause(ctx, clock.RealClock{}, w.delayOfList()) {
				return nil, fmt.Errorf("list %s: %w", w.what, ctx.Err())
			}
			version, err := s.list(ctx)
			if err != nil && ctx.Err() == nil {
				w.fail(err)
			}
			none := &unstructured.UnstructuredList{Object: map[string]any{}}
			none.SetResourceVersion(version)
			return none, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if s.exceeded != nil { // the reflector lists again after this error
				return nil, apierrors.NewResourceExpired(s.exceeded.Error())
			}
			o.FieldSelector = w.only
			events, err := w.client.Watch(ctx, o)
			s.events = events
			return events, err
		},
	}}
	// The reflector does not log: failures are part of the state, and the readers of the state log its changes.
	quiet := logr.Discard()
	cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, s, cache.ReflectorOptions{
		Name: w.what, TypeDescription: w.what, Logger: &quiet,
		Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 2 * time.Second, Steps: 8, Factor: 2, Jitter: 0.2},
	}).RunWithContext(logr.NewContext(ctx, quiet))
}

// lister lists and then watches, in two requests: a failed list shows that a kind is missing or forbidden, which a
// streamed list would hide.
type lister struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells client-go to list and watch in separate requests.
func (lister) IsWatchListSemanticsUnSupported() bool { return true }

// Get returns the object of that name.
func (w *Watch[T]) Get(name string) (T, bool) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	i, ok := w.items[name]
	return i.value, ok
}

// getAsOf returns the object of that name, and the version up to which the objects were read.
func (w *Watch[T]) getAsOf(name string) (value T, found bool, asOf string) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	i, found := w.items[name]
	return i.value, found, w.asOf
}

// List returns every object, by name.
func (w *Watch[T]) List() []T {
	w.mu.RLock()
	defer w.mu.RUnlock()
	out := make([]T, 0, len(w.items))
	for _, n := range slices.Sorted(maps.Keys(w.items)) {
		out = append(out, w.items[n].value)
	}
	return out
}

// Group returns the objects whose group is key, by name.
func (w *Watch[T]) Group(key string) []T {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var out []T
	for _, n := range sets.List(w.groups[key]) {
		out = append(out, w.items[n].value)
	}
	return out
}

// State reports whether the objects were listed, and the last failure since then.
func (w *Watch[T]) State() (synced bool, err error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.synced, w.err
}

// version returns a number that changes with every change of the objects.
func (w *Watch[T]) version() uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.edits
}

// key returns the key by which an object is found.
func (w *Watch[T]) key(u *unstructured.Unstructured) string {
	if w.everyNamespace {
		return shared.share(u.GetNamespace() + "/" + u.GetName())
	}
	return shared.share(u.GetName())
}

// Offer adds an object that the API server just returned, so that the writer reads its own writes.
func (w *Watch[T]) Offer(u *unstructured.Unstructured) {
	_ = w.put(u, false) // an object that the bounds do not allow is read again
}

func (w *Watch[T]) fail(err error) {
	err = fmt.Errorf("list or watch %s: %w", w.what, err)
	w.mu.Lock()
	first := w.err == nil || w.err.Error() != err.Error()
	w.err = err
	if exceedsBounds(err) {
		w.notBefore = clock.RealClock{}.Now().Add(boundedRetryDelay)
	}
	w.mu.Unlock()
	if first {
		w.changed("")
	}
}

// delayOfList returns how long the next list of the objects has to wait.
func (w *Watch[T]) delayOfList() time.Duration {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return max(w.notBefore.Sub(clock.RealClock{}.Now()), 0)
}

// itemOf returns what is kept of an object.
func (w *Watch[T]) itemOf(u *unstructured.Unstructured, value T) item[T] {
	i := item[T]{value: value, version: u.GetResourceVersion()}
	switch {
	case w.bounds.bytes == 0: // it is not compared
	case w.size != nil:
		i.bytes = w.size(u, value)
	default:
		i.bytes = sizeOf(u.Object)
	}
	return i
}

// put stores an object, and returns an error if the bounds do not allow it.
func (w *Watch[T]) put(u *unstructured.Unstructured, notify bool) error {
	value, err := w.parse(u)
	if err != nil {
		// An object that cannot be parsed counts as absent; a controller that needs it writes it again.
		w.log.Error(err, "Unreadable object", "resource", w.what, "name", w.key(u))
		return w.remove(u)
	}
	return w.store(u, value, notify)
}

// store stores an object that was parsed, unless a newer version of it is known. It returns an error if the bounds do not allow it.
func (w *Watch[T]) store(u *unstructured.Unstructured, value T, notify bool) error {
	stale, err := w.keep(u, w.itemOf(u, value), notify)
	if err == nil && notify && !stale {
		w.changed(w.key(u))
	}
	return err
}

func (w *Watch[T]) keep(u *unstructured.Unstructured, i item[T], advance bool) (stale bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	had, ok := w.items[w.key(u)]
	if ok && newer(had.version, i.version) {
		stale = true
	} else {
		objects := len(w.items)
		if !ok {
			objects++
		}
		if err := w.bounds.check(objects, w.bytes-had.bytes+i.bytes); err != nil {
			return false, err
		}
		w.set(w.key(u), i)
	}
	if advance {
		w.advance(u)
	}
	return stale, nil
}

func (w *Watch[T]) remove(u *unstructured.Unstructured) error {
	w.mu.Lock()
	w.advance(u)
	w.unset(w.key(u))
	w.mu.Unlock()
	w.changed(w.key(u))
	return nil
}

// advance records that an event was read. The caller must hold the lock.
func (w *Watch[T]) advance(u *unstructured.Unstructured) {
	if w.asOf == "" || newer(u.GetResourceVersion(), w.asOf) {
		w.asOf = u.GetResourceVersion()
	}
}

// set and unset keep items and groups consistent. The caller must hold the lock.
func (w *Watch[T]) set(name string, i item[T]) {
	w.unset(name)
	w.edits++
	w.items[name] = i
	w.bytes += i.bytes
	if w.group == nil {
		return
	}
	group := w.group(i.value)
	if group == "" {
		return
	}
	if w.groups[group] == nil {
		w.groups[group] = sets.New[string]()
	}
	w.groups[group].Insert(name)
}

func (w *Watch[T]) unset(name string) {
	old, ok := w.items[name]
	if !ok {
		return
	}
	w.edits++
	delete(w.items, name)
	w.bytes -= old.bytes
	if w.group == nil {
		return
	}
	group := w.group(old.value)
	if group != "" && w.groups[group].Delete(name).Len() == 0 {
		delete(w.groups, group)
	}
}

// newer compares resource versions of one resource, which the API server guarantees to be increasing integers.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// reflectorStore implements the store that the reflector fills.
type reflectorStore[T any] struct {
	w *Watch[T]
	// fresh contains the objects of the last list that were not stored yet.
	fresh map[string]item[T]
	// events are those of the current watch.
	events watch.Interface
	// exceeded is the error of the event that exceeded the bounds since the last list, or nil. Later events are dropped.
	exceeded error
}

// pageSize is the number of objects that are read and parsed at a time. Unparsed objects take ten times the memory of
// what is stored, and at startup the objects of all members are listed at the same time (decoding).
const pageSize = 500

// list reads all objects, without the API server's cache, which does not support pages, and returns their common
// version.
func (s *reflectorStore[T]) list(ctx context.Context) (version string, err error) {
	s.exceeded = nil
	all, o := listed[T]{items: map[string]item[T]{}}, metav1.ListOptions{FieldSelector: s.w.only, Limit: pageSize}
	for {
		decode, err := s.w.pages(ctx, o)
		if errors.Is(err, errAnswerTooLarge) && o.Limit > 1 {
			o.Limit = max(o.Limit/10, 1) // the objects may be large
			continue
		}
		if err != nil {
			return "", err
		}
		s.w.answers.Add(1)
		version, next, err := s.collect(decode, &all)
		if err != nil {
			return "", err
		}
		if o.Continue = next; next == "" {
			s.fresh = all.items
			return version, nil
		}
	}
}

// listed are the objects of the pages of a list that were read.
type listed[T any] struct {
	items map[string]item[T]
	// read is the number of objects in the pages. A page without objects counts as one, so that every list ends.
	read int
	// bytes is the sum of the sizes of items, and of objects that a later page contained again.
	bytes int
}

// collect decodes a page, and adds what its objects are parsed to. It returns the version of the list, and the token of the following page.
func (s *reflectorStore[T]) collect(decode func() (page, error), into *listed[T]) (version, next string, err error) {
	decoding <- struct{}{}
	defer func() { <-decoding }()
	list, err := decode()
	if err != nil {
		return "", "", err
	}
	into.read += max(len(list.Items), 1)
	if err := s.w.bounds.check(into.read, into.bytes); err != nil {
		return "", "", err
	}
	for i := range list.Items {
		u := &list.Items[i]
		value, err := s.w.parse(u)
		if err != nil {
			s.w.log.Error(err, "Unreadable object", "resource", s.w.what, "name", s.w.key(u))
			continue
		}
		kept := s.w.itemOf(u, value)
		into.items[s.w.key(u)] = kept
		into.bytes += kept.bytes
	}
	return list.Version, list.Next, s.w.bounds.check(into.read, into.bytes)
}

func (s *reflectorStore[T]) Add(obj any) error {
	return s.each(obj, func(u *unstructured.Unstructured) error { return s.w.put(u, true) })
}
func (s *reflectorStore[T]) Update(obj any) error { return s.Add(obj) }
func (s *reflectorStore[T]) Delete(obj any) error { return s.each(obj, s.w.remove) }
func (s *reflectorStore[T]) Resync() error        { return nil }

func (s *reflectorStore[T]) each(obj any, do func(*unstructured.Unstructured) error) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("%s: unexpected %T", s.w.what, obj)
	}
	s.w.answers.Add(1)
	if s.exceeded != nil { // it was reported when it was found
		return nil //nolint:nilerr // the reflector would only log it
	}
	if s.exceeded = do(u); s.exceeded != nil { // which objects there are is not known any more
		s.w.fail(s.exceeded)
		s.events.Stop()
	}
	return nil
}

// Replace stores what was listed and removes everything else. The reflector passes an empty list.
func (s *reflectorStore[T]) Replace(_ []any, version string) error {
	w, fresh := s.w, s.fresh
	s.fresh = nil
	w.mu.Lock()
	w.asOf = version
	var names []string
	for n, had := range w.items {
		if now, ok := fresh[n]; !ok || now.version != had.version {
			names = append(names, n)
		}
	}
	for n := range fresh {
		if _, ok := w.items[n]; !ok {
			names = append(names, n)
		}
	}
	whole := !w.synced || w.err != nil
	for n := range w.items {
		w.unset(n)
	}
	for n, i := range fresh {
		w.set(n, i)
	}
	w.synced, w.listed, w.err = true, true, nil
	w.mu.Unlock()
	if whole {
		w.changed("")
	}
	for _, n := range names {
		w.changed(n)
	}
	return nil
}

// forget marks the watch as not synced: its objects are stale until the next list.
func (w *Watch[T]) forget() {
	w.mu.Lock()
	w.synced = false
	w.mu.Unlock()
}

// inherit copies the objects of another watch of the same resource.
func (w *Watch[T]) inherit(old *Watch[T]) {
	old.mu.RLock()
	defer old.mu.RUnlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, i := range old.items {
		w.set(n, i)
	}
	w.synced, w.listed, w.err, w.asOf = old.synced, old.listed, old.err, old.asOf
}

// everListed reports whether the objects were listed at least once, even if they are stale.
func (w *Watch[T]) everListed() bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.listed
}

// each calls do with every object, including stale ones. do must not call the watch.
func (w *Watch[T]) each(do func(T)) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, i := range w.items {
		do(i.value)
	}
}
