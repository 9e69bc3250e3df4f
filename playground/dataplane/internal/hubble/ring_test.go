package hubble

import (
	"context"
	"errors"
	"strconv"
	"testing"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/google/go-cmp/cmp"
)

func numbered(n int) *flowpb.Flow { return &flowpb.Flow{Uuid: strconv.Itoa(n)} }

func fill(r *Ring, from, to int) {
	for n := from; n < to; n++ {
		r.Add(numbered(n))
	}
}

// read returns what a reader receives: uuids, and "lost N".
func read(t *testing.T, r *Ring, from uint64) []string {
	t.Helper()
	var got []string
	err := r.follow(context.Background(), from, false,
		func(f *flowpb.Flow) error { got = append(got, f.GetUuid()); return nil },
		func(n uint64) error { got = append(got, "lost "+strconv.FormatUint(n, 10)); return nil })
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
	return got
}

func TestRing(t *testing.T) {
	cases := map[string]struct {
		reason string
		added  int
		from   uint64
		want   []string
	}{
		"Empty":    {"nothing came yet", 0, 0, nil},
		"Partial":  {"a ring that is not full shows all", 2, 0, []string{"0", "1"}},
		"Full":     {"a full ring shows all", 3, 0, []string{"0", "1", "2"}},
		"TooSlow":  {"a reader that was overtaken learns how many it lost, then sees the rest", 5, 0, []string{"lost 2", "2", "3", "4"}},
		"AtOldest": {"a reader at the oldest flow lost nothing", 5, 2, []string{"2", "3", "4"}},
		"AtEnd":    {"a reader at the end sees nothing", 5, 5, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := NewRing(3)
			fill(r, 0, tc.added)
			if diff := cmp.Diff(tc.want, read(t, r, tc.from)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFollowWakesUp(t *testing.T) {
	r := NewRing(3)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got, done := make(chan string), make(chan error, 1)
	go func() {
		done <- r.follow(ctx, 0, true, func(f *flowpb.Flow) error { got <- f.GetUuid(); return nil }, func(uint64) error { return nil })
	}()
	for n := range 3 { // each only after the one before was read, so the reader waits in between
		r.Add(numbered(n))
		if uuid := <-got; uuid != strconv.Itoa(n) {
			t.Fatalf("read %s, want %d", uuid, n)
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a reader must end with its context, got %v", err)
	}
}

// A reader that does not keep up must not block the writer, and receives the number of lost flows.
func TestSlowFollower(t *testing.T) {
	r := NewRing(3)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, resume, lost := make(chan struct{}), make(chan struct{}), make(chan uint64, 1)
	go func() {
		_ = r.follow(ctx, 0, true, func(f *flowpb.Flow) error {
			if f.GetUuid() == "0" {
				close(first)
				<-resume
			}
			return nil
		}, func(n uint64) error { lost <- n; return nil })
	}()
	fill(r, 0, 1)
	<-first
	fill(r, 1, 11)
	close(resume)
	if n := <-lost; n != 7 {
		t.Errorf("lost %d, want 7: 1 to 7 were overwritten, 8 to 10 are there", n)
	}
}
