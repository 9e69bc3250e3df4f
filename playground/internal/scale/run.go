package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/acp-io/acp/playground/internal/bench"
	"github.com/acp-io/acp/playground/internal/memberapi"
)

// Options of a run.
type Options struct {
	// Repo is the root of the repository, and BinDir the folder with the built programs.
	Repo, BinDir string
	// Members, Resources and Grants are the numbers of members, of resources, and of grants of each resource.
	Members, Resources, Grants int
	// Changes is the number of single changes of each kind.
	Changes int
	// Workloads is the number of external workloads. With 0, the members get no groups of addresses.
	Workloads int
	// Slow is the latency of the slow member.
	Slow time.Duration
	// Errors is the share of requests, from 0 to 1, that the failing member answers with an internal error.
	Errors float64
	// Profile is the file for a profile of the adapter's processor time in the bulk push, or "" for none.
	Profile string
}

// DefaultOptions returns the sizes that two cores can handle within minutes.
func DefaultOptions() Options {
	return Options{Members: fullMembers, Resources: 1_000, Grants: fullGrants, Changes: fullChanges, Slow: 2 * time.Second, Errors: 0.3}
}

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	switch {
	case o.Members < 4 || o.Members > largeMesh:
		return fmt.Errorf("the number of members must be from 4 to %d", largeMesh)
	case o.Resources < 2 || o.Grants < 2 || o.Changes < 1:
		return errors.New("at least 2 resources with 2 grants each, and 1 change are needed")
	case o.Workloads < 0 || o.Workloads > maxWorkloads:
		return fmt.Errorf("the number of external workloads must be from 0 to %d", maxWorkloads)
	case o.Errors < 0 || o.Errors > 1:
		return errors.New("the share of requests that fail must be from 0 to 1")
	}
	return nil
}

// Limits of the waits.
const (
	pushLimit   = 3 * time.Hour
	changeLimit = 2 * time.Minute
)

// run is one measurement.
type run struct {
	Options
	*environment
	world world
	// bulkRate is the number of objects that the adapter wrote per second.
	bulkRate      float64
	out, progress io.Writer
}

// Run measures, and prints the figures to out and the progress to progress.
func Run(ctx context.Context, o Options, out, progress io.Writer) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "acp-scale-")
	if err != nil {
		return fmt.Errorf("make a folder for the host: %w", err)
	}
	defer func() {
		if err == nil {
			err = os.RemoveAll(dir)
			return
		}
		fmt.Fprintf(progress, "the host's state and the logs are kept in %s\n", dir)
	}()
	r := &run{Options: o, world: world{grants: o.Grants}, out: out, progress: progress}
	r.scaled()
	r.say("the host and %d members …", o.Members)
	if r.environment, err = start(ctx, o, dir); err != nil {
		return err
	}
	defer r.stop()
	for _, part := range []func(context.Context) error{r.push, r.restart, r.statuses, r.changes, r.bulk} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) say(format string, args ...any) { fmt.Fprintf(r.progress, format+"\n", args...) }

func (r *run) figure(name string, value float64, unit string) {
	format := "bench scale_%s %.0f %s\n"
	if value < 100 {
		format = "bench scale_%s %.2f %s\n"
	}
	fmt.Fprintf(r.out, format, name, value, unit)
}

// scaled prints the sizes of the run beside those for which the aims hold.
func (r *run) scaled() {
	for _, s := range r.sizes() {
		fmt.Fprintln(r.out, s)
	}
}

const megabyte = 1e6

// settling is the time after which an adapter without resources has read every member.
const settling = 10 * time.Second

// push creates the resources in two halves, each while the adapter is stopped, and measures how the adapter distributes them.
func (r *run) push(ctx context.Context) error {
	if err := r.startAdapter(ctx); err != nil {
		return err
	}
	time.Sleep(settling) // the adapter reconciles nothing without resources, so that it never counts as quiet
	sizes := []float64{}
	measure := func() error {
		bytes, err := r.rss()
		sizes = append(sizes, float64(bytes))
		return err
	}
	if err := measure(); err != nil {
		return err
	}
	r.say("  without resources the adapter has %.0f MB", sizes[0]/megabyte)
	if err := r.external(ctx); err != nil {
		return err
	}
	half := r.Resources / 2
	for _, part := range []struct{ first, last int }{{0, half}, {half, r.Resources}} {
		if err := r.supervisor.Stop(adapterProcess); err != nil {
			return err
		}
		r.say("resources %d to %d, with %d grants each …", part.first+1, part.last, r.Grants)
		if err := r.world.create(ctx, r.environment, part.first, part.last); err != nil {
			return err
		}
		r.writes.reset()
		began := time.Now()
		if err := r.startAdapter(ctx); err != nil {
			return err
		}
		before, err := r.atFirstWrite(ctx)
		if err != nil {
			return err
		}
		profiled := r.profile(ctx, part.first > 0)
		if err := errors.Join(r.complete(ctx, part.last), <-profiled); err != nil {
			return err
		}
		span := r.writes.span()
		number := (part.last - part.first) * r.Members
		after, err := r.costs(ctx)
		if err != nil {
			return err
		}
		if part.first > 0 {
			fmt.Fprintf(r.out, "cost of scale_bulk: members: changes of policies: %.2f for each\n", float64(r.writes.made.Load())/float64(number))
			after.Print(r.out, "scale_bulk", before, number)
		}
		if err := r.same(part.last); err != nil {
			return err
		}
		r.say("  in all members %.1f s after the start of the adapter; %.1f s from the first write to the last, %.0f per second", time.Since(began).Seconds(),
			span.Seconds(), float64(number)/span.Seconds())
		r.bulkRate = float64(number) / span.Seconds()
		took, err := r.quiet(ctx, began)
		if err != nil {
			return err
		}
		if err := r.sameGroups(); err != nil {
			return err
		}
		if err := measure(); err != nil {
			return err
		}
		r.say("  quiet after %.1f s, with %d writes in members for %d objects; %.0f MB", took.Seconds(), r.writes.made.Load(), number,
			sizes[len(sizes)-1]/megabyte)
	}
	r.figure("bulk_per_s", r.bulkRate, "per_s")
	r.figure("adapter_rss", sizes[2]/megabyte, "MB")
	if first := sizes[1] - sizes[0]; first > 0 {
		r.figure("rss_growth", (sizes[2]-sizes[1])/first, "x")
	}
	return nil
}

// profiledTime is the time of a profile. If the push ends earlier, the rest of the time adds almost nothing to the profile.
const profiledTime = 20 * time.Second

// profile writes a profile of the adapter's processor time from now on, if one was asked for, and sends the outcome when it is complete.
func (r *run) profile(ctx context.Context, wanted bool) <-chan error {
	done := make(chan error, 1)
	if !wanted || r.Profile == "" {
		close(done)
		return done
	}
	go func() {
		done <- r.download(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", r.pprof(), profiledTime.Seconds()), r.Profile)
	}()
	return done
}

func (r *run) download(ctx context.Context, url, file string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the profile %s: %w", file, err)
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the adapter answered %s", response.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, response.Body)
	return errors.Join(err, out.Close())
}

// atFirstWrite waits until the adapter has written an object, and returns the costs until then. Before that it reads the host and the members.
func (r *run) atFirstWrite(ctx context.Context) (bench.Costs, error) {
	limited, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for r.writes.made.Load() == 0 {
		select {
		case <-tick.C:
		case <-limited.Done():
			return bench.Costs{}, fmt.Errorf("the adapter writes nothing: %w", limited.Err())
		}
	}
	return r.costs(ctx)
}

// complete waits until every member has the policies of n resources.
func (r *run) complete(ctx context.Context, n int) error {
	limited, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	shown := time.Now()
	for {
		lacking := 0
		for _, m := range r.members.All() {
			if m.Len(memberapi.Policies) < n {
				lacking++
			}
		}
		if lacking == 0 {
			return nil
		}
		if time.Since(shown) > 30*time.Second {
			shown = time.Now()
			r.say("  %d members are not complete; %d writes", lacking, r.writes.made.Load())
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			return fmt.Errorf("%d members do not have %d policies: %w", lacking, n, limited.Err())
		}
	}
}

// same reports an error unless all members have the same n policies, and these admit the clients that were granted access.
func (r *run) same(n int) error {
	first := r.members.All()[0]
	for i := range n {
		object := first.Get(memberapi.Policies, objectOf(i))
		for g := range r.Grants {
			if object == nil || !admits(r.world.app(i, g), true)(object) {
				return fmt.Errorf("the policy of resource %d does not admit application %s", i, r.world.app(i, g))
			}
		}
	}
	for i, m := range r.members.All()[1:] {
		if key := m.Differs(first, memberapi.Policies); key != "" {
			return fmt.Errorf("members %s and %s differ in %s", r.names[0], r.names[i+1], key)
		}
	}
	return nil
}

// sameGroups reports an error unless all members have the same groups of addresses, and some if there are external workloads.
func (r *run) sameGroups() error {
	first := r.members.All()[0]
	if groups := first.Len(memberapi.Groups); (groups > 0) != (r.Workloads > 0) {
		return fmt.Errorf("member %s has %d groups of addresses with %d external workloads", r.names[0], groups, r.Workloads)
	}
	for i, m := range r.members.All()[1:] {
		if key := m.Differs(first, memberapi.Groups); key != "" {
			return fmt.Errorf("members %s and %s differ in the group of addresses %s", r.names[0], r.names[i+1], key)
		}
	}
	return nil
}

// restart kills the adapter and measures how long its successor is busy.
func (r *run) restart(ctx context.Context) error {
	r.say("the adapter is restarted …")
	if err := r.supervisor.Kill(adapterProcess); err != nil {
		return err
	}
	r.writes.reset()
	began := time.Now()
	if err := r.startAdapter(ctx); err != nil {
		return err
	}
	took, err := r.quiet(ctx, began)
	if err != nil {
		return err
	}
	bytes, err := r.rss()
	if err != nil {
		return err
	}
	r.figure("restart_quiet", took.Seconds(), "s")
	r.figure("restart_member_writes", float64(r.writes.made.Load()), "writes")
	r.figure("restart_rss", float64(bytes)/megabyte, "MB")
	return nil
}

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
	for _, f := range []struct {
		name  string
		times []time.Duration
	}{{"revoke", all.observed}, {"revoke_written", all.written}} {
		r.figure(f.name+"_p50", bench.Millis(bench.Quantile(f.times, 0.50)), "ms")
		r.figure(f.name+"_p99", bench.Millis(bench.Quantile(f.times, 0.99)), "ms")
	}
	healthy, err := r.series(ctx, "", nil, without)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name, what string
		faults     map[int]memberapi.Faults
	}{
		{"slow_member", fmt.Sprintf("a member that takes %s for each answer, and one that does not answer", r.Slow),
			map[int]memberapi.Faults{slowMember: {Latency: r.Slow}, deadMember: {Silent: true}}},
		{"failing_member", fmt.Sprintf("a member that answers %.0f %% of the requests with an internal error", r.Errors*100),
			map[int]memberapi.Faults{failingMember: {Errors: r.Errors}}},
	} {
		during, err := r.series(ctx, c.what, c.faults, without)
		if err != nil {
			return err
		}
		// Otherwise the adapter would still write what the faulty members lack, and the statuses that name them.
		if _, err := r.quiet(ctx, time.Now()); err != nil {
			return err
		}
		after, err := r.series(ctx, "", nil, without)
		if err != nil {
			return err
		}
		r.compare(c.name, healthy.and(after), during)
		healthy = after
	}
	return nil
}

// and returns the times of two series.
func (t times) and(other times) times {
	return times{slices.Concat(t.written, other.written), slices.Concat(t.observed, other.observed)}
}

// series measures revocations while members have faults, which what describes, or while none has, and prints what each of them cost.
func (r *run) series(ctx context.Context, what string, faults map[int]memberapi.Faults, without map[int]bool) (times, error) {
	if what == "" {
		what = "no faults"
	}
	r.say("the same with %s …", what)
	before, err := r.costs(ctx)
	if err != nil {
		return times{}, err
	}
	out, err := r.faulty(ctx, without, faults)
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

// faulty measures revocations while members have faults. Afterwards the members have none.
func (r *run) faulty(ctx context.Context, without map[int]bool, faults map[int]memberapi.Faults) (times, error) {
	for i, f := range faults {
		r.members.All()[i].SetFaults(f)
		defer r.members.All()[i].SetFaults(memberapi.Faults{})
	}
	return r.oneByOne(ctx, without)
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
