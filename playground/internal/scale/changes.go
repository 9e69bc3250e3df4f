package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/acp-io/acp/playground/internal/bench"
	"github.com/acp-io/acp/playground/internal/memberapi"
)

// times are the times of single changes.
type times struct{ written, observed []time.Duration }

// The indexes of the members that have faults in a part of the run.
const (
	slowMember = 1 + iota
	deadMember
	failingMember
)

// changes measures single changes: in a healthy fleet, while one member is slow and another does not answer, and while one answers some
// requests with errors.
func (r *run) changes(ctx context.Context) error {
	// These members are not waited for in any of the compared series.
	without := map[int]bool{slowMember: true, deadMember: true, failingMember: true}
	r.say("%d revocations, each after the previous one …", r.Changes)
	all, err := r.oneByOne(ctx, nil)
	if err != nil {
		return err
	}
	r.quantiles("revoke", all.observed)
	r.quantiles("revoke_written", all.written)
	healthy, err := r.series(ctx, "no faults", without)
	if err != nil {
		return err
	}
	for _, c := range []faults{
		{"slow_member", fmt.Sprintf("a member that takes %s for each answer, and one that does not answer", r.Slow),
			map[int]memberapi.Faults{slowMember: {Latency: r.Slow}, deadMember: {Silent: true}}},
		{"failing_member", fmt.Sprintf("a member that answers %.0f %% of the requests with an internal error", r.Errors*100),
			map[int]memberapi.Faults{failingMember: {Errors: r.Errors}}},
	} {
		during, settled, err := r.faulty(ctx, c, without)
		if err != nil {
			return err
		}
		// Otherwise the adapter would still write what the faulty members lack, and the statuses that name them.
		if _, err := r.quiet(ctx, time.Now()); err != nil {
			return err
		}
		after, err := r.series(ctx, "no faults", without)
		if err != nil {
			return err
		}
		around := healthy.and(after)
		if len(settled.observed) == 0 {
			r.compare(c.name, around, during)
		} else {
			r.compare(c.name+"_at_first", around, during)
			r.compare(c.name, around, settled)
		}
		healthy = after
	}
	return nil
}

// faults are faults of members, by index. The figures of the revocations meanwhile begin with name.
type faults struct {
	name, what string
	of         map[int]memberapi.Faults
}

// lose reports whether a member is lost by the faults.
func (f *faults) lose() bool {
	for _, one := range f.of {
		if one.Silent {
			return true
		}
	}
	return false
}

// faulty measures revocations from the moment on at which members have faults. If a member is lost, it measures them again when all statuses say so.
// Afterwards the members have no faults.
func (r *run) faulty(ctx context.Context, f faults, without map[int]bool) (during, settled times, err error) {
	began := time.Now()
	for i, one := range f.of {
		r.members.All()[i].SetFaults(one)
		defer r.members.All()[i].SetFaults(memberapi.Faults{})
	}
	if during, err = r.series(ctx, f.what, without); err != nil || !f.lose() {
		return during, times{}, err
	}
	if err := r.reportsLoss(ctx, began); err != nil {
		return times{}, times{}, err
	}
	settled, err = r.series(ctx, f.what+", after all statuses say so", without)
	return during, settled, err
}

// and returns the times of two series.
func (t times) and(other times) times {
	return times{slices.Concat(t.written, other.written), slices.Concat(t.observed, other.observed)}
}

// series measures revocations, and prints what each of them cost. what describes the faults that members have.
func (r *run) series(ctx context.Context, what string, without map[int]bool) (times, error) {
	r.say("the same with %s …", what)
	before, err := r.costs(ctx)
	if err != nil {
		return times{}, err
	}
	out, err := r.oneByOne(ctx, without)
	if err != nil {
		return times{}, err
	}
	after, err := r.costs(ctx)
	if err != nil {
		return times{}, err
	}
	after.Print(r.progress, "a revocation and a grant with "+what, before, r.Changes)
	return out, nil
}

// compare prints the ratios of the medians of a series of revocations to those of the series before and after it together: other work on the
// machine changes during a run.
func (r *run) compare(name string, healthy, during times) {
	for _, f := range []struct {
		name            string
		healthy, during []time.Duration
	}{{name, healthy.observed, during.observed}, {name + "_written", healthy.written, during.written}} {
		for _, q := range []float64{0.50, 0.99} {
			a, b := bench.Millis(bench.Quantile(f.healthy, q)), bench.Millis(bench.Quantile(f.during, q))
			r.say("  %s, p%.0f of the other members: %.0f ms before and after, %.0f ms meanwhile", f.name, q*100, a, b)
		}
		r.figure(f.name+"_ratio", bench.Millis(bench.Quantile(f.during, 0.50))/bench.Millis(bench.Quantile(f.healthy, 0.50)), "x")
	}
}

// pause is the time between two changes, after which their statuses are written.
const pause = 300 * time.Millisecond

// oneByOne revokes a grant and restores it, and returns the times of the revocations.
func (r *run) oneByOne(ctx context.Context, without map[int]bool) (times, error) {
	var out times
	for n := range r.Changes {
		i := n % r.Resources
		written, observed, err := r.change(ctx, i, false, without)
		if err != nil {
			return times{}, fmt.Errorf("revocation %d of %d: %w", n+1, r.Changes, err)
		}
		out.written, out.observed = append(out.written, written), append(out.observed, observed)
		time.Sleep(pause)
		if _, _, err := r.change(ctx, i, true, without); err != nil {
			return times{}, fmt.Errorf("grant %d of %d: %w", n+1, r.Changes, err)
		}
		time.Sleep(pause)
	}
	return out, nil
}

// change revokes or restores a grant. It returns the times from the request to the host until all members but some have the change, and
// until the resource's status says that it was read back from them.
func (r *run) change(ctx context.Context, i int, granted bool, without map[int]bool) (written, observed time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, changeLimit)
	defer cancel()
	status, err := r.follow(ctx, i)
	if err != nil {
		return 0, 0, err
	}
	awaited := r.writes.expect(objectOf(i), r.Members, without, admits(r.world.app(i, 0), granted))
	defer r.writes.awaited.Store(nil)
	began := time.Now()
	if err := r.world.grant(ctx, r.environment, i, granted); err != nil {
		return 0, 0, err
	}
	at, revision, err := awaited.wait(ctx)
	if err != nil {
		return 0, 0, err
	}
	seen, err := r.realized(ctx, status, revision, without)
	if err != nil {
		return 0, 0, err
	}
	return at.Sub(began), max(seen.Sub(began), at.Sub(began)), nil
}
