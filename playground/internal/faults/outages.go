package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/fleet"
)

// outage is an injected fault that lasts for some steps.
type outage struct {
	name string
	// members contains the members that the control plane cannot fully use.
	members []string
	// unreadable reports whether the control plane cannot read these members either.
	unreadable bool
	// frozen reports whether no change is propagated to any member.
	frozen bool
	// noStatus reports whether no program updates statuses.
	noStatus bool
	// misconfigured is a member whose agent settings were changed. No resource in a mode of invalidates may be reported as Realized in
	// it, and finding is the code of the finding that must be reported for it.
	misconfigured string
	invalidates   []v1alpha1.Mode
	finding       string
	// uncollected reports whether a resource is placed in a member whose flows no collector reads.
	uncollected bool
	// clockAhead is how far the clock of the leading adapter is ahead.
	clockAhead time.Duration
	// remaining is the number of further steps that the outage lasts.
	remaining int
	end       func(ctx context.Context) error
}

// unavailable reports whether the control plane cannot fully use a member.
func (o *outage) unavailable(member string) bool {
	for _, m := range o.members {
		if m == member {
			return true
		}
	}
	return false
}

// changesMeaning reports whether policies in a mode have another meaning in a member during the outage.
func (o *outage) changesMeaning(member string, mode v1alpha1.Mode) bool {
	return o.misconfigured == member && slices.Contains(o.invalidates, mode)
}

// allowsProgress reports whether changes must still take effect in every member during the outage.
func (o *outage) allowsProgress() bool {
	return len(o.members) == 0 && !o.frozen && !o.noStatus && len(o.invalidates) == 0
}

// outageKind is a kind of outage. begin returns the outage, which is nil when it has already ended, and a description.
type outageKind struct {
	name  string
	begin func(ctx context.Context, d *drill) (*outage, string, error)
}

// outageKinds returns all kinds of outages of a fleet with these members of work agents. Their order is part of the random sequence of a seed.
func outageKinds(pull []string) []outageKind {
	out := []outageKind{
		{"member-cut", withProxy((*memberProxy).disconnect)},
		{"member-black-holed", withProxy((*memberProxy).blackHole)},
		{"member-resets", withProxy((*memberProxy).reset)},
		{"member-slow", slowMember},
		{"push-cut-in-its-middle", cutPush},
		{"member-stopped", stopMember},
		{"all-members-cut", cutAll},
		{"token-revoked", revokeToken},
		{"crd-removed", removeCRD},
		{"settings-changed", changeSettings},
		{"member-uncollected", placeUncollected},
		{"kubefed-down", stopProcesses("kubefed")},
		{"adapters-down", stopProcesses("adapter", "adapter-2")},
		{"clock-of-adapters", clockOfAdapters},
		{"clock-of-portal", clockOfPortal},
		{"clock-of-collector", clockOfCollector},
	}
	for _, p := range []string{"adapter", "adapter-2", "kubefed", "portal", "flow-collector", "dataplane-m1", "dataplane-m2",
		"etcd-members", "etcd-host", "apiserver-host"} {
		out = append(out, outageKind{"kill-" + p, killAfterChange(p)})
	}
	for _, m := range pull {
		out = append(out, outageKind{"agent-down-" + m, stopAgent(m)}, outageKind{"kill-agent-" + m, killAfterChange(fleet.AgentOf(m))})
	}
	return out
}

// stopAgent returns an outage in which the work agent of a member does not run, so that the member is read but not written.
func stopAgent(member string) func(context.Context, *drill) (*outage, string, error) {
	return func(_ context.Context, d *drill) (*outage, string, error) {
		p := fleet.AgentOf(member)
		end := func(ctx context.Context) error { return d.Supervisor.StartAndWait(ctx, p) }
		return &outage{members: []string{member}, remaining: 1 + d.IntN(3), end: end}, "killed", d.Supervisor.Kill(p)
	}
}

// withProxy returns an outage in which a fault of its proxy makes a random member unreachable.
func withProxy(do func(*memberProxy) error) func(context.Context, *drill) (*outage, string, error) {
	return func(_ context.Context, d *drill) (*outage, string, error) {
		m := pick(d.Rand, fleet.Members())
		w := d.proxies[m]
		return &outage{members: []string{m}, unreadable: true, remaining: 1 + d.IntN(3), end: w.restore}, m, do(w)
	}
}

// slowMember delays the connections to a random member, which must still converge.
func slowMember(_ context.Context, d *drill) (*outage, string, error) {
	m := pick(d.Rand, fleet.Members())
	w := d.proxies[m]
	return &outage{remaining: 1 + d.IntN(3), end: w.restore}, m, w.delay()
}

// cutPush ends each connection to a member after a few kilobytes while a change is propagated. Some requests may succeed.
func cutPush(ctx context.Context, d *drill) (*outage, string, error) {
	m, limit := pick(d.Rand, fleet.Members()), int64(2000+d.IntN(20000))
	w := d.proxies[m]
	o := &outage{members: []string{m}, remaining: 1 + d.IntN(2), end: w.restore}
	if err := w.limitData(limit); err != nil {
		return nil, "", err
	}
	did, err := d.choose(ctx, writeOnlySteps())
	return o, fmt.Sprintf("%s after %d bytes, while %s", m, limit, did), err
}

// cutAll disconnects every member.
func cutAll(_ context.Context, d *drill) (*outage, string, error) {
	for _, w := range d.proxies {
		w.disable()
	}
	return &outage{members: fleet.Members(), unreadable: true, remaining: 1, end: func(ctx context.Context) error {
		var errs []error
		for _, w := range d.proxies {
			errs = append(errs, w.restore(ctx))
		}
		return errors.Join(errs...)
	}}, "both", nil
}

// revokeToken revokes the tokens of the member's engine, of the adapter as a reader, or of both in a random member.
func revokeToken(ctx context.Context, d *drill) (*outage, string, error) {
	m := pick(d.Rand, fleet.Members())
	writer := d.Fleet.Writer(m)
	whose := pick(d.Rand, [][]string{{writer}, {fleet.Adapter}, {writer, fleet.Adapter}})
	o := &outage{members: []string{m}, unreadable: slices.Contains(whose, fleet.Adapter), remaining: 1 + d.IntN(2),
		end: func(ctx context.Context) error { return d.Fleet.Revoke(ctx, m) }}
	return o, fmt.Sprintf("of %v in %s", whose, m), d.Fleet.Revoke(ctx, m, whose...)
}

// removeCRD deletes a CustomResourceDefinition from a random member. Except for Istio's, the dataplane then enforces nothing there
// until the member is set up again. The other members must not be affected.
func removeCRD(ctx context.Context, d *drill) (*outage, string, error) {
	m, crd := pick(d.Rand, fleet.Members()), pick(d.Rand, kinds).target
	if crd != istio {
		d.probes[m].exclude(func(attempt) bool { return true })
	}
	o := &outage{members: []string{m}, unreadable: crd == policies, remaining: 1 + d.IntN(2),
		end: func(ctx context.Context) error { return d.Fleet.SetUpMember(ctx, m) }}
	name := crd.Resource + "." + crd.Group
	return o, name + " of " + m, d.retry(ctx, "delete CRD "+name, func(ctx context.Context) error {
		return d.members[m].Resource(crds).Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// stopProcesses returns an outage in which processes that are needed for propagation are stopped.
func stopProcesses(processes ...string) func(context.Context, *drill) (*outage, string, error) {
	return func(ctx context.Context, d *drill) (*outage, string, error) {
		o := &outage{frozen: true, noStatus: len(processes) > 1, remaining: 1 + d.IntN(2),
			end: func(ctx context.Context) error { return d.Supervisor.StartAndWait(ctx, processes...) }}
		for _, p := range processes {
			if err := d.Supervisor.Kill(p); err != nil {
				return nil, "", err
			}
		}
		return o, "killed", nil
	}
}

// stopMember kills the API server of a random member.
func stopMember(_ context.Context, d *drill) (*outage, string, error) {
	m := pick(d.Rand, fleet.Members())
	p := "apiserver-" + m
	end := func(ctx context.Context) error { return d.Supervisor.StartAndWait(ctx, p) }
	return &outage{members: []string{m}, unreadable: true, remaining: 1 + d.IntN(2), end: end}, m, d.Supervisor.Kill(p)
}

// killAfterChange returns a fault that makes a change, kills a process directly after it, and restarts the process at once.
func killAfterChange(process string) func(context.Context, *drill) (*outage, string, error) {
	return func(ctx context.Context, d *drill) (*outage, string, error) {
		did, err := d.choose(ctx, writeOnlySteps())
		if err != nil {
			return nil, "", err
		}
		if err := d.Supervisor.Kill(process); err != nil {
			return nil, "", err
		}
		return nil, "after " + did, d.Supervisor.StartAndWait(ctx, process)
	}
}

// outagesMatching returns the kinds of outages whose name contains text.
func outagesMatching(text string, pull []string) []outageKind {
	return slices.DeleteFunc(outageKinds(pull), func(b outageKind) bool { return !strings.Contains(b.name, text) })
}

// startOutage starts the next outage. Each kind is started once before any is repeated.
func (d *drill) startOutage(ctx context.Context) (string, error) {
	all := outagesMatching(d.onlyOutages, d.pull)
	if len(d.outageOrder) == 0 {
		d.outageOrder = d.Perm(len(all))
	}
	b := all[d.outageOrder[0]]
	d.outageOrder = d.outageOrder[1:]
	d.currentStep, d.startingOutage = b.name, true
	o, what, err := b.begin(ctx, d)
	d.startingOutage = false
	if err != nil {
		return "", fmt.Errorf("%s: %w", b.name, err)
	}
	if d.outage = o; o != nil {
		o.name = b.name
		what = fmt.Sprintf("%s, for %d steps", what, o.remaining)
	}
	return b.name + ": " + what, nil
}

// endOutage ends the present outage, if there is one.
func (d *drill) endOutage(ctx context.Context) error {
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
	clear(d.removed)
	return nil
}
