package controllers

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/dataplane"
	"github.com/acp-io/acp/controllers/membercluster"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation"
)

// labelReader passes to the policy cache which labels pods have in the members, so that prefixes such as app/team-* can
// be expanded.
//
// A member that is unreachable keeps its last labels. For a member whose labels this process never read, the labels
// that were pushed before are used, or every restart would remove allows and add them again. That opens nothing: the
// statements, not the names, decide who is allowed.
type labelReader struct {
	index      *policycache.Cache
	identities *federation.Identities
	// counted contains the counts of identities.
	counted *membercluster.Identities
	objects *federation.Objects
	log     logr.Logger
	wake    chan struct{}
	// missing are the members whose labels were never read, as last logged.
	missing []string
	// everything enqueues every unit.
	everything func()
	mu         sync.RWMutex
	// meshed are the labels of subjects in each member that was read, while the members are in several cluster meshes.
	meshed map[string]map[federation.Label]struct{}
	// known is closed when the policy cache received labels for the first time.
	known chan struct{}
}

// minReadInterval is the minimum time between two readings. In a large fleet identities change all the time.
const minReadInterval = time.Second

// setUpLabelReader adds the reading of names. The returned ready also waits until it is known what was pushed before.
func setUpLabelReader(mgr manager.Manager, host dynamic.Interface, config Config, all *triggers,
	ready func(context.Context) error) (func(context.Context) error, error) {
	n := &labelReader{index: all.cache, objects: all.objects, everything: all.requeueAll, log: mgr.GetLogger().WithName("names"), wake: make(chan struct{}, 1), known: make(chan struct{})}
	identities, err := federation.NewIdentities(federation.FleetConfig{
		Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Probing: config.Probing.Slow(), Log: n.log, Changed: func(cluster, _ string) {
			n.counted.Changed(cluster)
			n.requeue()
			all.foreign.recheck(cluster)
		},
	})
	if err != nil {
		return nil, err
	}
	n.identities, n.counted, all.names = identities, &membercluster.Identities{Each: identities.Each, Keys: n.keys}, n
	for _, run := range []manager.Runnable{always(identities.Run), always(n.run)} {
		if err := mgr.Add(run); err != nil {
			return nil, err
		}
	}
	return after(ready, n.known), nil
}

// requeue requests a new reading.
func (n *labelReader) requeue() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *labelReader) run(ctx context.Context) error {
	first := true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		}
		if listed, err := n.objects.State(); !listed && err == nil {
			continue // the listing triggers the next reading
		}
		n.read()
		if first {
			first = false
			close(n.known)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(minReadInterval):
		}
	}
}

// read passes what is known now to the policy cache.
func (n *labelReader) read() {
	n.readMeshes()
	labels, listed, missing := n.identities.Labels()
	registered, _ := n.identities.Registry()
	if !slices.Equal(missing, n.missing) {
		n.missing = missing
		n.log.Info("Pod labels of these members were never read: policies that allow a name prefix do not yet cover names that exist only there",
			"members", missing)
	}
	pushed := n.objects.List()
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
	n.index.SetLabels(byKey, len(listed) > 0 || len(pushed) > 0)
}

// readMeshes reads which labels of subjects each member has, which matters only if the members are in several cluster
// meshes.
func (n *labelReader) readMeshes() {
	now, clusters := map[string]map[federation.Label]struct{}{}, n.identities.Clusters()
	if dataplane.Several(clusters) {
		keys := map[string]bool{}
		for _, c := range n.index.ClassesOnly().SubjectClasses {
			keys[string(c.Spec.LabelKey)] = true
		}
		for _, c := range clusters {
			labels, read := n.identities.Of(c.Name, keys)
			if !read {
				continue
			}
			for l := range labels {
				labels[federation.Label{Key: l.Key}] = struct{}{} // any subject of the class
			}
			now[c.Name] = labels
		}
	}
	n.mu.Lock()
	changed := !maps.EqualFunc(n.meshed, now, maps.Equal)
	n.meshed = now
	n.mu.Unlock()
	if changed {
		n.everything()
	}
}

// has reports whether a pod of a member has a label of a subject, as of the last read, and whether the member was ever
// read. A label without value matches any pod that has the key.
func (n *labelReader) has(cluster, key, value string) (has, read bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	labels, read := n.meshed[cluster]
	_, has = labels[federation.Label{Key: key, Value: value}]
	return has, read
}

// keys returns the label keys of the classes.
func (n *labelReader) keys() map[string]bool {
	in, out := n.index.ClassesOnly(), map[string]bool{}
	for _, c := range in.SubjectClasses {
		out[string(c.Spec.LabelKey)] = true
	}
	return out
}

// valuesIn returns the sorted values of the subjects' labels of pods in a member, by key. It returns false if they are
// not known, or not needed because all members are in one cluster mesh.
func (n *labelReader) valuesIn(cluster string) (map[string][]string, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	labels, read := n.meshed[cluster]
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

// waits reports whether the members' labels matter, and some member has neither been read nor found unreadable.
func (n *labelReader) waits() bool {
	return dataplane.Several(n.identities.Clusters()) && n.identities.Pending()
}
