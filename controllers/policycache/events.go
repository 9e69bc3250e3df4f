package policycache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/policy"
)

// Queues contain what to reconcile: units by resource name, the others by object name.
type Queues struct {
	Units, Policies, ResourceClasses, SubjectClasses, Workloads *requestqueue.Queue
	// Groups are the groups of external workloads, by subject.
	Groups *requestqueue.Queue
}

// NewQueues returns empty queues with the clock of their controllers. An individual request in one of them delays the background requests of all.
func NewQueues(c clock.PassiveClock) Queues {
	background := requestqueue.NewBackground()
	return Queues{
		Units:           requestqueue.NewSharing(c, background),
		Policies:        requestqueue.NewSharing(c, background),
		ResourceClasses: requestqueue.NewSharing(c, background),
		SubjectClasses:  requestqueue.NewSharing(c, background),
		Workloads:       requestqueue.NewSharing(c, background),
		Groups:          requestqueue.NewSharing(c, background),
	}
}

// Listen makes the cache follow the API server. The function that it returns waits until the cache contains what
// existed at the start: before that nothing may be decided, because a statement that is not listed yet looks like a
// revoked one.
func (x *Cache) Listen(ctx context.Context, c cache.Cache) (ready func(context.Context) error, err error) {
	var synced []toolscache.InformerSynced
	for _, k := range []struct {
		object client.Object
		handle func(old, now client.Object)
	}{
		{&v1alpha1.AccessControlPolicy{}, follow(x.policyChanged)},
		{&v1alpha1.ProtectedResource{}, follow(x.resourceChanged)},
		{&v1alpha1.ResourceClass{}, follow(x.resourceClassChanged)},
		{&v1alpha1.SubjectClass{}, follow(x.subjectClassChanged)},
		{&v1alpha1.ExternalWorkload{}, follow(x.workloadChanged)},
		{&v1alpha1.MemberCluster{}, follow(x.memberChanged)},
	} {
		informer, err := c.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", k.object, err)
		}
		registration, err := informer.AddEventHandler(handlers(k.handle))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", k.object, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	return func(ctx context.Context) error {
		if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
			return errors.New("stopped before the host's objects were listed")
		}
		return nil
	}, nil
}

func handlers(handle func(old, now client.Object)) toolscache.ResourceEventHandler {
	object := func(o any) client.Object {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		obj, _ := o.(client.Object)
		return obj
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { handle(nil, object(o)) },
		UpdateFunc: func(a, b any) { handle(object(a), object(b)) },
		DeleteFunc: func(o any) { handle(object(o), nil) },
	}
}

// follow converts a typed handler; missing objects are nil.
func follow[T interface {
	comparable
	client.Object
}](handle func(old, now T)) func(old, now client.Object) {
	return func(old, now client.Object) {
		var none T
		o, _ := old.(T)
		n, _ := now.(T)
		if o != none || n != none {
			handle(o, n)
		}
	}
}

// changed reports whether a change of an object affects decisions, or its deletion was requested by it.
func changed(old, now client.Object) bool {
	return hostcluster.AffectsDecisions(old, now) ||
		(old.GetDeletionTimestamp() == nil) != (now.GetDeletionTimestamp() == nil)
}

func (x *Cache) policyChanged(old, now *v1alpha1.AccessControlPolicy) {
	name, affectsDecisions := either(old, now), old == nil || now == nil || changed(old, now)
	x.mu.Lock()
	echo := isEcho(x.policies, old, now)
	store(x.policies, name, now)
	x.decisive.policies.update(x.policies, name)
	if affectsDecisions {
		x.nextVersion()
		x.since[name] = x.version
	}
	if now == nil {
		delete(x.since, name)
	}
	units := sets.New[string]()
	if affectsDecisions {
		x.coveredBy(units, old)
		x.coveredBy(units, now)
	}
	released := x.deletedSubjectClasses()
	x.mu.Unlock()
	x.queues.SubjectClasses.Add(requestqueue.Observed, released...)
	if len(units) > 0 {
		x.queues.Units.Add(policyPriority(old, now), units.UnsortedList()...)
	}
	if !echo || affectsDecisions {
		x.queues.Policies.Add(requestqueue.Observed, name)
	}
}

// coveredBy collects the units that a policy may contribute to. The caller must hold the lock.
func (x *Cache) coveredBy(units sets.Set[string], p *v1alpha1.AccessControlPolicy) {
	if p == nil {
		return
	}
	for i := range p.Spec.Statements {
		x.coveredByStatement(units, &p.Spec.Statements[i])
	}
}

func (x *Cache) coveredByStatement(units sets.Set[string], s *v1alpha1.Statement) {
	for _, r := range s.Resources {
		stem, wildcard := strings.CutSuffix(string(r), "*")
		if !wildcard {
			units.Insert(string(r))
			continue
		}
		for n := range x.named {
			if strings.HasPrefix(n, stem) {
				units.Insert(n)
			}
		}
		x.wildcards(units, s, stem)
	}
}

// wildcards collects the units of a wildcard resource, one for each class. The caller must hold the lock.
func (x *Cache) wildcards(units sets.Set[string], s *v1alpha1.Statement, stem string) {
	if s.Effect != v1alpha1.EffectAllow {
		return
	}
	for _, c := range x.classes {
		class := strings.TrimSuffix(string(c.Spec.Pattern), "*")
		switch {
		case strings.HasPrefix(stem, class):
			units.Insert(stem + "*")
		case strings.HasPrefix(class, stem):
			units.Insert(class + "*")
		}
	}
}

func (x *Cache) resourceChanged(old, now *v1alpha1.ProtectedResource) {
	name := either(old, now)
	affectsDecisions := old == nil || now == nil || changed(old, now)
	x.mu.Lock()
	if affectsDecisions {
		x.nextVersion()
	}
	echo := isEcho(x.resources, old, now)
	store(x.resources, name, now)
	x.decisive.resources.update(x.resources, name)
	units := sets.New[string]()
	if old != nil {
		resource := string(old.Spec.Resource)
		units.Insert(resource)
		if x.named[resource].Delete(name).Len() == 0 {
			delete(x.named, resource)
		}
	}
	if now != nil {
		resource := string(now.Spec.Resource)
		units.Insert(resource)
		if x.named[resource] == nil {
			x.named[resource] = sets.New[string]()
		}
		x.named[resource].Insert(name)
	}
	var classes []string
	if old != nil && hasFinalizer(old) && (now == nil || !hasFinalizer(now)) { // a class that is to be deleted may be released
		classes = slices.Collect(maps.Keys(x.classes))
	}
	x.mu.Unlock()
	if !echo || affectsDecisions {
		x.queues.Units.Add(resourcePriority(old, now), units.UnsortedList()...)
	}
	x.queues.ResourceClasses.Add(requestqueue.Observed, classes...)
}

func (x *Cache) resourceClassChanged(old, now *v1alpha1.ResourceClass) {
	name := either(old, now)
	x.mu.Lock()
	switch {
	case now == nil:
		delete(x.classSince, name)
	case old == nil || changed(old, now):
		x.classSince[name] = x.version + 1 // the version that classChanged begins
	}
	x.mu.Unlock()
	classChanged(x, x.classes, &x.decisive.classes, x.queues.ResourceClasses, old, now)
}

func (x *Cache) subjectClassChanged(old, now *v1alpha1.SubjectClass) {
	classChanged(x, x.subjects, &x.decisive.subjects, x.queues.SubjectClasses, old, now)
}

// classChanged enqueues everything: a class affects names that are only compared during compilation.
func classChanged[T interface {
	*v1alpha1.ResourceClass | *v1alpha1.SubjectClass
	client.Object
}](x *Cache, classes map[string]T, decisive *byName[T], own *requestqueue.Queue, old, now T) {
	name, affectsDecisions := either(old, now), old == nil || now == nil || changed(old, now)
	x.mu.Lock()
	store(classes, name, now)
	decisive.update(classes, name)
	if !affectsDecisions {
		x.mu.Unlock()
		own.Add(requestqueue.Observed, name)
		return
	}
	x.nextVersion()
	for p := range x.policies {
		x.since[p] = x.version
	}
	all := slices.Collect(maps.Keys(classes))
	x.mu.Unlock()
	own.Add(requestqueue.Observed, append(all, name)...)
	x.EnqueueWorkloads()
	x.EnqueueAll(requestqueue.BulkChange)
}

// EnqueueAll enqueues all units and policies.
func (x *Cache) EnqueueAll(priority int) {
	x.mu.RLock()
	policies, units := slices.Collect(maps.Keys(x.policies)), sets.New[string]()
	for n := range x.named {
		units.Insert(n)
	}
	for _, p := range x.policies {
		for i := range p.Spec.Statements {
			for _, r := range p.Spec.Statements[i].Resources {
				if stem, wildcard := strings.CutSuffix(string(r), "*"); wildcard {
					x.wildcards(units, &p.Spec.Statements[i], stem)
				}
			}
		}
	}
	x.mu.RUnlock()
	x.queues.Units.Add(priority, units.UnsortedList()...)
	x.queues.Policies.Add(priority, policies...)
}

// workloadChanged enqueues the workload. An address may now belong to another subject, and a subject may begin or cease
// to have addresses; what that affects is found when the next view is made.
func (x *Cache) workloadChanged(old, now *v1alpha1.ExternalWorkload) {
	name, affectsDecisions := either(old, now), old == nil || now == nil || changed(old, now)
	x.mu.Lock()
	store(x.workloads, name, now)
	x.decisive.workloads.update(x.workloads, name)
	if !affectsDecisions {
		x.mu.Unlock()
		x.queues.Workloads.Add(requestqueue.Observed, name)
		return
	}
	x.nextVersion()
	x.mu.Unlock()
	x.queues.Workloads.Add(requestqueue.Observed, name)
	if now == nil { // no reconcile of the deleted object will make a view
		x.queues.Groups.Add(requestqueue.Revocation, string(old.Spec.Subject))
	}
}

// EnqueueWorkloads enqueues all workloads and the groups of their subjects.
func (x *Cache) EnqueueWorkloads() {
	var names, subjects []string
	x.mu.RLock()
	for name, w := range x.workloads {
		names, subjects = append(names, name), append(subjects, string(w.Spec.Subject))
	}
	x.mu.RUnlock()
	x.queues.Workloads.Add(requestqueue.Observed, names...)
	x.queues.Groups.Add(requestqueue.BulkChange, subjects...)
}

// EnqueueChanges enqueues what changes by time in (from, to]: statements that begin or end, temporary audits that end.
// Ends come before beginnings.
func (x *Cache) EnqueueChanges(from, to time.Time) { x.enqueueTimed(from, to, true) }

// EnqueueExpired enqueues what ended until now, because it may have been missed.
func (x *Cache) EnqueueExpired(now time.Time) { x.enqueueTimed(time.Time{}, now, false) }

func (x *Cache) enqueueTimed(from, to time.Time, begins bool) {
	within := func(t *metav1.Time) bool { return t != nil && t.After(from) && !t.After(to) }
	begin, end := sets.New[string](), sets.New[string]()
	x.mu.RLock()
	for _, p := range x.policies {
		for i := range p.Spec.Statements {
			s := &p.Spec.Statements[i]
			if begins && within(s.NotBefore) {
				x.coveredByStatement(begin, s)
			}
			if within(s.NotAfter) {
				x.coveredByStatement(end, s)
			}
			switch opened, closed := hoursBeganOrEnded(s.Hours, from, to); {
			case closed:
				x.coveredByStatement(end, s)
			case opened && begins:
				x.coveredByStatement(begin, s)
			}
		}
	}
	for _, r := range x.resources {
		if a := r.Spec.TemporaryAudit; a != nil && within(&a.Until) {
			end.Insert(string(r.Spec.Resource))
		}
	}
	released := x.deletedSubjectClasses()
	x.mu.RUnlock()
	x.queues.SubjectClasses.Add(requestqueue.Observed, released...)
	x.queues.Units.Add(requestqueue.Revocation, end.UnsortedList()...)
	x.queues.Units.Add(requestqueue.Grant, begin.UnsortedList()...)
}

// hoursBeganOrEnded reports whether hours may have begun or ended in (from, to], by whether they are open at the end of it. Invalid hours never do.
func hoursBeganOrEnded(w *v1alpha1.WeeklyHours, from, to time.Time) (opened, closed bool) {
	if w == nil {
		return false, false
	}
	h, err := policy.ParseHours(w)
	if err != nil {
		return false, false
	}
	at, ok := h.Next(from)
	if !ok || at.After(to) {
		return false, false
	}
	open := h.Open(to)
	return open, !open
}

// nextVersion begins a new version. The caller must hold the lock.
func (x *Cache) nextVersion() {
	x.version++
	select {
	case x.changes <- struct{}{}:
	default:
	}
}

// either returns the name of an object, of which the version before or after a change may be missing.
func either[T interface {
	comparable
	client.Object
}](old, now T) string {
	var none T
	if now != none {
		return now.GetName()
	}
	return old.GetName()
}

// isEcho reports whether the cache has a version of an object already, because the adapter itself wrote it. Its event contains nothing new. An
// event without a change, which informers repeat every few hours, is none.
func isEcho[T interface {
	comparable
	client.Object
}](m map[string]T, old, now T) bool {
	var none T
	if now == none || old != none && old.GetResourceVersion() == now.GetResourceVersion() {
		return false
	}
	had, ok := m[now.GetName()]
	return ok && had.GetUID() == now.GetUID() && now.GetResourceVersion() != "" && had.GetResourceVersion() == now.GetResourceVersion()
}

// store stores an object, unless the event is older than the adapter's own write.
func store[T interface {
	comparable
	client.Object
}](m map[string]T, name string, now T) {
	var none T
	if now == none {
		delete(m, name)
		return
	}
	if had, ok := m[name]; ok && had.GetUID() == now.GetUID() && newer(had, now) {
		return
	}
	m[name] = now
}

// StorePolicy stores the object that the API server returned for a status update, so that the next update does not
// conflict. An object that was deleted meanwhile stays deleted.
func (x *Cache) StorePolicy(o *v1alpha1.AccessControlPolicy) {
	storeWritten(x, x.policies, &x.decisive.policies, o)
}

// StoreResource is StorePolicy for a ProtectedResource. If waves let Enforce count in other members, the next view has that.
func (x *Cache) StoreResource(o *v1alpha1.ProtectedResource) {
	x.mu.RLock()
	had := x.resources[o.Name]
	x.mu.RUnlock()
	storeWritten(x, x.resources, &x.decisive.resources, o)
	if had != nil && changed(had, o) {
		x.mu.Lock()
		x.nextVersion()
		x.mu.Unlock()
	}
}

// storeWritten stores an object that the API server returned for the adapter's own write, unless the cache has another generation of it.
func storeWritten[T interface {
	comparable
	client.Object
}](x *Cache, m map[string]T, decisive *byName[T], o T) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if had, ok := m[o.GetName()]; ok && had.GetUID() == o.GetUID() && had.GetGeneration() == o.GetGeneration() {
		store(m, o.GetName(), o)
		decisive.update(m, o.GetName())
	}
}

// newer compares resource versions, which the API server guarantees to be increasing integers.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
