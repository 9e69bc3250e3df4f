package ocm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/acp-io/acp/api/v1alpha1"
)

// namespaceWatch is the watch of the ManifestWorks in the namespace of one member.
type namespaceWatch struct {
	informer cache.SharedIndexInformer
	// listed reports whether the ManifestWorks were listed: the informer's HasSynced, which unit tests replace.
	listed func() bool
	stop   context.CancelFunc

	mu sync.Mutex
	// failure is the error of the last attempt to read the ManifestWorks, or nil.
	failure error
}

// newWatch returns the watch of a member's namespace, which is idle until its informer runs.
func (s *Works) newWatch(cluster string) (*namespaceWatch, error) {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.config.Host, 0, cluster, func(o *metav1.ListOptions) {
		o.LabelSelector = v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedBy
	})
	w := &namespaceWatch{informer: factory.ForResource(WorkResource).Informer(), stop: func() {}}
	w.listed = w.informer.HasSynced
	changed := func(in any) {
		w.fail(nil)
		if c, ok := in.(cached); ok {
			s.onWork(c.work)
		}
	}
	_, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: func(in any) {
			if last, ok := in.(cache.DeletedFinalStateUnknown); ok {
				in = last.Obj
			}
			if c, ok := in.(cached); ok {
				s.onWorkDeleted(c.work)
			}
		}})
	err = errors.Join(err, w.informer.SetTransform(func(in any) (any, error) {
		if u, ok := in.(*unstructured.Unstructured); ok {
			return cached{parseWork(u)}, nil
		}
		return in, nil
	}), w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if w.fail(err) {
			s.config.Log.Error(err, "ManifestWorks cannot be read", "member", cluster)
			s.config.Changed(cluster, "")
		}
	}))
	if err != nil {
		return nil, fmt.Errorf("ocm: configure the watch of namespace %s: %w", cluster, err)
	}
	return w, nil
}

// fail records why the ManifestWorks could not be read, and reports whether that is new.
func (w *namespaceWatch) fail(err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := err != nil && (w.failure == nil || w.failure.Error() != err.Error())
	w.failure = err
	return first
}

// unreadReason returns why the ManifestWorks in the namespace of a member are not known, or nil if they are. They stay known while a watch is
// interrupted, because it is resumed from its last event.
func (s *Works) unreadReason(cluster string) error {
	w := s.watchOf(cluster)
	switch {
	case w == nil:
		return errNotListed
	case w.listed():
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != nil {
		return w.failure
	}
	return errNotListed
}

// listed reports whether the ManifestWorks in the namespace of a member are known.
func (s *Works) listed(cluster string) bool { return s.unreadReason(cluster) == nil }

// errNotListed means that the ManifestWorks of a member were not listed yet.
var errNotListed = errors.New("the ManifestWorks of the member were not listed yet")

// cached is a ManifestWork in the cache, which needs only the accessors of its identity.
type cached struct{ *work }

// GetObjectMeta returns the identity of the ManifestWork.
func (c cached) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: c.cluster, Name: c.name, UID: c.uid, ResourceVersion: c.resourceVersion}
}

// updateWatches starts and stops watches according to the registrations. A member whose registration cannot be read keeps its watch.
func (s *Works) updateWatches(ctx context.Context, running *sync.WaitGroup) error {
	if listed, _ := s.config.Members.Registry(); !listed {
		return nil
	}
	wanted := map[string]bool{}
	for _, c := range s.config.Members.Clusters() {
		wanted[c.Name] = c.HasWorkAgent()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, w := range s.watches {
		if !wanted[name] {
			w.stop()
			delete(s.watches, name)
		}
	}
	for name := range wanted {
		if !wanted[name] || s.watches[name] != nil {
			continue
		}
		w, err := s.newWatch(name)
		if err != nil {
			return err
		}
		var watching context.Context
		watching, w.stop = context.WithCancel(ctx)
		s.watches[name] = w
		running.Go(func() { w.informer.RunWithContext(watching) })
		running.Go(func() {
			if cache.WaitForCacheSync(watching.Done(), w.informer.HasSynced) {
				s.config.Changed(name, "")
			}
		})
	}
	return nil
}

// workOf returns the ManifestWork of an object in a member, or nil.
func (s *Works) workOf(cluster, key string) *work { return s.get(cluster, nameOf(key)) }

func (s *Works) get(cluster, name string) *work {
	w := s.watchOf(cluster)
	if w == nil {
		return nil
	}
	in, ok, err := w.informer.GetIndexer().GetByKey(cluster + "/" + name)
	c, isWork := in.(cached)
	if err != nil || !ok || !isWork {
		return nil
	}
	return c.work
}

// watchOf returns the watch of a member's namespace, or nil.
func (s *Works) watchOf(cluster string) *namespaceWatch {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.watches[cluster]
}

// objectWorks returns the ManifestWorks in a member's namespace except its heartbeat.
func (s *Works) objectWorks(cluster string) []*work {
	return slices.DeleteFunc(s.allWorks(cluster), func(w *work) bool { return w.purpose == purposeHeartbeat })
}

// allWorks returns the ManifestWorks in a member's namespace.
func (s *Works) allWorks(cluster string) []*work {
	watch := s.watchOf(cluster)
	if watch == nil {
		return nil
	}
	var out []*work
	for _, in := range watch.informer.GetIndexer().List() {
		if c, ok := in.(cached); ok {
			out = append(out, c.work)
		}
	}
	slices.SortFunc(out, func(a, b *work) int { return cmp.Compare(a.key, b.key) })
	return out
}
