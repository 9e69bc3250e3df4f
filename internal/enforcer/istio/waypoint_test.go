package istio

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/enforcertest"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/norace"
	"github.com/acp-io/acp/internal/policy"
)

// waypointMember is a member in ambient that dedicates waypoints to two resources of the random worlds.
const waypointMember = "m2"

// connectionsPerWorld is the number of connections that are decided in one world.
const connectionsPerWorld = 40

// ofOne contains the labels of pods that belong only to one of the resources with a waypoint.
var ofOne = []map[string]string{{istiotest.SiteLabel: "shop"}, {istiotest.RedisLabel: "orders-cache"}}

// waypointConfig returns what the members of the random worlds declare, with waypoints in one.
func waypointConfig() Config {
	c := testConfig()
	m := c.Members[waypointMember]
	m.Waypoints = []Waypoint{
		{Resource: istiotest.SiteHead + "shop", Gateway: "shop", Port: 8080},
		{Resource: istiotest.RedisHead + "orders-cache", Gateway: "cache", Port: 6379},
	}
	c.Members[waypointMember] = m
	return c
}

// waypointOutcome counts what was compared.
type waypointOutcome struct {
	// exact are decisions about connections through the waypoint of a pod's only resource, of which let passed and requests were about requests
	// that depend on their method or path. direct are those of connections without it.
	exact, let, direct, directLet, mixed int
	words                                map[policy.Verdict]int
	disagreements                        []string
}

// compareWaypoint decides random connections to pods through the waypoints of their resources, and without them, in one world. change may break
// what is rendered, by the name of the object.
func compareWaypoint(t *testing.T, seed uint64, out *waypointOutcome, change func(name string, spec map[string]any) map[string]any) {
	t.Helper()
	d := istiotest.NewGenerator(seed, 23)
	in := d.World(seed%2 == 0)
	c := waypointConfig()
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	in.Translators = map[v1alpha1.EnforcerName]policy.Translator{v1alpha1.EnforcerIstio: translator{e}}
	s := policy.NewSnapshot(in)
	units := s.Compile(istiotest.Noon)
	e = e.WithUnits(units)
	m := mesh{ambient: true}
	for _, u := range units {
		r, err := e.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		if mode, ok := u.ClusterModes[waypointMember]; ok && mode == v1alpha1.ModeObserve || !ok && u.Mode == v1alpha1.ModeObserve {
			continue // the member gets no object
		}
		for _, o := range r.Objects {
			spec := o.Object.Spec
			if other, ok := o.Overrides[waypointMember]; ok {
				spec = other
			}
			if change != nil {
				spec = change(o.Object.Name, spec)
			}
			if spec == nil || !o.IsIn(waypointMember) {
				continue
			}
			if err := m.add(spec); err != nil && change == nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	for range connectionsPerWorld {
		labels := istiotest.Pick(d, append(d.Destinations(), ofOne[0], ofOne[1], ofOne[0], ofOne[1])...)
		x := d.Connection(s, labels, waypointMember)
		if d.IntN(2) == 0 { // a port of a waypoint
			x.Query.Port, x.Query.Method, x.Query.Path = 6379, "", ""
			if labels[istiotest.SiteLabel] != "" {
				x.Query.Port, x.Query.Method, x.Query.Path = 8080, istiotest.Pick(d, "GET", "POST"), istiotest.Pick(d, "/orders", "/a.css", "/")
			}
			x.Traffic.Port, x.Traffic.Method, x.Traffic.Path = x.Query.Port, x.Query.Method, x.Query.Path
		}
		q, tr := x.Query, x.Traffic
		effective := s.DecideEffective(&q)
		disagree := func(how string, passes bool, effective policy.Effective) {
			out.disagreements = append(out.disagreements, fmt.Sprintf("seed %d %s: it passes: %v, the members have %s (%s)\n%+v to %v\n%+v\n%+v",
				seed, how, passes, effective.Verdict, effective.Explain(), q, labels, tr, m.policies))
		}
		if passes := m.passes(labels, tr); !x.Unmeshed {
			out.direct++
			if passes {
				out.directLet++
			}
			if passes && !effective.Verdict.LetsThrough() {
				disagree("without a waypoint", passes, effective)
			}
		}
		if tr.Principal == "" || x.Unmeshed {
			continue // a waypoint requires a certificate
		}
		for _, w := range c.Members[waypointMember].Waypoints {
			passes := viaWaypoint(&m, w, labels, d, tr)
			own, effective := slices.Contains(q.Resources, w.Resource), effective
			only := len(q.Resources) == 1 && own
			if !own {
				// The pod sees somebody whom no statement names, and its resource is reported as one behind another waypoint.
				nameless := q
				nameless.Subjects, nameless.Method, nameless.Path = nil, "", ""
				effective = s.DecideEffective(&nameless)
			} else if !istiotest.SameMode(s, &q) {
				continue // the same: the pod's other resource is behind a waypoint that is not its own
			}
			switch {
			case only && tr.Port == uint16(w.Port):
				out.exact++
				out.words[effective.Verdict]++
				if passes {
					out.let++
				}
				if passes != effective.Verdict.LetsThrough() {
					disagree("through "+w.Gateway, passes, effective)
				}
			case passes && !effective.Verdict.LetsThrough():
				disagree("through "+w.Gateway, passes, effective)
			default:
				out.mixed++
			}
		}
	}
}

// viaWaypoint decides a connection through a waypoint: by the waypoint's policies with any port of a Service, and by those of the pod with the
// waypoint's account.
func viaWaypoint(m *mesh, w Waypoint, labels map[string]string, d istiotest.Generator, t istiotest.Traffic) bool {
	atWaypoint, atPod := t, t
	atWaypoint.Port = istiotest.Pick[uint16](d, 80, 443, 6379, 8080)
	atPod.Principal, atPod.Method, atPod.Path = "cluster.local/ns/istio-system/sa/"+w.Gateway, "", ""
	return m.passesWaypoint(w.Gateway, atWaypoint) && m.passes(labels, atPod)
}

// TestWaypointAgreesWithDecide checks that a connection through the dedicated waypoint of a pod's only resource passes exactly if the members let it
// through, and that no other connection passes that they refuse: through the waypoint of another resource, to another port, to a pod of several
// resources, or without a waypoint.
func TestWaypointAgreesWithDecide(t *testing.T) {
	norace.SkipUnderRace(t)
	out := waypointOutcome{words: map[policy.Verdict]int{}}
	for seed := range *worlds {
		compareWaypoint(t, seed, &out, nil)
	}
	for _, text := range out.disagreements[:min(3, len(out.disagreements))] {
		t.Error(text)
	}
	if n := len(out.disagreements); n > 0 {
		t.Fatalf("%d disagreements", n)
	}
	t.Logf("%d decisions through the waypoint (%d pass, %v), %d without it (%d pass), %d others",
		out.exact, out.let, out.words, out.direct, out.directLet, out.mixed)
	for _, w := range []policy.Verdict{policy.Allowed, policy.Denied, policy.DefaultDenied, policy.Audited, policy.Unmanaged} {
		if *worlds >= 1000 && out.words[w] < 60 {
			t.Errorf("only %d of the compared decisions are %s", out.words[w], w)
		}
	}
	if *worlds >= 1000 && (out.exact < 1000 || out.let < 200 || out.exact-out.let < 200 || out.direct < 10000 || out.directLet < 1000 || out.mixed < 5000) {
		t.Error("too few to notice a mistake")
	}
}

// TestWaypointMutantsAreDetected checks that the comparison detects deliberate mistakes in what is rendered for waypoints.
func TestWaypointMutantsAreDetected(t *testing.T) {
	norace.SkipUnderRace(t)
	atWaypoint := func(name string) bool { return strings.Contains(name, waypointSuffix) }
	fromWaypoint := func(rule any) bool { return strings.Contains(text(rule), "/ns/istio-system/sa/") }
	for name, change := range map[string]func(name string, spec map[string]any) map[string]any{
		"NoPolicyOfTheWaypoint": func(name string, spec map[string]any) map[string]any {
			if atWaypoint(name) {
				return nil
			}
			return spec
		},
		"NoDenyOfTheWaypoint": func(name string, spec map[string]any) map[string]any {
			if atWaypoint(name) && strings.Contains(name, denySuffix) {
				return nil
			}
			return spec
		},
		"PodsAcceptItOnEveryPort": func(_ string, spec map[string]any) map[string]any {
			out := maps.Clone(spec)
			var changed []any
			for _, r := range entries(spec["rules"]) {
				if fromWaypoint(r) {
					r = rule(entries(r.(map[string]any)["from"]), nil)
				}
				changed = append(changed, r)
			}
			out["rules"] = changed
			return out
		},
		"PodsDoNotAcceptIt": func(_ string, spec map[string]any) map[string]any {
			out := maps.Clone(spec)
			out["rules"] = slices.DeleteFunc(slices.Clone(entries(spec["rules"])), fromWaypoint)
			return out
		},
		"OfAnotherGateway": func(name string, spec map[string]any) map[string]any {
			if !atWaypoint(name) {
				return spec
			}
			out := maps.Clone(spec)
			out["targetRefs"] = targetOf("other")["targetRefs"]
			return out
		},
		"EveryRequestToTheWaypoint": func(name string, spec map[string]any) map[string]any {
			if !atWaypoint(name) {
				return spec
			}
			out := maps.Clone(spec)
			var changed []any
			for _, r := range entries(spec["rules"]) {
				changed = append(changed, rule(entries(r.(map[string]any)["from"]), nil))
			}
			out["rules"] = changed
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := waypointOutcome{words: map[policy.Verdict]int{}}
			for seed := uint64(0); seed < 1000 && len(out.disagreements) == 0; seed++ {
				compareWaypoint(t, seed, &out, change)
			}
			if len(out.disagreements) == 0 {
				t.Error("not detected")
			}
		})
	}
}

// TestHeldWithoutWaypoint checks that a member accepts its waypoint nowhere and refuses it on its port until all policies of the waypoint are in force,
// and that only this changes then.
func TestHeldWithoutWaypoint(t *testing.T) {
	e, err := New(waypointConfig())
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for seed := range uint64(200) {
		d := istiotest.NewGenerator(seed, 23)
		units := policy.NewSnapshot(d.World(seed%2 == 0)).Compile(istiotest.Noon)
		for _, u := range units {
			r, err := e.WithUnits(units).Render(u)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range r.Objects {
				h, ok := o.Interim[waypointMember]
				if !ok {
					continue
				}
				held++
				final := o.Overrides[waypointMember]
				if isDeny := strings.HasSuffix(o.Object.Name, denySuffix); isDeny {
					if !strings.Contains(text(h.Spec), text(h.Rule)) || strings.Contains(text(final), text(h.Rule)) || h.Spec["action"] != deny {
						t.Fatalf("seed %d: pods do not refuse the waypoint before: %v, then %v", seed, h.Spec, final)
					}
				} else if strings.Contains(text(h.Spec), "/ns/istio-system/sa/") || !Allows(final, h.Rule) {
					t.Fatalf("seed %d: before %v, then %v", seed, h.Spec, final)
				}
				if EffectOf(h.Spec, final) != 0 {
					t.Errorf("seed %d: what comes later refuses a client that passed before", seed)
				}
				var decide []string
				for _, w := range r.Objects {
					if strings.Contains(w.Object.Name, waypointSuffix) && w.IsIn(waypointMember) {
						decide = append(decide, w.Object.Name)
					}
				}
				if len(decide) < 2 || !slices.Equal(decide, h.Objects) {
					t.Errorf("seed %d: it waits for %v, and the waypoint has %v", seed, h.Objects, decide)
				}
			}
		}
	}
	if held < 50 {
		t.Errorf("%d objects are held", held)
	}
}

// TestWaypointLimits checks what is refused in spite of a waypoint: requests to other ports, other ports, and allows that a deny of another class
// could override, which pods cannot enforce behind a waypoint.
func TestWaypointLimits(t *testing.T) {
	e, err := New(waypointConfig())
	if err != nil {
		t.Fatal(err)
	}
	tcp := func(port int32) []v1alpha1.Port { return []v1alpha1.Port{{Port: port, Protocol: v1alpha1.ProtocolTCP}} }
	requests := []v1alpha1.HTTPMatch{{Method: "GET"}}
	app := []policy.UnitSubject{{Name: "n", ServiceAccount: "app-1"}}
	statement := func(effect policy.Effect, ports []v1alpha1.Port, http []v1alpha1.HTTPMatch) policy.UnitStatement {
		return policy.UnitStatement{Ref: policy.Ref{Policy: "p", SID: "s"}, Effect: effect, Subjects: app,
			Actions: []policy.UnitAction{{Name: "a:b", Ports: ports, HTTP: http}}}
	}
	deny := statement(policy.Deny, tcp(8080), nil)
	deny.Ref.SID = "deny"
	for _, c := range []struct {
		reason    string
		statement policy.UnitStatement
		others    []policy.Unit
		resource  string
		refused   string
	}{
		{"requests to the waypoint's port", statement(policy.Allow, tcp(8080), requests), nil, "shop", ""},
		{"connections to its port", statement(policy.Allow, tcp(8080), nil), nil, "shop", ""},
		{"connections to another port are those of ambient", statement(policy.Allow, tcp(80), nil), nil, "shop", ""},
		{"requests to another port", statement(policy.Allow, tcp(80), requests), nil, "shop", v1alpha1.RefusedUnsupported},
		{"requests to both ports", statement(policy.Allow, append(tcp(80), tcp(8080)...), requests), nil, "shop", v1alpha1.RefusedUnsupported},
		{"requests to a resource without a waypoint", statement(policy.Allow, tcp(8080), requests), nil, "blog", v1alpha1.RefusedUnsupported},
		{"a deny by name of another class does not see its clients", statement(policy.Allow, tcp(8080), nil),
			[]policy.Unit{{LabelKey: "other", Mode: v1alpha1.ModeEnforce, Statements: []policy.UnitStatement{deny}}}, "shop", v1alpha1.RefusedShadowingDeny},
		{"which concerns only the waypoint's port", statement(policy.Allow, tcp(80), nil),
			[]policy.Unit{{LabelKey: "other", Mode: v1alpha1.ModeEnforce, Statements: []policy.UnitStatement{deny}}}, "shop", ""},
		{"and only a resource with a waypoint", statement(policy.Allow, tcp(8080), nil),
			[]policy.Unit{{LabelKey: "other", Mode: v1alpha1.ModeEnforce, Statements: []policy.UnitStatement{deny}}}, "blog", ""},
	} {
		u := testUnit()
		u.Resource, u.Statements = istiotest.SiteHead+c.resource, []policy.UnitStatement{c.statement}
		got := ""
		for _, r := range e.WithUnits(c.others).Limits(&u, waypointMember).Refused {
			got += r.Reason
		}
		if got != c.refused {
			t.Errorf("%s: refused %q, want %q", c.reason, got, c.refused)
		}
	}
	u := testUnit()
	u.Resource, u.OtherPorts, u.OpenPorts = istiotest.SiteHead+"shop", v1alpha1.OtherPortsAllow, tcp(9000)
	if e.Limits(&u, waypointMember).OtherPorts == nil {
		t.Error("other ports are open, which connections through the waypoint do not reach")
	}
	if a, b := e.Profile(waypointMember), testEnforcer(t).Profile(waypointMember); a == b {
		t.Errorf("decisions do not tell a member with waypoints from one without: %q", a)
	}
}

// TestWaypointSeam checks the rules of the interface with waypoints.
func TestWaypointSeam(t *testing.T) {
	e, err := New(waypointConfig())
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(40) {
		d := istiotest.NewGenerator(seed, 10)
		units := policy.NewSnapshot(d.World(seed%2 == 0)).Compile(istiotest.Noon)
		enforcertest.Check(t, e.WithUnits(units), units)
	}
}

// TestHasObject checks which objects belong to a waypoint on its port.
func TestHasObject(t *testing.T) {
	for name, want := range map[string]bool{
		"acp-u-waypoint-80.w": true, "acp-u-waypoint-80-2.w": true, "acp-u-waypoint-80-deny.w": true, "acp-u-waypoint-80-deny-2.w": true,
		"acp-u-waypoint-8080.w": false, "acp-u-waypoint-80.v": false, "acp-u": false, "acp-v-waypoint-80.w": false,
	} {
		if got := (Waypoint{Gateway: "w", Port: 80}).HasObject("u", name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestUnusedWaypointIsRefused checks that pods refuse the waypoint of an entry that cannot be used, so that a client that is denied by name does not
// pass because everyone else may, and that the ports of no action stay closed.
func TestUnusedWaypointIsRefused(t *testing.T) {
	const resource = istiotest.SiteHead + "shop"
	entry := func(entries ...string) Declaration {
		return Declaration{Text: "{dataplane: ambient, version: '1.31', strictMTLS: true, waypoints: [" + strings.Join(entries, ", ") + "]}"}
	}
	const good = "{resource: '" + resource + "', gateway: w, port: 8080}"
	for _, c := range []struct {
		reason  string
		members map[string]Declaration
		refused []string // the Gateways that pods refuse on every port
	}{
		{"another member has a Gateway with this name for another resource",
			map[string]Declaration{"m1": entry(good), "m2": entry("{resource: other, gateway: w, port: 80}")}, []string{"w"}},
		{"the Gateway has two resources", map[string]Declaration{"m1": entry(good, "{resource: other, gateway: w, port: 80}")}, []string{"w"}},
		{"the resource has two Gateways", map[string]Declaration{"m1": entry(good, "{resource: '"+resource+"', gateway: v, port: 8080}")}, []string{"v", "w"}},
		{"the port is missing", map[string]Declaration{"m1": entry("{resource: '" + resource + "', gateway: w}")}, []string{"w"}},
		{"a field is unknown", map[string]Declaration{"m1": entry("{resource: '" + resource + "', gateway: w, port: 8080, prot: 1}")}, []string{"w"}},
		{"the name of the Gateway is impossible", map[string]Declaration{"m1": entry("{resource: '" + resource + "', gateway: W_, port: 8080}")}, nil},
		{"no entry is about the resource", map[string]Declaration{"m1": entry("{resource: other, gateway: w}")}, nil},
		{"the member has sidecars",
			map[string]Declaration{"m1": {Text: "{dataplane: sidecar, version: '1.31', strictMTLS: true, waypoints: [" + good + "]}"}}, nil},
	} {
		config := Declared(c.members)
		e, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		u := testUnit()
		before, last := int32(8079), int32(65535)
		u.Resource, u.OtherPorts, u.OpenPorts = resource, v1alpha1.OtherPortsAllow, []v1alpha1.Port{
			{Port: 1, EndPort: &before, Protocol: v1alpha1.ProtocolTCP}, {Port: 8081, EndPort: &last, Protocol: v1alpha1.ProtocolTCP}}
		actions := []policy.UnitAction{{Name: "a:b", Ports: []v1alpha1.Port{{Port: 8080, Protocol: v1alpha1.ProtocolTCP}}}}
		u.Statements = []policy.UnitStatement{
			{Ref: policy.Ref{Policy: "p", SID: "all"}, Effect: policy.Allow, Anyone: true, Actions: actions},
			{
				Ref:      policy.Ref{Policy: "p", SID: "not"},
				Effect:   policy.Deny,
				Subjects: []policy.UnitSubject{{Name: "n", ServiceAccount: "app-1"}},
				Actions:  actions,
			},
		}
		r, err := e.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		var allowed, denied string
		for _, o := range r.Objects {
			spec := o.Object.Spec
			if own, ok := o.Overrides["m1"]; ok {
				spec = own
			}
			switch o.Object.Name {
			case "acp-x":
				allowed = text(spec)
			case "acp-x-deny":
				denied = text(spec)
			default:
				t.Errorf("%s: there is a policy %s", c.reason, o.Object.Name)
			}
		}
		var refused []string
		for _, gateway := range []string{"v", "w"} {
			if strings.Contains(denied, `{"from":[{"source":{"principals":["*/ns/istio-system/sa/`+gateway+`"]}}]}`) {
				refused = append(refused, gateway)
			}
		}
		if !slices.Equal(refused, c.refused) {
			t.Errorf("%s: pods refuse %v, want %v: %s", c.reason, refused, c.refused, denied)
		}
		if others := strings.Contains(allowed, "notPorts"); others == (c.refused != nil) {
			t.Errorf("%s: other ports are open: %t: %s", c.reason, others, allowed)
		}
		if d := config.Dedications(resource)["m1"]; d.Refused != (c.refused != nil) {
			t.Errorf("%s: the dedication is %+v", c.reason, d)
		}
	}
}

// TestWaypointOfALargeUnit checks that only the last object with allows waits for the waypoint if a unit has several.
func TestWaypointOfALargeUnit(t *testing.T) {
	e, err := New(waypointConfig())
	if err != nil {
		t.Fatal(err)
	}
	u := testUnit()
	u.Resource = istiotest.SiteHead + "shop"
	for i := range int32(maxRules + 100) { // each is a rule of its own
		u.Statements = append(u.Statements, policy.UnitStatement{Ref: policy.Ref{Policy: "p", SID: fmt.Sprint(i)}, Effect: policy.Allow,
			Subjects: []policy.UnitSubject{{Name: "n", ServiceAccount: "app-1"}},
			Actions:  []policy.UnitAction{{Name: "a:b", Ports: []v1alpha1.Port{{Port: 10000 + i, Protocol: v1alpha1.ProtocolTCP}}}}})
	}
	r, err := e.Render(u)
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	for _, o := range r.Objects {
		if _, ok := o.Interim[waypointMember]; ok {
			held = append(held, o.Object.Name)
		}
	}
	if want := []string{"acp-x-2", "acp-x-deny"}; !slices.Equal(held, want) {
		t.Errorf("held are %v, want %v", held, want)
	}
}
