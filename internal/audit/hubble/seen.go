package hubble

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/protobuf/proto"

	"github.com/acp-io/acp/internal/audit"
)

// overlap is how far before its position a source is resumed: nodes' events reach a relay out of order, and an agent's
// ring holds back its newest event until another comes.
const overlap = 10 * time.Second

// maxSeen bounds the events of the overlap. Events that lie before what is forgotten already, or all at one instant, would
// otherwise be kept as long as they keep coming; beyond the bound some may be counted twice after a reconnection.
const maxSeen = 1 << 20

// seen knows the events of the overlap.
type seen struct {
	limit  int
	events map[uint64]time.Time
	// position is the newest time of an event, never later than the collector's own clock: one node with a clock ahead
	// must not make the others' events look old.
	position time.Time
	swept    time.Time
}

func newSeen(r audit.Resume) *seen {
	s := &seen{limit: maxSeen, events: make(map[uint64]time.Time, len(r.Seen)), position: r.Position}
	for _, e := range r.Seen {
		s.events[e.ID] = e.Time
	}
	return s
}

// take reports whether the event is new, and moves the position.
func (s *seen) take(id uint64, at, now time.Time) bool {
	if _, dup := s.events[id]; dup {
		return false
	}
	if len(s.events) >= s.limit {
		s.sweep()
		if len(s.events) >= s.limit {
			clear(s.events)
		}
	}
	s.events[id] = at
	if at.After(now) {
		at = now
	}
	if at.After(s.position) {
		s.position = at
	}
	if forget := s.forget(); forget.Sub(s.swept) > overlap {
		s.sweep()
		s.swept = forget
	}
	return true
}

func (s *seen) sweep() {
	forget := s.forget()
	for id, at := range s.events {
		if at.Before(forget) {
			delete(s.events, id)
		}
	}
}

// forget is the time before which no event is asked for again.
func (s *seen) forget() time.Time {
	if s.position.IsZero() {
		return time.Time{}
	}
	return s.position.Add(-overlap)
}

// identify gives an event a number that is the same whenever it is delivered. Flows have a UUID; without one, what
// describes them must do.
func identify(f *flowpb.Flow) uint64 {
	h := fnv.New64a()
	if id := f.GetUuid(); id != "" {
		_, _ = h.Write([]byte(id)) // a hash never fails
		return h.Sum64()
	}
	writeTime(h, f.GetTime().AsTime())
	for _, part := range []string{f.GetNodeName(), f.GetIP().GetSource(), f.GetIP().GetDestination(), f.GetVerdict().String()} {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	// The text form of a message differs between builds on purpose; the wire form does not.
	for _, m := range []proto.Message{f.GetL4(), f.GetEventType()} {
		if b, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m); err == nil {
			_, _ = h.Write(b)
		}
	}
	return h.Sum64()
}

// identifyLost is the same for a report of lost events, which has no UUID.
func identifyLost(r *observerpb.GetFlowsResponse) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("lost\x00" + r.GetNodeName() + "\x00" + r.GetLostEvents().GetSource().String() + "\x00"))
	writeTime(h, r.GetTime().AsTime())
	_ = binary.Write(h, binary.BigEndian, r.GetLostEvents().GetNumEventsLost())
	_ = binary.Write(h, binary.BigEndian, r.GetLostEvents().GetCpu().GetValue())
	return h.Sum64()
}

func writeTime(w interface{ Write([]byte) (int, error) }, t time.Time) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(t.UnixNano()))
	_, _ = w.Write(b[:])
}
