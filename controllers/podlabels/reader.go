// Package podlabels passes to the policy cache which labels pods have in the members, so that prefixes such as app/team-*
// can be expanded. It reads them from the identities that Cilium keeps in each member.
package podlabels

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/dataplane"
	"github.com/acp-io/acp/controllers/membercluster"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/startup"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
)

const (
	// MinReadInterval is the minimum time between two readings, except while FirstReadInterval applies. In a large fleet identities change all
	// the time.
	MinReadInterval = time.Second
	// FirstReadInterval replaces MinReadInterval while members are being listed for the first time, because units wait for them.
	FirstReadInterval = 50 * time.Millisecond
)

// Reader passes the labels of the members' pods, as Cilium's identities have them, to the policy cache, which expands prefixes of
// names to the names that exist.
//
// A member that is unreachable keeps its last labels. For a member whose labels this process never read, the labels
// that were pushed before are used, or every restart would remove allows and add them again. That opens nothing: the
// statements, not the names, decide who is allowed.
type Reader struct {
	// Identities contains the identities of the pods in the members, and Counts counts them.
	Identities *federation.Identities
	Counts     *membercluster.Identities

	cache   *policycache.Cache
	objects *federation.Objects
	log     logr.Logger
	pauses  clock.WithTicker
	trigger chan struct{}
	// missing are the members whose labels were never read, as last logged.
	missing []string
	// meshesChanged is called when the labels that matter in several cluster meshes changed.
	meshesChanged func()
	mu            sync.RWMutex
	// meshed are the labels of subjects in each member that was read, while the members are in several cluster meshes.
	meshed map[string]map[federation.Label]struct{}
	// known is closed when the policy cache received labels for the first time.
	known chan struct{}
}

// Config is the configuration of a Reader.
type Config struct {
	// Fleet configures how the members are read; Changed is called after the Reader handled an event.
	Fleet   federation.FleetConfig
	Cache   *policycache.Cache
	Objects *federation.Objects
	// MeshesChanged is called when the labels that matter in several cluster meshes changed.
	MeshesChanged func()
	// Pauses is the clock of the time between two readings.
	Pauses clock.WithTicker
}

// New returns a Reader that is idle until it is added to a manager.
func New(config Config) (*Reader, error) {
	r := &Reader{
		cache:         config.Cache,
		objects:       config.Objects,
		meshesChanged: config.MeshesChanged,
		log:           config.Fleet.Log,
		pauses:        config.Pauses,
		trigger:       make(chan struct{}, 1),
		known:         make(chan struct{}),
	}
	changed := config.Fleet.Changed
	config.Fleet.Changed = func(cluster, object string) {
		r.Counts.Changed(cluster)
		r.Requeue()
		changed(cluster, object)
	}
	identities, err := federation.NewIdentities(config.Fleet)
	if err != nil {
		return nil, err
	}
	r.Identities, r.Counts = identities, &membercluster.Identities{Each: identities.Each, Keys: r.subjectKeys}
	return r, nil
}

// AddToManager runs the Reader on every replica. The returned Ready also waits until it is known which labels were pushed
// before.
func (r *Reader) AddToManager(mgr manager.Manager, ready startup.Ready) (startup.Ready, error) {
	for _, run := range []startup.EveryReplica{r.Identities.Run, r.run} {
		if err := mgr.Add(run); err != nil {
			return nil, err
		}
	}
	return startup.After(ready, r.known), nil
}

// Requeue requests a new reading.
func (r *Reader) Requeue() {
	select {
	case r.trigger <- struct{}{}:
	default:
	}
}

func (r *Reader) run(ctx context.Context) error {
	first := true
	Repeat(ctx, r.trigger, r.pauses, func() time.Duration {
		if listed, err := r.objects.State(); !listed && err == nil {
			return 0 // the listing triggers the next reading
		}
		pending := r.Identities.Pending()
		r.read()
		if first {
			first = false
			close(r.known)
		}
		if pending {
			return FirstReadInterval
		}
		return MinReadInterval
	})
	return nil
}

// Repeat calls read after each trigger until ctx ends. It then waits for the time that read returned, so that the triggers of this
// time lead to one read.
func Repeat(ctx context.Context, trigger <-chan struct{}, pauses clock.WithTicker, read func() time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-trigger:
		}
		interval := read()
		if interval <= 0 {
			continue
		}
		pause := pauses.NewTimer(interval)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C():
		}
	}
}

// read passes what is known now to the policy cache.
func (r *Reader) read() {
	r.readMeshes()
	labels, listed, missing := r.Identities.Labels()
	registered, _ := r.Identities.Registry()
	if !slices.Equal(missing, r.missing) {
		r.missing = missing
		r.log.Info("Pod labels of these members were never read: policies that allow a name prefix do not yet cover names that exist only there",
			"members", missing)
	}
	pushed := r.objects.List()
	if !registered || len(missing) > 0 {
		for _, o := range pushed {
			cilium.SelectedLabels(o.TemplateSpec, func(key, value string) { labels[federation.Label{Key: key, Value: value}] = struct{}{} })
			for _, over := range o.Overrides {
				cilium.SelectedLabels(over.Spec, func(key, value string) { labels[federation.Label{Key: key, Value: value}] = struct{}{} })
			}
		}
	}
	byKey := map[string][]string{}
	for l := range labels {
		byKey[l.Key] = append(byKey[l.Key], l.Value)
	}
	for key := range maps.Keys(byKey) {
		slices.Sort(byKey[key])
	}
	r.cache.SetLabels(byKey, len(listed) > 0 || len(pushed) > 0)
}

// readMeshes reads which labels of subjects each member has, which matters only if the members are in several cluster
// meshes.
func (r *Reader) readMeshes() {
	now, clusters := map[string]map[federation.Label]struct{}{}, r.Identities.Clusters()
	if dataplane.HasSeveralMeshes(clusters) {
		keys := r.subjectKeys()
		for _, c := range clusters {
			labels, read := r.Identities.Of(c.Name, keys)
			if !read {
				continue
			}
			for l := range labels {
				labels[federation.Label{Key: l.Key}] = struct{}{} // any subject of the class
			}
			now[c.Name] = labels
		}
	}
	r.mu.Lock()
	changed := !maps.EqualFunc(r.meshed, now, maps.Equal)
	r.meshed = now
	r.mu.Unlock()
	if changed {
		r.meshesChanged()
	}
}

// Has reports whether a pod of a member has a label of a subject, as of the last read, and whether the member was ever
// read. A label without value matches any pod that has the key.
func (r *Reader) Has(cluster, key, value string) (has, read bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	labels, read := r.meshed[cluster]
	_, has = labels[federation.Label{Key: key, Value: value}]
	return has, read
}

// subjectKeys returns the label keys of the subject classes.
func (r *Reader) subjectKeys() map[string]bool {
	in, out := r.cache.ClassesOnly(), map[string]bool{}
	for _, c := range in.SubjectClasses {
		out[string(c.Spec.LabelKey)] = true
	}
	return out
}

// ValuesIn returns the sorted values of the subjects' labels of pods in a member, by key. It returns false if they are
// not known, or not needed because all members are in one cluster mesh.
func (r *Reader) ValuesIn(cluster string) (map[string][]string, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	labels, read := r.meshed[cluster]
	out := map[string][]string{}
	for l := range labels {
		if l.Value != "" {
			out[l.Key] = append(out[l.Key], l.Value)
		}
	}
	for _, values := range out {
		slices.Sort(values)
	}
	return out, read
}

// Pending reports whether the members' labels matter, and some member has neither been read nor found unreadable.
func (r *Reader) Pending() bool {
	return dataplane.HasSeveralMeshes(r.Identities.Clusters()) && r.Identities.Pending()
}
