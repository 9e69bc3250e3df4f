package gormstore

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/testenv"
)

// replicas returns separate stores on one PostgreSQL, as several portals have.
func replicas(t *testing.T, n int) []*Store {
	t.Helper()
	dsn := testenv.Postgres(t)
	out := make([]*Store, n)
	for i := range out {
		out[i] = New(databasetest.Open(t, dsn))
	}
	return out
}

func approve(x *approval.Ticket, people ...string) error {
	for _, p := range people {
		if err := x.Vote(0, approvaltest.Yes(p, approvaltest.Start)); err != nil {
			return err
		}
	}
	return nil
}

func verify(t *testing.T, s *Store) int64 {
	t.Helper()
	n, _, err := ledger.Verify(ledgerstore.NewReader(s.db).Lines(t.Context(), 1))
	if err != nil {
		t.Errorf("the ledger is a chain: %v", err)
	}
	return n
}

func TestTwoApproversAtTheSameInstant(t *testing.T) {
	stores := replicas(t, 2)
	for round := range 10 {
		x, err := stores[0].Create(t.Context(), approvaltest.Ticket(fmt.Sprint("a", round), "r", ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stores[0].Update(t.Context(), x.Number, func(x *approval.Ticket) error {
			return approve(x, "carol")
		}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		results := make([]error, 2)
		for i, who := range []string{"bob", "dan"} {
			wg.Go(func() {
				_, results[i] = stores[i].Update(t.Context(), x.Number, func(x *approval.Ticket) error {
					if x.Version != 2 {
						return &approval.Error{Code: approval.CodeStale, Message: message.Verbatim("stale")}
					}
					return approve(x, who)
				})
			})
		}
		wg.Wait()
		if (results[0] == nil) == (results[1] == nil) || approval.CodeOf(errors.Join(results...)) != approval.CodeStale {
			t.Fatalf("one of them decides and the other gets an error about a stale version: %v", results)
		}
		got, err := stores[1].Get(t.Context(), x.Number)
		if err != nil || got.Version != 3 || got.State() != approval.StateApproved {
			t.Errorf("the step is filled once: version %d, %s, %v", got.Version, got.State(), err)
		}
	}
	if n := verify(t, stores[0]); n < 30 {
		t.Errorf("every decision has its line, got %d", n)
	}
}

func TestOneRequestTwice(t *testing.T) {
	stores := replicas(t, 2)
	for name, tc := range map[string]struct {
		reason, key string
		same        bool
	}{
		"key":   {"the same key gives the same ticket to both", "key-12345", true},
		"claim": {"without it the second is a duplicate that names the first", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 10 {
				var wg sync.WaitGroup
				made, errs := make([]*approval.Ticket, len(stores)), make([]error, len(stores))
				for i, s := range stores {
					key := tc.key
					if key != "" {
						key += fmt.Sprint(round)
					}
					wg.Go(func() {
						made[i], errs[i] = s.Create(t.Context(), approvaltest.Ticket(fmt.Sprint(name, round), "r", key))
					})
				}
				wg.Wait()
				if tc.same {
					if errs[0] != nil || errs[1] != nil || made[0].Number != made[1].Number {
						t.Fatalf("%s: %v", tc.reason, errs)
					}
					continue
				}
				first := made[0]
				if first == nil {
					first = made[1]
				}
				var dup *approval.Error
				if first == nil || !errors.As(errors.Join(errs...), &dup) || dup.Code != approval.CodeDuplicate || dup.Ticket != first.Number {
					t.Fatalf("%s: %v", tc.reason, errs)
				}
			}
		})
	}
	verify(t, stores[0])
}

// Workers of two replicas, each of which ends while it has the lease of its first job, do every job once.
func TestNoJobIsDoneTwice(t *testing.T) {
	stores := replicas(t, 2)
	const tickets = 20
	for i := range tickets {
		x, err := stores[0].Create(t.Context(), approvaltest.Ticket(fmt.Sprint("a", i), fmt.Sprint("r", i%5), ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stores[0].Update(t.Context(), x.Number, func(x *approval.Ticket) error { return approve(x, "carol", "bob") }); err != nil {
			t.Fatal(err)
		}
	}
	now := approvaltest.Start.Add(time.Hour)
	var lost []*approval.Job
	for i, s := range stores {
		j, err := s.Lease(t.Context(), fmt.Sprint("lost", i), now, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		lost = append(lost, j)
	}
	later := now.Add(time.Minute)
	var mu sync.Mutex
	done, working := map[int64]int{}, map[string]int64{}
	var wg sync.WaitGroup
	for i, s := range stores {
		for w := range 3 {
			wg.Go(func() {
				for {
					j, err := s.Lease(t.Context(), fmt.Sprint(i, w), later, time.Hour)
					if errors.Is(err, approval.ErrNoJob) {
						mu.Lock()
						all := len(done) == tickets
						mu.Unlock()
						if all {
							return
						}
						continue // other workers have leased all jobs that are due
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if other := working[j.Key]; other != 0 {
						t.Errorf("jobs %d and %d of %s are done at once", other, j.ID, j.Key)
					}
					working[j.Key] = j.ID
					mu.Unlock()
					mu.Lock()
					delete(working, j.Key)
					done[j.ID]++
					mu.Unlock()
					if _, err := s.Finish(t.Context(), j, func(*approval.Ticket) error { return nil }); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	for id, n := range done {
		if n != 1 {
			t.Errorf("job %d was done %d times", id, n)
		}
	}
	for i, j := range lost {
		if done[j.ID] != 1 {
			t.Errorf("job %d of a lost worker was done %d times after its lease", j.ID, done[j.ID])
		}
		if _, err := stores[i].Finish(t.Context(), j, func(*approval.Ticket) error { return nil }); !errors.Is(err, approval.ErrLeaseLost) {
			t.Errorf("a worker whose lease expired has lost the job, got %v", err)
		}
	}
}

// Stores that write concurrently, each in batches of its own, produce one chain of ledger lines.
func TestLedgerOfManyWriters(t *testing.T) {
	stores := replicas(t, 3)
	var wg sync.WaitGroup
	const each = 15
	for i, s := range stores {
		for w := range 4 {
			wg.Go(func() {
				for n := range each {
					if _, err := s.Create(t.Context(), approvaltest.Ticket(fmt.Sprint("a", i, "-", w), fmt.Sprint("r", n), "")); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if n, want := verify(t, stores[0]), int64(len(stores)*4*each); n != want {
		t.Errorf("the chain has %d lines, want %d", n, want)
	}
}
