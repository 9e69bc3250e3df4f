package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
)

var errAway = fmt.Errorf("%w: no route", audit.ErrUnavailable)

// store is an audit.Writer that records batches, or returns an error while one is set.
type store struct {
	mu      sync.Mutex
	grown   chan struct{}
	err     error
	batches []*audit.Batch
	resume  audit.Resume
}

func newStore() *store { return &store{grown: make(chan struct{})} }

func (s *store) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *store) Append(_ context.Context, b *audit.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.batches = append(s.batches, b)
	close(s.grown)
	s.grown = make(chan struct{})
	return nil
}

func (s *store) Resume(context.Context, string) (audit.Resume, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resume, s.err
}

func (s *store) Prune(context.Context, audit.Retention) (int64, error) { return 7, nil }

func (s *store) Lease(context.Context, string, string, time.Duration) (bool, error) { return true, nil }

func (s *store) Release(context.Context, string, string) error { return nil }

func (s *store) Holder(context.Context, string) (string, error) { return "", nil }

// until waits until the store has exactly the batches with these IDs, in this order.
func (s *store) until(t *testing.T, want ...string) {
	t.Helper()
	for {
		s.mu.Lock()
		var got []string
		for _, b := range s.batches {
			got = append(got, b.ID)
		}
		grown := s.grown
		s.mu.Unlock()
		if len(got) >= len(want) {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("batches (-want +got):\n%s", diff)
			}
			return
		}
		select {
		case <-grown:
		case <-time.After(time.Minute):
			t.Fatalf("got batches %q in the store, want %q", got, want)
		}
	}
}

func open(t *testing.T, dir string, s audit.Writer, change ...func(*Config)) *Spool {
	t.Helper()
	cfg := Config{Dir: dir, Store: s, Log: slog.New(slog.DiscardHandler), MinWait: time.Millisecond, MaxWait: time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	out, err := Open(cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return out
}

func run(t *testing.T, s *Spool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// batch returns the batch of the i-th second of a source.
func batch(i int) *audit.Batch {
	at := audittest.T0.Add(time.Duration(i) * time.Second)
	e := audittest.Edge(func(e *audit.Edge) { e.Cluster = "m1" })
	return &audit.Batch{
		ID:      fmt.Sprint(i),
		Rollups: []audit.Rollup{{Bucket: at.Truncate(time.Minute), Edge: e, Count: int64(i + 1), FirstSeen: at, LastSeen: at}},
		Flows: []audit.Flow{
			{Time: at, Node: "n", Edge: e, SourceAddress: netip.MustParseAddr("10.0.0.1"), DestinationAddress: netip.MustParseAddr("fd00::1"), Count: 1},
		},
		Losses:     []audit.Loss{{Cluster: "m1", Reason: audit.LossRing, Count: 2, From: at, To: at}},
		Positions:  []audit.Position{{Source: "m1", Time: at}},
		Watched:    []audit.WatchedSpan{{Source: "m1", From: at.Add(-time.Second), To: at}},
		Seen:       []audit.SeenEvent{{Source: "m1", Time: at, ID: uint64(i)}, {Source: "m1", Time: at, ID: 1 << 63}},
		ForgetSeen: map[string]time.Time{"m1": at.Add(-10 * time.Second)},
	}
}

func TestBatchesAreReplayedInOrder(t *testing.T) {
	s := newStore()
	sp := open(t, t.TempDir(), s)
	add := func(from, to int) {
		for i := from; i < to; i++ {
			if err := sp.Append(t.Context(), batch(i)); err != nil {
				t.Fatalf("Append: %v", err)
			}
		}
	}
	add(0, 2)
	s.set(errAway)
	add(2, 5)
	if err := sp.Err(); !errors.Is(err, audit.ErrUnavailable) {
		t.Errorf("Err: got %v, want the store's error", err)
	}
	s.set(nil)
	add(5, 6) // behind the waiting batches
	run(t, sp)
	s.until(t, "0", "1", "2", "3", "4", "5")
	if diff := cmp.Diff(batch(3), s.batches[3], cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("replayed batch (-appended +stored):\n%s", diff)
	}
}

func TestOpenReplaysBatchesOfAnEarlierRun(t *testing.T) {
	dir, s := t.TempDir(), newStore()
	s.set(errAway)
	sp := open(t, dir, s)
	for i := range 3 {
		if err := sp.Append(t.Context(), batch(i)); err != nil {
			t.Fatal(err)
		}
	}
	// The process was killed while it wrote the next batch.
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000003.batch.tmp"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.set(nil)
	sp = open(t, dir, s)
	run(t, sp)
	if err := sp.Append(t.Context(), batch(4)); err != nil {
		t.Fatal(err)
	}
	s.until(t, "0", "1", "2", "4")
}

func TestDamagedBatchIsRecordedAsLoss(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"TornTail": func(b []byte) []byte { return b[:len(b)-5] },
		"BitFlip":  func(b []byte) []byte { b[len(b)-9] ^= 4; return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir, s := t.TempDir(), newStore()
			s.set(errAway)
			if err := open(t, dir, s).Append(t.Context(), batch(4)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "00000000000000000000.batch")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			s.set(nil)
			run(t, open(t, dir, s))
			s.until(t, "4")
			at := batch(4).Rollups[0].FirstSeen
			want := []audit.Loss{{Cluster: "m1", Reason: audit.LossStore, Count: 5, From: at, To: at}}
			if diff := cmp.Diff(want, s.batches[0].Losses); diff != "" || len(s.batches[0].Rollups) > 0 {
				t.Errorf("in place of the batch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFullSpoolReturnsErrFull(t *testing.T) {
	s := newStore()
	s.set(errAway)
	one := func() int64 {
		b, err := encode(batch(0))
		if err != nil {
			t.Fatal(err)
		}
		return int64(len(b))
	}()
	sp := open(t, t.TempDir(), s, func(c *Config) { c.MaxBytes = 5 * one / 2 })
	for i := range 2 {
		if err := sp.Append(t.Context(), batch(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := sp.Append(t.Context(), batch(2)); !errors.Is(err, ErrFull) {
		t.Fatalf("Append: %v, want ErrFull", err)
	}
	s.set(nil)
	for range 2 {
		if _, err := sp.replayOldest(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := sp.Append(t.Context(), batch(2)); err != nil {
		t.Fatalf("Append with room again: %v", err)
	}
	s.until(t, "0", "1", "2")
}

func TestFailingDiskReturnsErrFull(t *testing.T) {
	dir, s := t.TempDir(), newStore()
	s.set(errAway)
	sp := open(t, filepath.Join(dir, "spool"), s)
	if err := os.Remove(filepath.Join(dir, "spool")); err != nil {
		t.Fatal(err)
	}
	if err := sp.Append(t.Context(), batch(0)); !errors.Is(err, ErrFull) || sp.Pending() > 0 {
		t.Errorf("Append: got %v with %d pending, want ErrFull and none pending", err, sp.Pending())
	}
}

// slowStore accepts a batch only if the context lasts long enough.
type slowStore struct {
	*store
	need time.Duration
}

func (s *slowStore) Append(ctx context.Context, b *audit.Batch) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < s.need {
		return context.DeadlineExceeded
	}
	return s.store.Append(ctx, b)
}

func TestReplayTimeoutGrowsForASlowStore(t *testing.T) {
	s := &slowStore{newStore(), time.Second}
	sp := open(t, t.TempDir(), s, func(c *Config) { c.Timeout = s.need / 5 })
	if err := sp.Append(t.Context(), batch(0)); err != nil {
		t.Fatal(err)
	}
	run(t, sp)
	s.until(t, "0")
}

func TestBatchesOfALostLeaseAreDiscarded(t *testing.T) {
	s := newStore()
	s.set(errAway)
	sp := open(t, t.TempDir(), s)
	b := batch(0)
	b.Holder = "gone"
	if err := sp.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s.set(fmt.Errorf("append: %w", audit.ErrNotHolder))
	for more := true; more; {
		var err error
		if more, err = sp.replayOldest(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := sp.Append(t.Context(), batch(1)); !errors.Is(err, audit.ErrNotHolder) {
		t.Errorf("Append: got %v, want ErrNotHolder of the store", err)
	}
	if len(s.batches) > 0 || sp.Err() != nil {
		t.Errorf("got batches %v and Err %v, want neither", s.batches, sp.Err())
	}
}

func TestResume(t *testing.T) {
	at := func(i int) time.Time { return audittest.T0.Add(time.Duration(i) * time.Second) }
	for name, tc := range map[string]struct {
		reason   string
		from, to int
		away     bool
		holder   string
		want     time.Time
		seen     int
		err      bool
	}{
		"Together": {reason: "the spool is newer, and some of the overlap is in the store", from: 5, to: 8, want: at(7), seen: 3*2 + 1},
		"Away":     {reason: "the spool reaches back over the overlap", from: 5, to: 30, away: true, want: at(29), seen: 11 * 2},
		"TooShort": {reason: "some of the overlap is only in the store", from: 5, to: 8, away: true, err: true},
		"Leased":   {reason: "another collector may hold the lease when the batches are replayed", from: 5, to: 30, holder: "me", want: at(4), seen: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.set(errAway)
			dir := t.TempDir()
			sp := open(t, dir, s)
			for i := tc.from; i < tc.to; i++ {
				b := batch(i)
				b.Holder = tc.holder
				if err := sp.Append(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
			if !tc.away {
				s.set(nil)
			}
			s.resume = audit.Resume{Position: at(4), Seen: []audit.SeenEvent{{Source: "m1", Time: at(4), ID: 4}}}
			r, err := open(t, dir, s).Resume(t.Context(), "m1")
			if (err != nil) != tc.err {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if !r.Position.Equal(tc.want) || len(r.Seen) != tc.seen {
				t.Errorf("%s: got position %v and %d events, want %v and %d", tc.reason, r.Position, len(r.Seen), tc.want, tc.seen)
			}
		})
	}
}

// FuzzDecode verifies that every input decodes to a batch or to errDamaged.
func FuzzDecode(f *testing.F) {
	b, err := encode(batch(3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Add(appendPart(appendPart(nil, []byte("{}")), []byte("no gzip")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := decode(b); err != nil && !errors.Is(err, errDamaged) {
			t.Errorf("decode: %v", err)
		}
	})
}

// TestLossesOfABatch verifies that a damaged batch records how many connections it contained, without those that were only seen
// to be still open.
func TestLossesOfABatch(t *testing.T) {
	b := batch(4)
	open := b.Rollups[0]
	open.Count, open.Cluster = 0, "m2"
	b.Rollups = append(b.Rollups, open)
	e := entry{header: headerOf(b)}
	at := b.Rollups[0].FirstSeen
	want := []audit.Loss{{Cluster: "m1", Reason: audit.LossStore, Count: 5, From: at, To: at}}
	if diff := cmp.Diff(want, e.lossBatch().Losses); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}
}
