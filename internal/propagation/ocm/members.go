package ocm

import (
	"context"
	"crypto/rand"
	"errors"
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

// Members is the read-back from the members: by Base, and by the agents' reports from those members of the engine that the host has no
// credentials of.
type Members struct {
	Base interface {
		federation.Members
		Reserved(cluster string) []string
	}
	Works *Works
	// Of is the store of the objects that are read.
	Of Scope
	// BaseReads reports whether Base has credentials of a member; nil means that it has none of the engine's members.
	BaseReads func(cluster string) bool
	// Kind is the kind of the objects that are read, by name.
	Kind federation.Kind
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

// byAgent reports whether a member is read by its agent's reports.
func (m Members) byAgent(cluster string) bool {
	c, ok := m.Cluster(cluster)
	return ok && c.Engine == federation.EngineOCM && (m.BaseReads == nil || !m.BaseReads(cluster))
}

// Observe returns the observation of an object in a member. That of a member of the engine is as old as the agent's report, which the
// agent repeats at an interval of its own (10 to 19 seconds by default). An object without a ManifestWork counts as absent; Absent reads it
// before a decision depends on that.
func (m Members) Observe(cluster, name string) federation.Observation {
	if !m.byAgent(cluster) {
		return m.Base.Observe(cluster, name)
	}
	return m.Works.observe(cluster, m.key(name))
}

// key returns the key of an object among those of all stores.
func (m Members) key(name string) string { return m.Of.key(m.Kind.Key(name)) }

// name returns the name of an object with a key among those of all stores; false if it is one of another kind.
func (m Members) name(key string) (name string, ok bool) {
	if key, ok = m.Of.Own(key); !ok {
		return "", false
	}
	if prefix := m.Kind.Key(""); prefix != "" {
		return strings.CutPrefix(key, prefix)
	}
	return key, !strings.Contains(key, "/")
}

func (s *Works) observe(cluster, key string) federation.Observation {
	o := federation.Observation{Registered: true}
	if err := s.unreadReason(cluster); err != nil {
		o.Unknown, o.Message = errors.Is(err, errNotListed), message.MemberWorksUnreadable(cluster)
		return o
	}
	if alive, known := s.alive(cluster); !alive {
		o.Unknown, o.Message = !known, message.MemberAgentSilent(cluster)
		return o
	}
	w := s.workOf(cluster, key)
	switch {
	case w != nil && w.available == unreadable:
		o.Message = message.MemberAgentCannotRead(cluster)
	case w != nil && w.purpose != purposeRead && w.available != "" && !s.isOfPresentEpoch(w):
		// The report is older than the last outage of the agent.
		o.Unknown, o.Message = true, message.MemberNotContacted(cluster)
	default:
		o.Reachable, o.Object = true, s.object(w)
	}
	return o
}

// object returns what a member has according to the last report of a ManifestWork, or nil. For a ManifestWork that is being deleted, and for a
// read request without an answer, it returns an object, because the member may have one.
func (s *Works) object(w *work) *federation.Observed {
	switch {
	case w == nil:
		return nil
	case w.purpose == purposeRead && w.applied && w.missing() && s.isOfPresentEpoch(w):
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
		o.Revision, o.Label = s.lastKnownContent(w)
	}
	return o
}

// lastKnownContent returns the revision and the label of an object whose content was compared with an earlier version of the ManifestWork, or "":
// an object that still has the same resource version still has this content. The result is never the revision of the present version, because the
// agent may still be applying an earlier one.
func (s *Works) lastKnownContent(w *work) (revision, label string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	known := s.contents[place{w.cluster, w.key}]
	if known.uid != w.report.uid || known.version != w.report.version || known.revision == w.revision {
		return "", ""
	}
	return known.revision, w.report.revision
}

// Reserved returns the names of a member's objects that have ACP's label or name prefix, sorted. Of a member that is read by its agent's
// reports, only those are known that have a ManifestWork.
func (m Members) Reserved(cluster string) []string {
	if !m.byAgent(cluster) {
		return m.Base.Reserved(cluster)
	}
	var out []string
	for _, w := range m.Works.objectWorks(cluster) {
		if o := m.Works.observe(cluster, w.key); w.purpose != purposeRead && o.Reachable && o.Object != nil {
			if name, own := m.name(w.key); own {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Absent makes the agent read whether the member lacks an object. Each read request is a new ManifestWork, so its report is not an earlier one. If
// the member has the object, the engine handles it again.
func (m Members) Absent(ctx context.Context, cluster, name string) (bool, error) {
	if !m.byAgent(cluster) {
		return m.Base.Absent(ctx, cluster, name)
	}
	if alive, _ := m.Works.alive(cluster); !alive {
		return false, fmt.Errorf("read %s in member %s: its agent does not answer", name, cluster)
	}
	d := newDesired(m.Kind, name, cluster, purposeRead, m.Of)
	d.name, d.expressions = readPrefix+strings.ToLower(rand.Text()), []string{"false"}
	if err := m.Works.write(ctx, &d, m.Works.nonce(cluster)); err != nil {
		return false, err
	}
	defer m.Works.deleteReadRequest(context.WithoutCancel(ctx), cluster, d.name)
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for backoff.Pause(limited, m.Works.config.Clock, readPoll) {
		switch w := m.Works.get(cluster, d.name); {
		case w == nil || !w.applied:
		case w.missing():
			return true, nil
		case w.available == available:
			m.Works.countFound(place{cluster, m.key(name)})
			return false, nil
		}
	}
	return false, fmt.Errorf("read %s in member %s: its agent does not answer: %w", name, cluster, limited.Err())
}
