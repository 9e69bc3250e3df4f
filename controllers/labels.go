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

// labelReader tells the index which labels pods have in the members, so that a prefix such as app/team-* stands for somebody.
//
// A member that is away keeps its last labels. For one whose labels this process never read, those that were pushed
// before stand in, or every restart would take allows away and give them again. That opens nothing: the statements, not
// the names, say who is allowed.
type labelReader struct {
	index      *policycache.Cache
	identities *federation.Identities
	// counted are the identities as numbers.
	counted *membercluster.Identities
	objects *federation.Objects
	log     logr.Logger
	wake    chan struct{}
	// missing are the members whose labels were never read, as last told.
	missing []string
	// everything wakes every unit.
	everything func()
	mu         sync.RWMutex
	// meshed are the labels of subjects in each member that was read, while the members are in several cluster meshes.
	meshed map[string]map[federation.Label]struct{}
	// known is closed when the index was told for the first time.
	known chan struct{}
}

// rest between two readings: in a large fleet identities come and go all the time.
const rest = time.Second

// setUpLabelReader adds the reading of names. The ready that it returns also waits until it is known what was pushed before.
func setUpLabelReader(mgr manager.Manager, host dynamic.Interface, config Config, all *triggers,
	ready func(context.Context) error) (func(context.Context) error, error) {
	n := &labelReader{index: all.cache, objects: all.objects, everything: all.requeueAll, log: mgr.GetLogger().WithName("names"), wake: make(chan struct{}, 1), known: make(chan struct{})}
	identities, err := federation.NewIdentities(federation.FleetConfig{
		Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Probing: config.Probing.Seldom(), Log: n.log, Changed: func(cluster, _ string) {
			n.counted.Changed(cluster)
			n.again()
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

// again asks for a new reading.
func (n *labelReader) again() {
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
			continue // whoever lists them wakes this
		}
		n.read()
		if first {
			first = false
			close(n.known)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rest):
		}
	}
}

// read tells the index what is known now.
func (n *labelReader) read() {
	n.readMeshes()
	labels, listed, missing := n.identities.Labels()
	registered, _ := n.identities.Registry()
	if !slices.Equal(missing, n.missing) {
		n.missing = missing
		n.log.Info("Members whose identities were never read; names of theirs that nobody else has are not known where a policy stands for names by prefix",
			"members", missing)
	}
	pushed := n.objects.List()
	if !registered || len(missing) > 0 {
		for _, o := range pushed {
			cilium.Labels(o.TemplateSpec, func(key, value string) { labels[federation.Label{Key: key, Value: value}] = struct{}{} })
			for _, over := range o.Overrides {
				cilium.Labels(over.Spec, func(key, value string) { labels[federation.Label{Key: key, Value: value}] = struct{}{} })
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
	n.index.Know(byKey, len(listed) > 0 || len(pushed) > 0)
}

// readMeshes reads which labels of subjects each member has. Only where members are in several cluster meshes does it matter which
// member it is.
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
				labels[federation.Label{Key: l.Key}] = struct{}{} // somebody of the class
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

// has reports whether a pod of a member has a label of a subject, as far as the member was ever read, and whether it was. A label
// without value asks for any pod that has the key.
func (n *labelReader) has(cluster, key, value string) (has, read bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	labels, read := n.meshed[cluster]
	_, has = labels[federation.Label{Key: key, Value: value}]
	return has, read
}

// keys are the label keys of the classes.
func (n *labelReader) keys() map[string]bool {
	in, out := n.index.ClassesOnly(), map[string]bool{}
	for _, c := range in.SubjectClasses {
		out[string(c.Spec.LabelKey)] = true
	}
	return out
}

// valuesIn are the sorted values of the labels of subjects that pods of a member have, by key; false: it is not known, or does not
// matter, because all members are in one cluster mesh.
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

// waits reports whether it matters what members have, and some have neither been read nor found unreadable.
func (n *labelReader) waits() bool {
	return dataplane.Several(n.identities.Clusters()) && n.identities.Waits()
}
