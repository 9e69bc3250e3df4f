package faults

import (
	"context"
	"fmt"
	"time"

	"github.com/acp-io/acp/playground/internal/fleet"
)

// outage is something that is broken for some steps.
type outage struct {
	name string
	// members that the control plane cannot work with.
	members []string
	// unreadable: nor read.
	unreadable bool
	// frozen: nothing reaches any member.
	frozen bool
	// mute: nobody writes statuses.
	mute bool
	// lasts this many further steps.
	lasts int
	end   func(ctx context.Context) error
}

func (o *outage) away(member string) bool {
	for _, m := range o.members {
		if m == member {
			return true
		}
	}
	return false
}

// breakage is a kind of outage.
type breakage struct {
	name  string
	begin func(ctx context.Context, d *drill) (*outage, string, error)
}

func breakages() []breakage {
	out := []breakage{
		{"member-cut", onWire((*wire).cutNow)},
		{"member-black-holed", onWire((*wire).blackHole)},
		{"member-slow", slowMember},
		{"member-stopped", stopMember},
	}
	for _, p := range []string{"adapter", "kubefed", "portal", "flow-collector", "dataplane-m1", "etcd-members", "etcd-host", "apiserver-host"} {
		out = append(out, breakage{"kill-" + p, killed(p)})
	}
	return out
}

// a member that cannot be reached.
func onWire(do func(*wire) error) func(context.Context, *drill) (*outage, string, error) {
	return func(_ context.Context, d *drill) (*outage, string, error) {
		m := pick(d.Rand, fleet.Members())
		w := d.wires[m]
		return &outage{members: []string{m}, unreadable: true, lasts: 1 + d.IntN(3), end: w.mend}, m, do(w)
	}
}

func slowMember(_ context.Context, d *drill) (*outage, string, error) {
	m := pick(d.Rand, fleet.Members())
	w := d.wires[m]
	return &outage{members: []string{m}, lasts: 1 + d.IntN(3), end: w.mend}, m, w.slow()
}

func stopMember(_ context.Context, d *drill) (*outage, string, error) {
	m := pick(d.Rand, fleet.Members())
	p := "apiserver-" + m
	end := func(ctx context.Context) error { return d.Supervisor.StartAndWait(ctx, p) }
	return &outage{members: []string{m}, unreadable: true, lasts: 1 + d.IntN(2), end: end}, m, d.Supervisor.Kill(p)
}

// killed is a process that is killed, and started again at once.
func killed(process string) func(context.Context, *drill) (*outage, string, error) {
	return func(ctx context.Context, d *drill) (*outage, string, error) {
		if err := d.Supervisor.Kill(process); err != nil {
			return nil, "", err
		}
		return nil, "and started again", d.Supervisor.StartAndWait(ctx, process)
	}
}

// breakSomething begins an outage.
func (d *drill) breakSomething(ctx context.Context) (string, error) {
	b := pick(d.Rand, breakages())
	d.doing = b.name
	o, what, err := b.begin(ctx, d)
	if err != nil {
		return "", fmt.Errorf("%s: %w", b.name, err)
	}
	if d.outage = o; o != nil {
		o.name = b.name
		what = fmt.Sprintf("%s, for %d steps", what, o.lasts)
	}
	return b.name + ": " + what, nil
}

// mend ends the present outage.
func (d *drill) mend(ctx context.Context) error {
	o := d.outage
	if o == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := o.end(ctx); err != nil {
		return fmt.Errorf("end %s: %w", o.name, err)
	}
	d.outage = nil
	return nil
}
