package istio

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	mesh "github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/policy"
)

// dedicated is a waypoint of a world, with the address of a Service that leads through it.
type dedicated struct {
	mesh.Waypoint
	deployment
	vip netip.Addr
}

// newWaypointWorlds generates worlds in ambient with waypoints for two of their resources.
func newWaypointWorlds(t *testing.T, n uint64, mutant func(map[string]any) map[string]any) ([]*world, map[*world][]dedicated) {
	t.Helper()
	var all []*world
	through := map[*world][]dedicated{}
	for seed := *firstSeed; seed < *firstSeed+n; seed++ {
		suffix := fmt.Sprint("-", seed)
		w := &world{seed: seed, generator: istiotest.NewGenerator(seed, 29), plain: seed%2 == 0, member: ambient}
		w.generator.Suffix = suffix
		var declared []string
		for i, x := range []mesh.Waypoint{
			{Resource: istiotest.SiteHead + "shop" + suffix, Gateway: "shop" + suffix, Port: 8080},
			{Resource: istiotest.RedisHead + "orders-cache" + suffix, Gateway: "cache" + suffix, Port: 6379},
		} {
			through[w] = append(through[w], dedicated{Waypoint: x,
				deployment: deployment{rootNamespace, x.Gateway, istioClass, fmt.Sprintf("10.212.%d.%d", seed%250, 1+i)}})
			declared = append(declared, fmt.Sprintf("{resource: '%s', gateway: %s, port: %d}", x.Resource, x.Gateway, x.Port))
		}
		w.capabilities = strings.Replace(
			istiotest.Capabilities,
			"{dataplane: ambient,",
			"{dataplane: ambient, waypoints: ["+strings.Join(declared, ", ")+"],",
			1,
		)
		in := w.generator.World(w.plain)
		if seed%6 >= 4 { // random worlds hardly ever have these features together
			in = withRequestsOfAnyone(in, suffix, ambient, seed%6 == 4)
		}
		if err := w.render(in, mutant); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	return all, through
}

// deployAll deploys the waypoints, and a Service for each: one of HTTP for a resource with requests.
func (p *controlPlane) deployAll(t *testing.T, through map[*world][]dedicated) {
	t.Helper()
	for _, of := range through {
		for i := range of {
			protocol := "tcp"
			if of[i].Port == 8080 {
				protocol = "http"
			}
			if err := p.deploy(t.Context(), of[i].deployment); err != nil {
				t.Fatal(err)
			}
			var err error
			if of[i].vip, err = p.createService(t.Context(), namespace, of[i].name, protocol, of[i].deployment); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// deniesConnections is a part of istiod's warning about a deny of requests without a port. The deny is intended: on a port of a Service that is
// not HTTP, the waypoint refuses the whole connection of the denied client.
const deniesConnections = "will deny all traffic to TCP ports"

// waypointTally counts comparisons.
type waypointTally struct {
	exact, let, others int
	verdicts           map[policy.Verdict]int
	// met counts the features of the exact decisions.
	met istiotest.Met
}

func newWaypointTally() *waypointTally {
	return &waypointTally{verdicts: map[policy.Verdict]int{}, met: istiotest.Met{}}
}

// compareThrough decides connections to pods with these labels through a waypoint, by the statements, and by what istiod sends to the waypoint and to
// ztunnel. It returns the first disagreement, or "".
func (w *world) compareThrough(labels map[string]string, d *dedicated, config *waypoint, pod connectionPolicies, out *waypointTally) (string, error) {
	for range connections {
		x := w.generator.Connection(w.s, labels, w.member)
		if x.Unmeshed || x.Traffic.Principal == "" {
			continue // a waypoint requires a certificate
		}
		if w.generator.IntN(2) == 0 { // the port of the waypoint
			x.Query.Port, x.Query.Method, x.Query.Path = uint16(d.Port), "", "" //nolint:gosec // a port
			if d.Port == 8080 {
				x.Query.Method, x.Query.Path = istiotest.Pick(w.generator, "GET", "POST"), istiotest.Pick(w.generator, "/orders", "/a.css", "/")
			}
			x.Traffic.Port, x.Traffic.Method, x.Traffic.Path = x.Query.Port, x.Query.Method, x.Query.Path
		}
		atWaypoint, atPod := x.Traffic, x.Traffic
		atWaypoint.Port = webPort
		atPod.Principal, atPod.Method, atPod.Path = "cluster.local/ns/"+rootNamespace+"/sa/"+d.name, "", ""
		passes, known, err := config.passes(d.vip, atWaypoint)
		if err != nil || !known {
			return "", fmt.Errorf("evaluate the waypoint %s (known %t): %w", d.name, known, err)
		}
		accepted, err := pod.passes(atPod)
		if err != nil {
			return "", fmt.Errorf("evaluate in the world of seed %d: %w", w.seed, err)
		}
		passes = passes && accepted
		query := x.Query
		own := slices.Contains(query.Resources, d.Resource)
		exact := own && len(query.Resources) == 1 && int32(x.Traffic.Port) == d.Port
		if own && !istiotest.SameMode(w.s, &query) {
			continue // the pod's other resource is behind a waypoint that is not its own
		}
		if !own { // the pod sees somebody whom no statement names
			query.Subjects, query.Method, query.Path = nil, "", ""
		}
		effective := w.s.DecideEffective(&query)
		if exact {
			out.exact++
			out.verdicts[effective.Verdict]++
			out.met.Add(istiotest.Features(&w.in, w.s, &query, &effective.Decision))
			if passes {
				out.let++
			}
		} else {
			out.others++
		}
		if passes && !effective.Verdict.LetsThrough() || exact && !passes && effective.Verdict.LetsThrough() {
			return fmt.Sprintf("seed %d: through the waypoint %s it passes: %t; decided is %s (%s): %+v to %v", w.seed, d.name, passes, effective.Verdict,
				effective.Explain(), x, labels), nil
		}
	}
	return "", nil
}

// runWaypoints writes the worlds and compares the connections through their waypoints.
func runWaypoints(t *testing.T, p *controlPlane, all []*world, through map[*world][]dedicated, out *waypointTally) (disagreement string) {
	t.Helper()
	inAmbient(t, p, all, func(state map[string]connectionPolicies) {
		for _, w := range all {
			for i := range through[w] {
				d := &through[w][i]
				config, err := p.untilServed(t.Context(), d.deployment, d.vip)
				if err != nil {
					t.Fatal(err)
				}
				for k, labels := range w.generator.Destinations() {
					if disagreement, err = w.compareThrough(labels, d, config, state[podName(w, k)], out); err != nil {
						t.Fatal(err)
					}
					if disagreement != "" {
						return
					}
				}
			}
		}
	})
	return disagreement
}

// TestWaypointAgrees compares the decisions of random worlds with what istiod sends to the waypoints that are dedicated to their resources, and to
// ztunnel for their pods: exactly for a pod of one resource on the waypoint's port, and never less strictly for anything else.
func TestWaypointAgrees(t *testing.T) {
	p := startControlPlane(t, gatewayAPI)
	createClasses(t, p)
	p.warnings.expected = deniesConnections
	out := newWaypointTally()
	n := min(60, max(1, *worlds/10))
	all, through := newWaypointWorlds(t, n, nil)
	p.deployAll(t, through)
	if disagreement := runWaypoints(t, p, all, through, out); disagreement != "" {
		t.Fatal(disagreement)
	}
	t.Logf("%d decisions in %d worlds through the waypoint of the pod's resource, %d pass: %v; %d others", out.exact, n, out.let, out.verdicts, out.others)
	if *worlds >= 600 && (out.exact < 500 || out.let < 100 || out.exact-out.let < 100 || out.others < 2000) {
		t.Error("too few decisions were compared")
	}
	if *worlds >= 600 {
		checkPairs(t, "waypoints", out.met, istiotest.Waypoints)
	}
	for i := range all {
		for k := range all[i].objects {
			o := &all[i].objects[k]
			if o.Spec["targetRefs"] == nil {
				continue
			}
			// The policies were deleted after the comparison.
			if err := p.client.Create(t.Context(), policyObject(o)); err != nil {
				t.Fatal(err)
			}
			if reported, err := p.untilAttached(t.Context(), o.Name); err != nil || reported != "True Accepted" {
				t.Fatalf("%s: istiod reports %q: %v", o.Name, reported, err)
			}
			return
		}
	}
}

// TestWaypointMutantsAreDetected checks that the comparison detects deliberate mistakes in what is rendered for waypoints.
func TestWaypointMutantsAreDetected(t *testing.T) {
	p := startControlPlane(t, gatewayAPI)
	createClasses(t, p)
	p.warnings.ignored = true
	_, through := newWaypointWorlds(t, 12, nil)
	p.deployAll(t, through)
	vips := map[string]netip.Addr{}
	for _, of := range through {
		for _, d := range of {
			vips[d.name] = d.vip
		}
	}
	atWaypoint := func(spec map[string]any) bool { return spec["targetRefs"] != nil }
	for name, mutant := range map[string]func(map[string]any) map[string]any{
		"NoPolicyOfTheWaypoint": func(spec map[string]any) map[string]any {
			if atWaypoint(spec) {
				return nil
			}
			return spec
		},
		"OtherClients": func(spec map[string]any) map[string]any {
			if !atWaypoint(spec) || spec["action"] != "ALLOW" {
				return spec
			}
			out := maps.Clone(spec)
			out["rules"] = []any{rule([]string{"app-888", "app-889", "svc-cart"})}
			return out
		},
		"PodsDoNotAcceptIt": func(spec map[string]any) map[string]any {
			if atWaypoint(spec) || spec["action"] != "ALLOW" {
				return spec
			}
			out := maps.Clone(spec)
			rules, _ := spec["rules"].([]any)
			out["rules"] = slices.DeleteFunc(slices.Clone(rules), func(r any) bool { return strings.Contains(fmt.Sprint(r), "/ns/"+rootNamespace) })
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, through := newWaypointWorlds(t, 12, mutant)
			for _, of := range through {
				for i := range of {
					of[i].vip = vips[of[i].name]
				}
			}
			dropRefused(t, p, all)
			if runWaypoints(t, p, all, through, newWaypointTally()) == "" {
				t.Error("not detected")
			}
		})
	}
}
