package ocm

import (
	"context"
	"crypto/rand"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/acp-io/acp/internal/federation"
)

// Heartbeats configures how a member is detected whose agent does not work.
type Heartbeats struct {
	// Interval is the time from an answer to the next heartbeat.
	Interval time.Duration
	// Timeout is how long an answer may take. A member without one counts as unreachable.
	Timeout time.Duration
}

// DefaultHeartbeats detects a stopped agent within 45 seconds. Each heartbeat is a write of the adapter and two of the agent on the host.
var DefaultHeartbeats = Heartbeats{Interval: 10 * time.Second, Timeout: 30 * time.Second}

// beat is the state of the heartbeats of a member.
type beat struct {
	// nonce is that of the last heartbeat.
	nonce string
	// epoch is the present epoch, or "" before the first answer; see Works.isOfPresentEpoch.
	epoch string
	// since is the time of the first heartbeat without an answer, or zero, and next is the time of the next heartbeat.
	since, next time.Time
	// alive reports whether the agent answered in time, and silent whether it did not. Both are false before the first answer.
	alive, silent bool
	// failed reports whether the last heartbeat could not be written.
	failed bool
}

// sendHeartbeats sends the heartbeats that are due, and reports the members that did not answer in time.
func (s *Works) sendHeartbeats(ctx context.Context) {
	used := map[string]bool{}
	var sending errgroup.Group
	sending.SetLimit(maxHeartbeats)
	for _, c := range s.config.Members.Clusters() {
		if !c.HasWorkAgent() || !s.listed(c.Name) {
			used[c.Name] = c.HasWorkAgent()
			continue
		}
		used[c.Name] = true
		if c.Engine != federation.EngineOCM {
			s.deleteRequests(ctx, c.Name)
			continue
		}
		nonce, lost := s.nextHeartbeat(c.Name, s.get(c.Name, heartbeatName))
		if lost {
			s.config.Changed(c.Name, "")
		}
		if nonce == "" {
			continue
		}
		sending.Go(func() error {
			s.sendHeartbeat(ctx, c.Name, nonce)
			return nil
		})
	}
	_ = sending.Wait() // it returns no error
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.beats {
		if !used[name] {
			delete(s.beats, name)
		}
	}
	maps.DeleteFunc(s.contents, func(at place, _ content) bool { return !used[at.cluster] })
	maps.DeleteFunc(s.handled, func(at place, _ string) bool { return !used[at.cluster] })
	maps.DeleteFunc(s.found, func(at place, _ int) bool { return !used[at.cluster] })
}

// sendHeartbeat writes a heartbeat. A host that does not answer in time delays no other member for long.
func (s *Works) sendHeartbeat(ctx context.Context, cluster, nonce string) {
	d := heartbeatRequest(cluster, s.config.Clock.Now(), s.unansweredSince(cluster))
	limited, cancel := context.WithTimeout(ctx, heartbeatTimeout)
	err := s.write(limited, &d, nonce)
	cancel()
	s.mu.Lock()
	b := s.beats[cluster]
	first := err != nil && !b.failed
	if b.failed = err != nil; err != nil {
		b.next = time.Time{} // It is due at the next tick.
	}
	s.mu.Unlock()
	if first && ctx.Err() == nil {
		s.config.Log.Error(err, "Heartbeat cannot be written, so it is not known whether the member's work agent works", "member", cluster)
	}
}

const (
	// maxHeartbeats is the number of heartbeats that are written at the same time, and heartbeatTimeout bounds each of them.
	maxHeartbeats    = 16
	heartbeatTimeout = 3 * time.Second
)

// deleteRequests deletes the heartbeat and the read requests of a member, because the member uses another engine.
func (s *Works) deleteRequests(ctx context.Context, cluster string) {
	for _, w := range s.allWorks(cluster) {
		if w.deleting || w.purpose != purposeHeartbeat && w.purpose != purposeRead {
			continue
		}
		if err := s.remove(ctx, w); err != nil { // it is tried again at the next tick
			s.config.Log.V(1).Info("ManifestWork was not deleted", "member", cluster, "name", w.name, "because", err.Error())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.beats, cluster) // The agent has to answer again when the member returns to the engine.
}

// nextHeartbeat returns the nonce of the heartbeat that is due, or "", and whether the agent of the member has just exceeded the timeout. last is
// the last heartbeat on the host, or nil.
func (s *Works) nextHeartbeat(cluster string, last *work) (nonce string, lost bool) {
	now := s.config.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.beats[cluster]
	if b == nil {
		b = &beat{}
		s.beats[cluster] = b
	}
	if !b.since.IsZero() && !b.silent && now.Sub(b.since) > s.config.Heartbeats.Timeout {
		b.alive, b.silent, lost = false, true, true
	}
	if now.Before(b.next) {
		return "", lost
	}
	epoch := b.epoch
	switch {
	case epoch == "" && !b.silent && s.epochContinues(last, now):
		epoch = last.epoch()
	case epoch == "" || b.silent:
		epoch = rand.Text()
	}
	if b.since.IsZero() {
		b.since = now
	}
	// A heartbeat without an answer is repeated, because its ManifestWork may have been changed.
	b.nonce, b.next = epoch+epochSeparator+rand.Text(), now.Add(s.config.Heartbeats.Timeout)
	return b.nonce, lost
}

// unansweredSince returns the time of the first heartbeat that a member's agent has not answered.
func (s *Works) unansweredSince(cluster string) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.beats[cluster].since
}

// epochContinues reports whether the epoch of a heartbeat that an earlier process wrote is still the present one: the heartbeat was answered, and
// is so recent that the agent would count as alive.
func (s *Works) epochContinues(last *work, now time.Time) bool {
	return last != nil && last.epoch() != "" && last.answered() && last.applied &&
		now.Sub(last.asked) <= s.config.Heartbeats.Interval+s.config.Heartbeats.Timeout
}

// alive reports whether the agent of a member answers, and whether that is known.
func (s *Works) alive(cluster string) (alive, known bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.beats[cluster]
	return b != nil && b.alive, b != nil && (b.alive || b.silent)
}

// onHeartbeat handles an event of a heartbeat, and records that the agent is alive if it handled the ManifestWork and reported on the object.
func (s *Works) onHeartbeat(w *work) {
	s.mu.Lock()
	b := s.beats[w.cluster]
	if b == nil || b.since.IsZero() || w.nonce != b.nonce || !w.answered() || !w.applied {
		s.mu.Unlock()
		return
	}
	found := !b.alive
	b.alive, b.silent, b.since, b.epoch = true, false, time.Time{}, w.epoch()
	b.next = s.config.Clock.Now().Add(s.config.Heartbeats.Interval)
	s.mu.Unlock()
	if found {
		s.config.Changed(w.cluster, "")
	}
}

// isOfPresentEpoch reports whether a ManifestWork was written in the present epoch of its member. An epoch ends when a heartbeat times out. While
// the agent cannot reach the host, it retries a report at growing intervals of up to 1000 seconds, so that an outdated report stays on the host for
// a while after the agent is connected again. So every ManifestWork of an earlier epoch is written again, with a nonce of the present one.
func (s *Works) isOfPresentEpoch(w *work) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b := s.beats[w.cluster]
	return b != nil && b.epoch != "" && b.epoch == w.epoch()
}

// nonce returns a new nonce of the present epoch of a member.
func (s *Works) nonce(cluster string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	epoch := ""
	if b := s.beats[cluster]; b != nil {
		epoch = b.epoch
	}
	return epoch + epochSeparator + rand.Text()
}
