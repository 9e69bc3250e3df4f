package propagation

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/acp-io/acp/internal/federation"
)

// Engines are the engines of one store of objects, by the members that use them.
type Engines struct {
	engines map[federation.Engine]Engine
	members Registry
	// kubeFed is the last answer of UsesKubeFed, which is asked for at every event in a member.
	kubeFed atomic.Pointer[kubeFedUse]
}

// kubeFedUse is whether KubeFed distributes objects to one of some members.
type kubeFedUse struct {
	of   []federation.Cluster
	uses bool
}

// Registry returns the registered members, which name their engines. federation.Fleet implements it.
type Registry interface {
	// Clusters returns a list that nobody changes, and the same one until a registration changes.
	Clusters() []federation.Cluster
	Cluster(name string) (federation.Cluster, bool)
}

var _ federation.Reporter = (*Engines)(nil)

// NewEngines returns the engines of members.
func NewEngines(members Registry, engines ...Engine) *Engines {
	e := &Engines{engines: map[federation.Engine]Engine{}, members: members}
	for _, engine := range engines {
		e.engines[engine.Name()] = engine
	}
	return e
}

// of returns the engine of a member and its registration. The engine is nil if the member is not registered or names an engine that
// does not exist.
func (e *Engines) of(cluster string) (Engine, *federation.Cluster) {
	c, ok := e.members.Cluster(cluster)
	if !ok {
		return nil, nil
	}
	return e.engines[c.Engine], &c
}

// ReasonUnknownEngine is the reason in the reports about a member whose registration names an engine that does not exist.
const ReasonUnknownEngine = "UnknownEngine"

// Report returns what the member's engine recorded about an object there. While KubeFed still has access to a member of another engine,
// nothing is handled before KubeFed has handled the object, too, and while the agent of the member's former engine may still write the
// object, it is not handled.
func (e *Engines) Report(o *federation.Object, cluster string) federation.Report {
	engine, c := e.of(cluster)
	switch {
	case c == nil: // The last engine of a member that is no longer registered is not known.
		return o.Propagation.ReportIn(cluster)
	case engine == nil:
		return federation.Report{Reason: ReasonUnknownEngine}
	}
	r := engine.Report(o, cluster)
	if c.SharedWithKubeFed() {
		r.SharedWith, r.Handled = federation.EngineKubeFed, r.Handled && o.Propagation.Seen
	}
	if former, ok := e.engines[c.FormerEngine].(Former); ok && c.FormerEngine != c.Engine && former.Retains(o, cluster) {
		r.SharedWith, r.Handled = c.FormerEngine, false
	}
	return r
}

// Handled reports whether KubeFed has handled the present version of an object, or no member that may have it depends on KubeFed.
// A member that is not registered may have been KubeFed's, unless the whole fleet has left KubeFed.
func (e *Engines) Handled(o *federation.Object) bool {
	if o.Propagation.Seen || !e.UsesKubeFed() {
		return true
	}
	ever := o.EverPlaced()
	return len(ever) > 0 && !slices.ContainsFunc(ever, e.dependsOnKubeFed)
}

func (e *Engines) dependsOnKubeFed(cluster string) bool {
	_, c := e.of(cluster)
	return c == nil || c.DependsOnKubeFed()
}

// UsesKubeFed reports whether KubeFed distributes objects to a registered member, or to no member yet.
func (e *Engines) UsesKubeFed() bool {
	clusters := e.members.Clusters()
	if last := e.kubeFed.Load(); last != nil && sameList(last.of, clusters) {
		return last.uses
	}
	now := &kubeFedUse{clusters, federation.UsesKubeFed(clusters)}
	e.kubeFed.Store(now)
	return now.uses
}

// sameList reports whether two lists of members that nobody changes are one and the same.
func sameList(a, b []federation.Cluster) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// WithoutPriorities returns those of some members whose engine does not write urgent objects before others, or is not known. For these,
// the write queue has to hold back objects that are not urgent.
func (e *Engines) WithoutPriorities(clusters []string) []string {
	return slices.DeleteFunc(slices.Clone(clusters), func(name string) bool {
		engine, _ := e.of(name)
		return engine != nil && engine.Capabilities().Prioritizes
	})
}

// Deliver passes a recorded object to every engine.
func (e *Engines) Deliver(o *federation.Object) { e.each(func(engine Engine) { engine.Deliver(o) }) }

// DeliverUrgent passes an urgent object to every engine.
func (e *Engines) DeliverUrgent(o *federation.Object) {
	e.each(func(engine Engine) { engine.DeliverUrgent(o) })
}

// Recheck passes an event in a member to every engine, because the member may have moved from one to another.
func (e *Engines) Recheck(cluster, key string) {
	e.each(func(engine Engine) { engine.Recheck(cluster, key) })
}

func (e *Engines) each(do func(Engine)) {
	for _, name := range slices.Sorted(maps.Keys(e.engines)) {
		do(e.engines[name])
	}
}
