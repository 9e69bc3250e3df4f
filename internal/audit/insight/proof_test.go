package insight

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight/insighttest"
	"github.com/acp-io/acp/internal/policy"
)

var (
	servers = []string{bobs, orders, shop}
	clients = []string{app + "1", app + "2", app + "3", app + "4", svc + "x", svc + "y", vm}
	sources = []string{"*", cidr + "203.0.113.0/25", cidr + "10.6.0.0/31", app + "*"}
	ports   = []uint16{6379, 6380, 80, 8443, 9121}
)

type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// policies are a few random statements, and resources in Observe or Audit: from there a proposal leads to Enforce.
func (d dice) policies() policy.Input {
	in := world()
	for i := range d.IntN(6) {
		effect := v1alpha1.EffectAllow
		if d.IntN(4) == 0 {
			effect = v1alpha1.EffectDeny
		}
		resource := pick(d, append([]string{redis + "*"}, servers...)...)
		action := "redis:" + pick(d, "connect", "admin", "*")
		if resource == shop {
			action = "web:" + pick(d, "buy", "visit", "manage", "*")
		}
		addStatement(fmt.Sprint("s", i), effect, pick(d, append(slices.Clone(sources), clients...)...), action, resource)(&in)
	}
	for _, name := range servers {
		if d.IntN(3) > 0 {
			protect(name, pick(d, v1alpha1.ModeObserve, v1alpha1.ModeAudit))(&in)
		}
	}
	return in
}

// observation is a connection of a pod with up to two names, a machine, an unknown address, or a node, to a pod with one name or two.
func (d dice) observation() audit.Observation {
	pod := func(labels map[string]string) audit.Endpoint {
		return audit.Endpoint{
			Kind:      audit.KindWorkload,
			Namespace: "apps",
			Cluster:   pick(d, "m1", "m2"),
			Labels:    labels,
			Address:   netip.AddrFrom4([4]byte{10, 0, 0, byte(d.IntN(250))}),
		}
	}
	o := audit.Observation{
		Time:     ago(d.IntN(14)).Add(-time.Hour),
		Cluster:  pick(d, "m1", "m2"),
		Protocol: v1alpha1.ProtocolTCP,
		Verdict:  audit.VerdictForwarded,
		Count:    int64(1 + d.IntN(9)),
	}
	labels := map[string]string{}
	switch d.IntN(8) {
	case 0:
		o.Source = audit.Endpoint{Kind: audit.KindOutside, Address: netip.AddrFrom4([4]byte{10, 6, 0, byte(d.IntN(4))})}
	case 1:
		o.Source = audit.Endpoint{Kind: audit.KindOutside, Address: netip.AddrFrom4([4]byte{203, 0, 113, byte(d.IntN(256))})}
	case 2:
		o.Source = audit.Endpoint{Kind: audit.KindReserved, Identity: "remote-node"}
	case 3:
		o.Source = audit.Endpoint{Kind: audit.KindLocalHost, Identity: "host"}
	case 4:
		o.Source = pod(map[string]string{"job": pick(d, "a", "b")})
	default:
		if d.IntN(4) > 0 {
			labels["com.trip/appid"] = pick(d, "1", "2", "3", "4")
		}
		if d.IntN(4) == 0 || len(labels) == 0 {
			labels["com.trip/service"] = pick(d, "x", "y")
		}
		o.Source = pod(labels)
	}
	server := map[string]string{}
	switch d.IntN(7) {
	case 0, 1, 2:
		server["com.trip/redis-cluster"] = pick(d, "bobs-cluster", "orders-cache")
	case 3, 4, 5:
		server["com.trip/site"] = "shop"
	default:
		server["com.trip/redis-cluster"], server["com.trip/site"] = pick(d, "bobs-cluster", "orders-cache"), "shop"
	}
	o.Destination = pod(server)
	o.Destination.Cluster, o.Destination.Port = o.Cluster, pick(d, ports...)
	return o
}

// A proposal that is accepted in full, for every resource, and then enforced, refuses no client that was seen by name at a port
// of an action, but for whom a deny names, and whose allow goes with a refused deny; and it allows no client that was not seen.
func TestProposeThenReplay(t *testing.T) {
	kept, cut, refused, dropped, never := 0, 0, 0, 0, 0
	for seed := range uint64(300) {
		d := dice{rand.New(rand.NewPCG(seed, 5))}
		in := d.policies()
		before := policy.NewSnapshot(in)
		model := insighttest.NewModel(watched(15, "m1", "m2"))
		seen := map[string]bool{} // subject, resource, action
		for range 20 + d.IntN(60) {
			o := d.observation()
			for _, e := range audit.Attribute(before, o).Edges(before) {
				model.Add(&audit.Batch{Rollups: []audit.Rollup{{Bucket: o.Time, Edge: e, Count: o.Count, FirstSeen: o.Time, LastSeen: o.Time}}})
				for _, action := range before.ActionsOn(e.Resource, e.Protocol, e.Port) {
					seen[e.Subject+" "+e.Resource+" "+action] = true
				}
			}
		}

		accepted := in
		accepted.Resources = nil
		for _, name := range servers {
			protect(name, v1alpha1.ModeEnforce)(&accepted)
			p := must[Proposal](t)(Propose(t.Context(), model, ProposeInput{Snapshot: before, Resource: name, Now: now, Since: ago(20)}))
			if acp := p.PolicyFor(func(l ProposalLine) bool { return l.State != StateCovered }); acp != nil {
				accepted.Policies = append(slices.Clone(accepted.Policies), acp)
			}
		}
		after := policy.NewSnapshot(accepted)
		if r := after.Refusals(); len(r) > len(before.Refusals()) {
			t.Fatalf("seed %d: what is proposed is refused: %+v", seed, r)
		}

		im := must[Impact](t)(Replay(t.Context(), model, ReplayInput{Fleet: onlyIn("m1"), Before: before, After: after, Since: ago(20), Until: now}))
		kept += int(im.Unchanged)
		for _, l := range im.NewlyDenied {
			switch {
			case l.Subject == "" || l.Action == "":
				cut++ // listed separately in the proposal: without a name, or at a port of no action
			case l.After == policy.Denied:
				refused++ // by a deny
			case shadowed(after, l.Resource):
				dropped++ // the replay reports what the members would not have
			default:
				t.Fatalf("seed %d: %s is cut off from %s at %s: %+v", seed, l.Subject, l.Resource, l.Action, l)
			}
		}

		// A client that was not seen at an action is allowed only where the earlier statements allow it.
		for _, name := range servers {
			for _, subject := range append(slices.Clone(clients), app+"stranger") {
				for _, port := range ports {
					if slices.ContainsFunc(after.ActionsOn(name, "TCP", port), func(a string) bool { return seen[subject+" "+name+" "+a] }) {
						continue
					}
					q := policy.Query{Subjects: []string{subject}, Resources: []string{name}, Cluster: "m1", Protocol: "TCP", Port: port, At: now}
					had, has := before.DecideEnforced(&q, nil), after.Decide(q)
					if has.Verdict.LetsThrough() && !had.Verdict.LetsThrough() {
						t.Fatalf("seed %d: %s was never seen at %s:%d, and is let in by %v", seed, subject, name, port, has.Statements)
					}
					never++
				}
			}
		}
	}
	if kept < 1000 || cut < 100 || refused < 20 || dropped < 20 || never < 1000 {
		t.Errorf(
			"%d kept, %d listed separately, %d refused by a deny, %d dropped with one that is refused, %d never seen: too few to notice a mistake",
			kept,
			cut,
			refused,
			dropped,
			never,
		)
	}
}

// shadowed reports whether the members lack an allow of a resource because a deny is refused.
func shadowed(s *policy.Snapshot, resource string) bool {
	u, ok := s.CompileResource(resource, now)
	return ok && slices.ContainsFunc(u.Refused, func(r policy.Refusal) bool { return r.Reason == v1alpha1.RefusedShadowingDeny })
}

// Replay against the evaluator itself: each connection decided by the policies before and after, with its own address.
func TestReplayAgreesWithDeciding(t *testing.T) {
	certain, doubtful := int64(0), int64(0)
	for seed := range uint64(300) {
		d := dice{rand.New(rand.NewPCG(seed, 6))}
		before, after := policy.NewSnapshot(d.policies()), d.policies()
		for _, r := range after.Resources {
			r.Spec.Mode = pick(d, v1alpha1.ModeAudit, v1alpha1.ModeEnforce)
		}
		target := policy.NewSnapshot(after)
		model := insighttest.NewModel(watched(15, "m1", "m2"))
		var allowed, denied, otherwise, unchanged, all int64
		for range 20 + d.IntN(60) {
			o := d.observation()
			all += o.Count
			for _, e := range audit.Attribute(before, o).Edges(before) {
				model.Add(&audit.Batch{Rollups: []audit.Rollup{{Bucket: o.Time, Edge: e, Count: o.Count, FirstSeen: o.Time, LastSeen: o.Time}}})
			}
			o.Time = now
			was, is := audit.Attribute(before, o).Decision, audit.Attribute(target, o).Decision
			switch {
			case was == is:
				unchanged += o.Count
			case !was.LetsThrough() && is.LetsThrough():
				allowed += o.Count
			case was.LetsThrough() && !is.LetsThrough():
				denied += o.Count
			default:
				otherwise += o.Count
			}
		}
		im := must[Impact](t)(Replay(t.Context(), model, ReplayInput{Fleet: onlyIn("m1"), Before: before, After: target, Since: ago(20), Until: now}))
		var unsure int64
		for _, u := range im.Uncertain {
			unsure += u.Count
		}
		if sum := im.Allowed.Connections + im.Denied.Connections + im.ReasonChangedTotal.Connections + im.Unchanged + unsure; sum != all {
			t.Fatalf("seed %d: %d of %d connections are reported: %+v", seed, sum, all, im)
		}
		for what, pair := range map[string][2]int64{"allowed": {im.Allowed.Connections, allowed}, "denied": {im.Denied.Connections, denied},
			"otherwise": {im.ReasonChangedTotal.Connections, otherwise}, "unchanged": {im.Unchanged, unchanged}} {
			if got, want := pair[0], pair[1]; got > want || got < want-unsure {
				t.Fatalf("seed %d: %d %s, deciding each of them says %d, %d are uncertain: %+v", seed, got, what, want, unsure, im)
			}
		}
		certain, doubtful = certain+all-unsure, doubtful+unsure
	}
	if certain < 10000 || doubtful < 100 {
		t.Errorf("%d certain, %d uncertain: too few to notice a mistake", certain, doubtful)
	}
}
