package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// pushLimit bounds one change, and bulkLimit many changes.
const (
	pushLimit = time.Minute
	bulkLimit = 15 * time.Minute
)

func granted(ingress string) bool { return strings.Contains(ingress, `"`+grantedApp+`"`) }
func revoked(ingress string) bool { return !granted(ingress) }
func opened(ingress string) bool  { return strings.Contains(ingress, `"closed":false`) }
func widened(ingress string) bool { return strings.Contains(ingress, `"6380"`) || revoked(ingress) }

// push measures the propagation of changed policies to the members, single ones and many at once.
func push(ctx context.Context, o Options, f *fleet, out, progress io.Writer) error {
	// The portal and the collector are stopped, because they record changes made outside the portal in their stores, which is not
	// part of the measurement.
	if err := f.control(ctx, "stop", "portal", "flow-collector"); err != nil {
		return err
	}
	s, err := enter(ctx, f)
	if err != nil {
		return err
	}
	defer s.stop()

	fmt.Fprintf(progress, "%d objects through KubeFed alone …\n", o.Units)
	alone, err := s.rate(ctx, o.Units, func(i int) string { return fmt.Sprint(directName, i) }, func() error { return s.direct(ctx, o.Units) })
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "%d enforced resources with a grant each …\n", o.Units)
	ours, err := s.rate(ctx, o.Units, objectOf, func() error { return s.protect(ctx, 0, o.Units) })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "bench push_bulk_per_s %.1f per_s\n", ours)
	fmt.Fprintf(progress, "  KubeFed alone: %.1f per second\n", alone)
	fmt.Fprintf(out, "bench push_bulk_vs_kubefed %.2f x\n", ours/alone)

	fmt.Fprintln(progress, "changes one after the other …")
	idle, err := s.oneByOne(ctx, 0, o.Pushes)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "bench push_p50 %.0f ms\n", Millis(Quantile(idle, 0.50)))
	fmt.Fprintf(out, "bench push_p99 %.0f ms\n", Millis(Quantile(idle, 0.99)))

	fmt.Fprintf(progress, "revocations while %d resources change with their class …\n", o.Units)
	busy, took, err := s.duringBulk(ctx, o.Units)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "  %d revocations; the change of the class took %.0f s\n", len(busy), took.Seconds())
	fmt.Fprintf(out, "bench push_busy_p50 %.0f ms\n", Millis(Quantile(busy, 0.50)))
	fmt.Fprintf(out, "bench push_busy_p99 %.0f ms\n", Millis(Quantile(busy, 0.99)))

	if o.Units <= stayClosed {
		return nil
	}
	fmt.Fprintf(progress, "all resources but %d to Audit …\n", stayClosed)
	opening, behind, err := s.openAll(ctx, o.Units)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "bench downgrade_per_s %.0f per_s\n", float64(o.Units-stayClosed)/opening.Seconds())
	fmt.Fprintf(out, "bench push_behind_p50 %.0f ms\n", Millis(Quantile(behind, 0.50)))
	fmt.Fprintf(out, "bench push_behind_max %.0f ms\n", Millis(slices.Max(behind)))
	return nil
}

// stayClosed is the number of resources that openAll excludes.
const stayClosed = 20

// openAll opens all resources but some at once, and revokes grants of these while KubeFed is still propagating. It returns the
// time until all were open in the members, and the time of each revocation.
func (s *scene) openAll(ctx context.Context, n int) (time.Duration, []time.Duration, error) {
	start := time.Now()
	if err := ForEachConcurrently(n-stayClosed, func(i int) error { return s.mode(ctx, stayClosed+i, "Audit") }); err != nil {
		return 0, nil, err
	}
	if err := s.until(ctx, bulkLimit, n-stayClosed, func(i int) string { return objectOf(stayClosed + i) }, opened); err != nil {
		return 0, nil, err
	}
	took := time.Since(start)
	var times []time.Duration
	for i := range stayClosed {
		one, err := s.change(ctx, i, false, revoked)
		if err != nil {
			return 0, nil, err
		}
		times = append(times, one)
	}
	return took, times, nil
}

// rate returns how many of n new objects reach all members per second.
func (s *scene) rate(ctx context.Context, n int, of func(i int) string, make func() error) (float64, error) {
	start := time.Now()
	if err := make(); err != nil {
		return 0, err
	}
	if err := s.until(ctx, bulkLimit, n, of, granted); err != nil {
		return 0, err
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// oneByOne revokes the grant of a resource and restores it, and returns the times from the request to change the policy until the last member
// has it.
func (s *scene) oneByOne(ctx context.Context, resource, n int) ([]time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for i := range n {
		give, is := i%2 == 1, revoked
		if give {
			is = granted
		}
		one, err := s.change(ctx, resource, give, is)
		if err != nil {
			return nil, err
		}
		times = append(times, one)
		time.Sleep(betweenChanges) // KubeFed and the adapter are still writing statuses of this change
	}
	return times, nil
}

// betweenChanges is the time after which KubeFed, the resource and the policy have their final statuses of a change.
const betweenChanges = 200 * time.Millisecond

func (s *scene) change(ctx context.Context, i int, give bool, is func(string) bool) (time.Duration, error) {
	c := change{give: give, began: time.Now()}
	if err := s.grant(ctx, i, give); err != nil {
		return 0, fmt.Errorf("change the policy of %s: %w", name(i), err)
	}
	c.answered = time.Now()
	err := s.until(ctx, pushLimit, 1, func(int) string { return objectOf(i) }, is)
	c.done = time.Now()
	s.changes = append(s.changes, c)
	return c.done.Sub(c.began), err
}

// duringBulk changes the class of all resources, and revokes grants one after the other until that change is complete.
func (s *scene) duringBulk(ctx context.Context, n int) ([]time.Duration, time.Duration, error) {
	start := time.Now()
	if err := s.ports(ctx, `{"port":6379,"protocol":"TCP"},{"port":6380,"protocol":"TCP"}`); err != nil {
		return nil, 0, fmt.Errorf("change the class: %w", err)
	}
	var times []time.Duration
	done := make(chan error, 1)
	go func() { done <- s.until(ctx, bulkLimit, n, objectOf, widened) }()
	for i := range n {
		one, err := s.change(ctx, n-1-i, false, revoked)
		if err != nil {
			return nil, 0, err
		}
		times = append(times, one)
		select {
		case err := <-done:
			return times, time.Since(start), err
		case <-time.After(200 * time.Millisecond): // revocations are occasional
		}
	}
	return times, time.Since(start), <-done
}
