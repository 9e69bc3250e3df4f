package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/acp-io/acp/playground/internal/bench"
	"github.com/acp-io/acp/playground/internal/memberapi"
)

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
	for _, part := range []func(context.Context) error{r.push, r.restart, r.statuses, r.changes, r.together, r.bulk} {
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
