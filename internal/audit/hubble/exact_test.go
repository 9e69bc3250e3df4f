package hubble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/rollup"
	"github.com/acp-io/acp/internal/audit/spool"
	"github.com/acp-io/acp/internal/audit/sqlite"
)

// day is a generated day of a fleet with known truth: the connections made, the losses reported, and the spans that cannot be
// recovered.
type day struct {
	t       *testing.T
	r       *rand.Rand
	now     atomic.Int64 // in nanoseconds; the clock of the fleet and of the collector
	members []*memberDay
	store   *sqlite.Store
	unsure  *unreliableStore
	spool   string

	totals *rollup.Aggregator
	sp     *spool.Spool
	stop   func()
}

type memberDay struct {
	name     string
	observer *observer
	address  string
	n        int
	last     time.Time
	// truth counts connections by edge and hour; lost is the number of events that were reported as lost; gaps are the spans that
	// left the ring unread.
	truth   map[audit.Edge]map[time.Time]int64
	lost    int64
	gaps    []audit.Loss
	arrived *arrivals
}

// arrivals lets the test wait until the collector has ingested what was sent.
type arrivals struct {
	*rollup.Aggregator
	mu    sync.Mutex
	at    time.Time
	grown chan struct{}
}

func (a *arrivals) Add(t *audit.Event) {
	a.Aggregator.Add(t)
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.Time.After(a.at) {
		a.at = t.Time
		close(a.grown)
		a.grown = make(chan struct{})
	}
}

func (a *arrivals) until(t *testing.T, at time.Time) {
	t.Helper()
	for {
		a.mu.Lock()
		done, grown := !a.at.Before(at), a.grown
		a.mu.Unlock()
		if done {
			return
		}
		select {
		case <-grown:
		case <-time.After(30 * time.Second):
			t.Fatalf("got events up to %v, want up to %v", a.at, at)
		}
	}
}

// unreliableStore rejects batches, or stores them and loses the answer.
type unreliableStore struct {
	audit.Writer
	mu   sync.Mutex
	fail func() (before, after bool)
}

var errLostAnswer = errors.New("the connection was reset")

func (s *unreliableStore) Append(ctx context.Context, b *audit.Batch) error {
	s.mu.Lock()
	before, after := s.fail()
	s.mu.Unlock()
	if before {
		return errLostAnswer
	}
	if err := s.Writer.Append(ctx, b); err != nil || !after {
		return err
	}
	return errLostAnswer
}

// start starts the parts of the collector, as the program does.
func (d *day) start() {
	sp, err := spool.Open(spool.Config{Dir: d.spool, Store: d.unsure, Log: slog.New(slog.DiscardHandler), MinWait: time.Microsecond, MaxWait: time.Microsecond})
	if err != nil {
		d.t.Fatal(err)
	}
	totals, err := rollup.New(rollup.Config{Store: sp, Log: slog.New(slog.DiscardHandler), Now: d.clock})
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(d.t.Context())
	var running sync.WaitGroup
	running.Go(func() { sp.Run(ctx) })
	for _, m := range d.members {
		r, err := sp.Resume(d.t.Context(), m.name)
		if err != nil {
			d.t.Fatal(err)
		}
		m.arrived = &arrivals{Aggregator: totals, at: r.Position, grown: make(chan struct{})}
		cfg := config(m.address, newMemorySink())
		cfg.Member, cfg.Resume, cfg.Sink, cfg.Now, cfg.Members = m.name, sp, m.arrived, d.clock, len(d.members)
		f, err := New(cfg)
		if err != nil {
			d.t.Fatal(err)
		}
		f.started = t0.Add(-time.Second)
		running.Go(func() { f.Run(ctx) })
	}
	d.totals, d.sp, d.stop = totals, sp, func() { cancel(); running.Wait() }
}

func (d *day) clock() time.Time { return time.Unix(0, d.now.Load()).UTC() }

// send makes a member report n connections, in order, and adds them to the truth.
func (d *day) send(m *memberDay, n int, pace time.Duration) {
	var out []*observerpb.GetFlowsResponse
	for range n {
		m.n++
		m.last = m.last.Add(time.Millisecond + time.Duration(d.r.Int64N(int64(pace))).Truncate(time.Microsecond))
		d.now.Store(max(d.now.Load(), m.last.UnixNano()))
		count := int64(1)
		f := verdict(m.n, func(f *flowpb.Flow) {
			f.Uuid, f.Time = fmt.Sprintf("%s-%d", m.name, m.n), timestamppb.New(m.last)
			f.Source.Labels[0] = fmt.Sprintf("k8s:com.trip/appid=%d", 800+d.r.IntN(20))
			if d.r.IntN(5) == 0 {
				f.Verdict = flowpb.Verdict_DROPPED
			}
			if d.r.IntN(10) == 0 {
				count = int64(2 + d.r.IntN(8))
				f.Aggregate = &flowpb.Aggregate{IngressFlowCount: uint32(count)}
			}
		})
		switch d.r.IntN(50) {
		case 0: // lost before the ring, and reported as lost
			k := int64(1 + d.r.IntN(30))
			out = append(out, lostResponse(m.last, flowpb.LostEventSource_PERF_EVENT_RING_BUFFER, uint64(k)))
			m.lost += k
			continue
		case 1: // delivered twice
			out = append(out, flowResponse(f))
		case 2: // an event that is not counted
			out = append(out, flowResponse(verdict(m.n, trace(flowpb.TraceReason_REPLY), func(x *flowpb.Flow) { x.Time = f.Time })))
		}
		out = append(out, flowResponse(f))
		m.count(f, count)
	}
	// The last event is always a connection, so that the test can wait for it.
	m.n++
	m.last = m.last.Add(time.Millisecond)
	d.now.Store(max(d.now.Load(), m.last.UnixNano()))
	f := verdict(m.n, func(f *flowpb.Flow) { f.Uuid, f.Time = fmt.Sprintf("%s-%d", m.name, m.n), timestamppb.New(m.last) })
	m.count(f, 1)
	m.observer.emit(append(out, flowResponse(f))...)
}

func (m *memberDay) count(f *flowpb.Flow, n int64) {
	o := observationOf(f)
	o.Cluster, o.Destination.Cluster = m.name, m.name
	s := snapshot()
	hour := o.Time.Truncate(time.Hour)
	for _, e := range audit.Attribute(s, o).Edges(s) {
		if m.truth[e] == nil {
			m.truth[e] = map[time.Time]int64{}
		}
		m.truth[e][hour] += n
	}
}

// moveOn drops events from the ring of a member up to a point that nothing has read yet.
func (d *day) moveOn(m *memberDay) {
	position := m.last
	before, lost := m.copyTruth(), m.lost
	d.send(m, 20+d.r.IntN(50), time.Second)
	m.truth, m.lost = before, lost // these connections cannot be recovered
	m.observer.mu.Lock()
	n := len(m.observer.ring)
	m.observer.mu.Unlock()
	m.observer.forget(n)
	d.send(m, 5, time.Second)
	m.observer.mu.Lock()
	first := m.observer.ring[0].GetTime().AsTime()
	m.observer.mu.Unlock()
	m.gaps = append(m.gaps, audit.Loss{Cluster: m.name, Reason: audit.LossGap, From: position, To: first})
}

func (m *memberDay) copyTruth() map[audit.Edge]map[time.Time]int64 {
	out := map[audit.Edge]map[time.Time]int64{}
	for e, hours := range m.truth {
		out[e] = map[time.Time]int64{}
		for h, n := range hours {
			out[e][h] = n
		}
	}
	return out
}

// settle waits until everything that was sent is in the store.
func (d *day) settle() {
	d.unsure.mu.Lock()
	fail := d.unsure.fail
	d.unsure.fail = func() (bool, bool) { return false, false }
	d.unsure.mu.Unlock()
	for _, m := range d.members {
		m.arrived.until(d.t, m.last)
	}
	for d.totals.Flush(d.t.Context()) != nil || d.sp.Pending() > 0 {
		if d.t.Context().Err() != nil {
			d.t.Fatal("the store was not reachable")
		}
	}
	d.unsure.mu.Lock()
	d.unsure.fail = fail
	d.unsure.mu.Unlock()
}

// TestADayIsCountedExactly runs events through gRPC, the collector, its spool, the store and the queries, with restarts, crashes,
// broken streams, lost answers, repeated events and losses of every kind. Every connection is counted once or recorded as lost.
func TestADayIsCountedExactly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	d := &day{t: t, r: r, store: store, spool: filepath.Join(t.TempDir(), "spool")}
	d.now.Store(t0.UnixNano())
	fails := rand.New(rand.NewPCG(seed, 4))
	d.unsure = &unreliableStore{Writer: store, fail: func() (bool, bool) { return fails.IntN(3) == 0, fails.IntN(3) == 0 }}
	for _, name := range []string{"m1", "m2", "m3"} {
		m := &memberDay{name: name, observer: newObserver(), last: t0, truth: map[audit.Edge]map[time.Time]int64{}}
		m.address = serve(t, m.observer, insecure.NewCredentials())
		d.members = append(d.members, m)
	}
	d.start()
	for end := t0.Add(24 * time.Hour); d.clock().Before(end); {
		for _, m := range d.members {
			pace := []time.Duration{5 * time.Millisecond, 200 * time.Millisecond, 2 * time.Minute}[r.IntN(3)]
			d.send(m, 10+r.IntN(40), pace)
		}
		switch r.IntN(6) {
		case 0: // the process is killed, with everything in memory
			d.stop()
			d.start()
		case 1: // the process is killed after it has ingested everything and stored what it could
			for _, m := range d.members {
				m.arrived.until(t, m.last)
			}
			_ = d.totals.Flush(t.Context()) // the answer may be lost
			d.stop()
			d.start()
		case 2: // a relay restarts
			m := d.members[r.IntN(len(d.members))]
			m.observer.breakBefore(m.observer.base + 1)
			m.observer.breakBefore(0)
		case 3:
			_ = d.totals.Flush(t.Context()) // the answer may be lost
		case 4: // the collector is away for so long that a ring drops events
			d.settle()
			d.stop()
			d.moveOn(d.members[r.IntN(len(d.members))])
			d.start()
		case 5:
			d.settle()
		}
	}
	d.settle()
	d.stop()
	for _, m := range d.members {
		d.check(m)
	}
}

func (d *day) check(m *memberDay) {
	d.t.Helper()
	own := audit.Filter{Clusters: []string{m.name}}
	want, got := map[audit.Edge]int64{}, map[audit.Edge]int64{}
	hours, gotHours := map[string]int64{}, map[string]int64{}
	for e, truth := range m.truth {
		for hour, n := range truth {
			want[e] += n
			hours[fmt.Sprint(hour, " ", e.Decision)] += n
		}
	}
	if err := d.store.Totals(d.t.Context(), own, func(x audit.Total) error { got[x.Edge] = x.Count; return nil }); err != nil {
		d.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Errorf("%s: totals (-truth +stored):\n%s", m.name, diff)
	}
	window := own
	window.Since, window.Until = t0, m.last.Add(time.Hour)
	points, err := d.store.Series(d.t.Context(), audit.SeriesQuery{Filter: window, Step: time.Hour})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, p := range points {
		gotHours[fmt.Sprint(p.Start, " ", p.Decision)] += p.Count
	}
	if diff := cmp.Diff(hours, gotHours); diff != "" {
		d.t.Errorf("%s: by hour (-truth +stored):\n%s", m.name, diff)
	}
	var lost int64
	var gaps []audit.Loss
	for q := (audit.LossQuery{Clusters: []string{m.name}, Limit: audit.MaxPage}); ; {
		page, err := d.store.Losses(d.t.Context(), q)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, l := range page.Items {
			switch l.Reason {
			case audit.LossDataplane:
				lost += l.Count
			case audit.LossGap:
				gaps = append(gaps, l)
			default:
				d.t.Errorf("%s: unexpected loss: %+v", m.name, l)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if lost != m.lost {
		d.t.Errorf("%s: got %d events recorded as lost, want %d", m.name, lost, m.lost)
	}
	for _, want := range m.gaps {
		covered := false
		for _, g := range gaps {
			covered = covered || !g.From.After(want.From.Truncate(time.Microsecond)) && !g.To.Before(want.To.Truncate(time.Microsecond))
		}
		if !covered {
			d.t.Errorf("%s: no gap covers %v to %v: got %+v", m.name, want.From, want.To, gaps)
		}
	}
	if len(gaps) > len(m.gaps) {
		d.t.Errorf("%s: got %d gaps, want %d: %+v", m.name, len(gaps), len(m.gaps), gaps)
	}
}
