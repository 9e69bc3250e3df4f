package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// void is a member whose settings make policies mean something else than they say, so it must not be called realized.
	void string
	// unwatched: a resource is placed in a member whose flows nobody follows.
	unwatched bool
	// ahead is how far the clock of whoever leads the adapters is.
	ahead time.Duration
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

// harmless: what is asked for has to come, though something is wrong.
func (o *outage) harmless() bool { return len(o.members) == 0 && !o.frozen && !o.mute && o.void == "" }

// breakage is a kind of outage.
type breakage struct {
	name  string
	begin func(ctx context.Context, d *drill) (*outage, string, error)
}

func breakages() []breakage {
	out := []breakage{
		{"member-cut", onWire((*wire).cutNow)},
		{"member-black-holed", onWire((*wire).blackHole)},
		{"member-resets", onWire((*wire).reset)},
		{"member-slow", slowMember},
		{"push-cut-in-its-middle", cutPush},
		{"member-stopped", stopMember},
		{"all-members-cut", cutAll},
		{"token-revoked", revokeToken},
		{"crd-removed", removeCRD},
		{"settings-changed", changeSettings},
		{"members-unwatched", placeUnwatched},
		{"kubefed-down", down("kubefed")},
		{"adapters-down", down("adapter", "adapter-2")},
		{"clock-of-adapters", clockOfAdapters},
		{"clock-of-portal", clockOfPortal},
		{"clock-of-collector", clockOfCollector},
	}
	for _, p := range []string{"adapter", "adapter-2", "kubefed", "portal", "flow-collector", "dataplane-m1", "dataplane-m2",
		"etcd-members", "etcd-host", "apiserver-host"} {
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

// slowMember still has to follow.
func slowMember(_ context.Context, d *drill) (*outage, string, error) {
	m := pick(d.Rand, fleet.Members())
	w := d.wires[m]
	return &outage{lasts: 1 + d.IntN(3), end: w.mend}, m, w.slow()
}

// cutPush ends each connection to a member after a few kilobytes, while something is pushed. Now and then something gets
// through.
func cutPush(ctx context.Context, d *drill) (*outage, string, error) {
	m, limit := pick(d.Rand, fleet.Members()), int64(2000+d.IntN(20000))
	w := d.wires[m]
	o := &outage{members: []string{m}, lasts: 1 + d.IntN(2), end: w.mend}
	if err := w.cutAfter(limit); err != nil {
		return nil, "", err
	}
	did, err := d.choose(ctx, quick())
	return o, fmt.Sprintf("%s after %d bytes, while %s", m, limit, did), err
}

func cutAll(_ context.Context, d *drill) (*outage, string, error) {
	for _, w := range d.wires {
		w.cut()
	}
	return &outage{members: fleet.Members(), unreadable: true, lasts: 1, end: func(ctx context.Context) error {
		var errs []error
		for _, w := range d.wires {
			errs = append(errs, w.mend(ctx))
		}
		return errors.Join(errs...)
	}}, "both", nil
}

// revokeToken of KubeFed, of the adapter, or of both, in one member.
func revokeToken(ctx context.Context, d *drill) (*outage, string, error) {
	m := pick(d.Rand, fleet.Members())
	whose := pick(d.Rand, [][]string{{fleet.KubeFed}, {fleet.Adapter}, {fleet.KubeFed, fleet.Adapter}})
	o := &outage{members: []string{m}, unreadable: slices.Contains(whose, fleet.Adapter), lasts: 1 + d.IntN(2),
		end: func(ctx context.Context) error { return d.Fleet.Revoke(ctx, m) }}
	return o, fmt.Sprintf("of %v in %s", whose, m), d.Fleet.Revoke(ctx, m, whose...)
}

// removeCRD takes a kind away from a member, and with it, but for Istio's, what the dataplane enforces: everything is open
// there, until the member is set up again. The others must not suffer.
func removeCRD(ctx context.Context, d *drill) (*outage, string, error) {
	m, crd := pick(d.Rand, fleet.Members()), pick(d.Rand, kinds).target
	if crd != istio {
		d.dogs[m].forgive(func(attempt) bool { return true })
	}
	o := &outage{members: []string{m}, unreadable: crd == policies, lasts: 1 + d.IntN(2),
		end: func(ctx context.Context) error { return d.Fleet.SetUpMember(ctx, m) }}
	name := crd.Resource + "." + crd.Group
	return o, name + " of " + m, d.patiently(ctx, "delete CRD "+name, func(ctx context.Context) error {
		return d.members[m].Resource(crds).Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// down holds processes without which nothing moves.
func down(processes ...string) func(context.Context, *drill) (*outage, string, error) {
	return func(ctx context.Context, d *drill) (*outage, string, error) {
		o := &outage{frozen: true, mute: len(processes) > 1, lasts: 1 + d.IntN(2),
			end: func(ctx context.Context) error { return d.Supervisor.StartAndWait(ctx, processes...) }}
		for _, p := range processes {
			if err := d.Supervisor.Kill(p); err != nil {
				return nil, "", err
			}
		}
		return o, "killed", nil
	}
}

func stopMember(_ context.Context, d *drill) (*outage, string, error) {
	m := pick(d.Rand, fleet.Members())
	p := "apiserver-" + m
	end := func(ctx context.Context) error { return d.Supervisor.StartAndWait(ctx, p) }
	return &outage{members: []string{m}, unreadable: true, lasts: 1 + d.IntN(2), end: end}, m, d.Supervisor.Kill(p)
}

// killed is a process that is killed just after something was changed, and started again at once.
func killed(process string) func(context.Context, *drill) (*outage, string, error) {
	return func(ctx context.Context, d *drill) (*outage, string, error) {
		did, err := d.choose(ctx, quick())
		if err != nil {
			return nil, "", err
		}
		if err := d.Supervisor.Kill(process); err != nil {
			return nil, "", err
		}
		return nil, "after " + did, d.Supervisor.StartAndWait(ctx, process)
	}
}

// outagesWith something in their name.
func outagesWith(text string) []breakage {
	return slices.DeleteFunc(breakages(), func(b breakage) bool { return !strings.Contains(b.name, text) })
}

// breakSomething begins an outage, of each kind once before any comes again.
func (d *drill) breakSomething(ctx context.Context) (string, error) {
	all := outagesWith(d.only)
	if len(d.turn) == 0 {
		d.turn = d.Perm(len(all))
	}
	b := all[d.turn[0]]
	d.turn = d.turn[1:]
	d.doing, d.breaking = b.name, true
	o, what, err := b.begin(ctx, d)
	d.breaking = false
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
	clear(d.dropped)
	return nil
}
