package ocm

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/backoff"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

const (
	// readTimeout is how long Absent waits for the agent's answer.
	readTimeout = 30 * time.Second
	// readPoll is how often Absent looks for the answer.
	readPoll = 50 * time.Millisecond
	// readPrefix is the prefix of the ManifestWorks of Absent.
	readPrefix = v1alpha1.ObjectPrefix + "read-"
)

// Members is the read-back from the members: from those of the engine by their agents' reports, and from all others by Base.
type Members struct {
	Base  federation.Members
	Works *Works
	// Kinds are the kinds whose objects are read. The keys of the first are plain names.
	Kinds []federation.Kind
}

var _ federation.Members = Members{}

// Registry returns the state of the registry.
func (m Members) Registry() (bool, error) { return m.Base.Registry() }

// Clusters returns the registered members.
func (m Members) Clusters() []federation.Cluster { return m.Base.Clusters() }

// Cluster returns a registered member.
func (m Members) Cluster(name string) (federation.Cluster, bool) {
	return m.Works.config.Members.Cluster(name)
}

// uses reports whether a member uses the engine.
func (m Members) uses(cluster string) bool {
	c, ok := m.Cluster(cluster)
	return ok && c.Engine == federation.EngineOCM
}

// Observe returns the observation of an object in a member. That of a member of the engine is as old as the agent's report, which the
// agent repeats at an interval of its own (10 to 19 seconds by default). An object without a ManifestWork counts as absent; whether it
// is, is asked before anything depends on it.
func (m Members) Observe(cluster, key string) federation.Observation {
	if !m.uses(cluster) {
		return m.Base.Observe(cluster, key)
	}
	return m.Works.observe(cluster, key)
}

func (s *Works) observe(cluster, key string) federation.Observation {
	o := federation.Observation{Registered: true}
	if alive, known := s.alive(cluster); !alive {
		o.Unknown, o.Message = !known, message.MemberAgentSilent(cluster)
		return o
	}
	w := s.of(cluster, key)
	switch {
	case w != nil && w.available == unreadable:
		o.Message = message.MemberAgentCannotRead(cluster)
	case w != nil && w.purpose != purposeRead && w.available != "" && !s.current(w):
		// The report is from before the agent was away.
		o.Unknown, o.Message = true, message.MemberNotContacted(cluster)
	default:
		o.Reachable, o.Object = true, s.object(w)
	}
	return o
}

// object returns what a member has according to the last report of a ManifestWork, or nil. A ManifestWork that is being deleted, and a
// question without an answer, stand for an object that may be there.
func (s *Works) object(w *work) *federation.Observed {
	switch {
	case w == nil:
		return nil
	case w.purpose == purposeRead && w.applied && w.missing() && s.current(w):
		return nil
	case w.purpose != purposeRead && !w.deleting && w.available != available:
		return nil
	}
	o := &federation.Observed{Name: w.object}
	r := w.report
	if r == nil {
		return o
	}
	o.Managed, o.KubeFed, o.Invalid = r.managedBy == v1alpha1.ManagedBy, r.kubeFed == "true", r.error
	switch {
	case w.exact():
		o.Revision, o.Label = w.revision, r.revision
	case w.applied && w.answered(): // The content is another one, which is not known.
		o.Label = r.revision
	default:
		o.Revision, o.Label = s.before(w)
	}
	return o
}

// before returns the revision and the label of an object that the agent reported on before it has handled the present version, or nothing:
// the same resource version has the same content, whichever ManifestWork it was compared with. An earlier version of the ManifestWork may
// still be in flight. So the object never counts as what the present version asks for.
func (s *Works) before(w *work) (revision, label string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	known := s.contents[place{w.cluster, w.key}]
	if known.uid != w.report.uid || known.version != w.report.version || known.revision == w.revision {
		return "", ""
	}
	return known.revision, w.report.revision
}

// Reserved returns the keys of the objects that a member of the engine has by the engine's ManifestWorks, sorted. Objects with ACP's
// label or name that have no ManifestWork are not known.
func (m Members) Reserved(cluster string) []string {
	if !m.uses(cluster) {
		return nil
	}
	var out []string
	for _, w := range m.Works.in(cluster) {
		if o := m.Works.observe(cluster, w.key); w.purpose != purposeRead && o.Reachable && o.Object != nil {
			out = append(out, w.key)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Absent makes the agent read whether the member lacks an object. The ManifestWork of the question is new, so the answer is, too. If the
// member has the object, the engine handles it again.
func (m Members) Absent(ctx context.Context, cluster, key string) (bool, error) {
	if !m.uses(cluster) {
		return m.Base.Absent(ctx, cluster, key)
	}
	k, name := m.kindOf(key)
	if alive, _ := m.Works.alive(cluster); !alive {
		return false, fmt.Errorf("read %s in member %s: its agent does not answer", key, cluster)
	}
	d := named(k, name, cluster, purposeRead)
	d.name, d.expressions = readPrefix+strings.ToLower(rand.Text()), []string{"false"}
	if err := m.Works.write(ctx, &d, m.Works.nonce(cluster)); err != nil {
		return false, err
	}
	defer m.Works.forget(context.WithoutCancel(ctx), cluster, d.name)
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for backoff.Pause(limited, m.Works.config.Clock, readPoll) {
		switch w := m.Works.get(cluster, d.name); {
		case w == nil || !w.applied:
		case w.missing():
			return true, nil
		case w.available == available:
			m.Works.sighted(place{cluster, key})
			return false, nil
		}
	}
	return false, fmt.Errorf("read %s in member %s: its agent does not answer: %w", key, cluster, limited.Err())
}

func (m Members) kindOf(key string) (federation.Kind, string) {
	for _, k := range m.Kinds[1:] {
		if name, ok := strings.CutPrefix(key, k.Key("")); ok {
			return k, name
		}
	}
	return m.Kinds[0], key
}
