package ocm

import (
	"context"
	"crypto/rand"
	"maps"
	"time"

	"github.com/acp-io/acp/internal/federation"
)

// Heartbeats configures how a member is detected whose agent does not work.
type Heartbeats struct {
	// Interval is the time from an answer to the next question.
	Interval time.Duration
	// Timeout is how long an answer may take. A member without one counts as unreachable.
	Timeout time.Duration
}

// DefaultHeartbeats detects a stopped agent within 45 seconds. Each heartbeat is a write of the adapter and two of the agent on the host.
var DefaultHeartbeats = Heartbeats{Interval: 10 * time.Second, Timeout: 30 * time.Second}

// beat is the state of the heartbeats of a member.
type beat struct {
	// nonce is the last question.
	nonce string
	// epoch is the present epoch, or "" before the first answer; see Works.current.
	epoch string
	// since is the time of the first question without an answer, or zero, and next is the time of the next question.
	since, next time.Time
	// alive reports that the agent answered in time, and silent that it did not. Both are false before the first answer.
	alive, silent bool
}

// ask sends the heartbeats that are due, and reports the members that did not answer in time.
func (s *Works) ask(ctx context.Context) {
	used := map[string]bool{}
	for _, c := range s.config.Members.Clusters() {
		if c.Engine != federation.EngineOCM {
			continue
		}
		used[c.Name] = true
		nonce, lost := s.question(c.Name, s.get(c.Name, heartbeatName))
		if lost {
			s.config.Changed(c.Name, "")
		}
		if nonce == "" {
			continue
		}
		d := heartbeat(c.Name, s.config.Clock.Now())
		if err := s.write(ctx, &d, nonce); err != nil {
			s.config.Log.V(1).Info("Heartbeat was not written", "member", c.Name, "because", err.Error())
			s.mu.Lock()
			s.beats[c.Name].next = time.Time{} // It is due at the next tick.
			s.mu.Unlock()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.beats {
		if !used[name] {
			delete(s.beats, name)
		}
	}
	maps.DeleteFunc(s.contents, func(at place, _ content) bool { return !used[at.cluster] })
	maps.DeleteFunc(s.sightings, func(at place, _ int) bool { return !used[at.cluster] })
}

// question returns the nonce of the heartbeat that is due, or "", and whether the member is found not to answer. last is the last
// heartbeat on the host, or nil.
func (s *Works) question(cluster string, last *work) (nonce string, lost bool) {
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
	case epoch == "" && !b.silent && s.continues(last, now):
		epoch = last.epoch()
	case epoch == "" || b.silent:
		epoch = rand.Text()
	}
	if b.since.IsZero() {
		b.since = now
	}
	// A question without an answer is repeated, because its ManifestWork may have been changed.
	b.nonce, b.next = epoch+epochSeparator+rand.Text(), now.Add(s.config.Heartbeats.Timeout)
	return b.nonce, lost
}

// continues reports whether the epoch of a heartbeat that an earlier process wrote goes on: it was answered, and so short a time ago that the
// agent would count as answering.
func (s *Works) continues(last *work, now time.Time) bool {
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

// beaten records the answer to a heartbeat: the agent handled the question and reported on the object.
func (s *Works) beaten(w *work) {
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

// current reports whether a ManifestWork was written in the present epoch of its member. An epoch ends when the agent is found not to
// answer. While the agent cannot reach the host, it repeats a report that failed at growing intervals of up to 1000 seconds, so that a
// report from before stays on the host for a while after the agent is back, although the object was changed in the meantime. So every
// ManifestWork of an earlier epoch is written again, with a nonce of the present one.
func (s *Works) current(w *work) bool {
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
