package istio

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

const (
	apps  = "trnv1:rsc:trip-com:iam:sa:app/"
	svcs  = "trnv1:rsc:trip-com:mesh:svc:"
	redis = "trnv1:rsc:trip-com:redis:clusters:"
	sites = "trnv1:rsc:trip-com:web:sites:"
	cidr  = "trnv1:rsc:trip-com:net:cidr:"
)

// goldenTime is the instant of every test.
var goldenTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// The members of the tests: m1 sees requests, m2 connections only, m3 nothing; m1 requires mutual TLS.
func testConfig() Config {
	return Config{
		Default: Capabilities{Dataplane: Sidecar, Version: "1.31.0", Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/14")}},
		Members: map[string]Capabilities{
			"m1": {Dataplane: Sidecar, Version: "1.30.1", StrictMTLS: true, Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}},
			"m2": {Dataplane: Ambient, Version: "1.29", Ranges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/16")}},
			"m3": {Dataplane: Sidecar, Version: "1.28.9", Ranges: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}},
		},
	}
}

type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func several[T comparable](d dice, most int, from ...T) []T {
	var out []T
	for range 1 + d.IntN(most) {
		if v := pick(d, from...); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (d dice) time() *metav1.Time {
	if d.IntN(4) > 0 {
		return nil
	}
	t := metav1.NewTime(goldenTime.Add(time.Duration(d.IntN(3)-1) * time.Hour))
	return &t
}

func port(n int32) v1alpha1.Port { return v1alpha1.Port{Port: n} }

// world is random objects. plain ones have nothing that Istio has to refuse.
func (d dice) world(plain bool) policy.Input {
	last := int32(16381)
	redisActions := []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{port(6379)}},
		{Name: "redis:admin", Ports: []v1alpha1.Port{port(6380), port(80)}}}
	webActions := []v1alpha1.ClassAction{{Name: "web:connect", Ports: []v1alpha1.Port{port(80)}},
		{Name: "web:read", Ports: []v1alpha1.Port{port(8080)}, HTTP: []v1alpha1.HTTPMatch{{Method: "GET|HEAD"}}},
		{Name: "web:orders", Ports: []v1alpha1.Port{port(8080), port(80)}, HTTP: []v1alpha1.HTTPMatch{{Method: "POST", Path: "/orders(/.*)?"}, {Path: ".*\\.css"}}}}
	appTemplate, svcTemplate := "app-{id}", "svc-{id}"
	if !plain && d.IntN(2) == 0 {
		redisActions = append(redisActions,
			v1alpha1.ClassAction{Name: "redis:range", Ports: []v1alpha1.Port{port(6379), {Port: 16380, EndPort: &last}}},
			v1alpha1.ClassAction{Name: "redis:udp", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolUDP}, port(6380)}})
		webActions = append(webActions, v1alpha1.ClassAction{Name: "web:odd", Ports: []v1alpha1.Port{port(8080)}, HTTP: []v1alpha1.HTTPMatch{{Path: "/a.+b"}}})
		svcTemplate = pick(d, svcTemplate, "")
	}
	resource := func(name, pattern, key string, other v1alpha1.OtherPorts, actions []v1alpha1.ClassAction) *v1alpha1.ResourceClass {
		return &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ResourceClassSpec{
			Pattern: v1alpha1.NamePattern(pattern), LabelKey: v1alpha1.LabelKey(key), OtherPorts: other, Actions: actions,
			Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerIstio}}}
	}
	subject := func(name, pattern, key, template string) *v1alpha1.SubjectClass {
		return &v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubjectClassSpec{
			Pattern: v1alpha1.NamePattern(pattern), LabelKey: v1alpha1.LabelKey(key), ServiceAccountTemplate: template}}
	}
	in := policy.Input{
		SubjectClasses:  []*v1alpha1.SubjectClass{subject("application", apps+"*", "com.trip/appid", appTemplate), subject("service", svcs+"*", "com.trip/service", svcTemplate)},
		ResourceClasses: []*v1alpha1.ResourceClass{resource("redis", redis+"*", "com.trip/redis-cluster", v1alpha1.OtherPortsDeny, redisActions)},
	}
	if d.IntN(4) == 0 { // alone, so that its other ports can be open
		in.ResourceClasses = nil
	}
	other := v1alpha1.OtherPortsDeny
	if !plain || in.ResourceClasses == nil {
		other = pick(d, v1alpha1.OtherPortsDeny, v1alpha1.OtherPortsAllow)
	}
	in.ResourceClasses = append(in.ResourceClasses, resource("web", sites+"*", "com.trip/site", other, webActions))
	for i, name := range []string{redis + "bobs-cluster", redis + "orders-cache", sites + "shop"} {
		r := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", i)},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: d.mode()}}
		for _, c := range []string{"m1", "m2"} {
			if d.IntN(4) == 0 {
				r.Spec.ClusterModes = append(r.Spec.ClusterModes, v1alpha1.ClusterMode{Cluster: v1alpha1.ClusterName(c), Mode: d.mode()})
			}
		}
		if t := d.time(); t != nil {
			r.Spec.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: *t}
		}
		in.Resources = append(in.Resources, r)
	}
	for i := range d.IntN(4) {
		in.Workloads = append(in.Workloads, &v1alpha1.ExternalWorkload{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("w", i)},
			Spec: v1alpha1.ExternalWorkloadSpec{Subject: v1alpha1.ResourceName(pick(d, apps+"888", apps+"889", svcs+"cart")),
				Addresses: several(d, 2, "10.5.0.0/24", "10.5.0.0/16", "10.5.0.9", "2001:db8::/32", "2001:db8::/48")}})
	}
	for i := range 1 + d.IntN(3) {
		p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}}
		for j := range 1 + d.IntN(4) {
			p.Spec.Statements = append(p.Spec.Statements, d.statement(fmt.Sprint("s", j), plain))
		}
		in.Policies = append(in.Policies, p)
	}
	return in
}

func (d dice) mode() v1alpha1.Mode {
	return pick(d, v1alpha1.ModeObserve, v1alpha1.ModeAudit, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce, v1alpha1.ModeEnforce)
}

func (d dice) statement(sid string, plain bool) v1alpha1.Statement {
	st := v1alpha1.Statement{SID: sid, Effect: pick(d, policy.Allow, policy.Allow, policy.Deny), NotBefore: d.time(), NotAfter: d.time()}
	subjects := []v1alpha1.Subject{apps + "888", apps + "888", apps + "889", svcs + "cart", svcs + "888", "*", cidr + "10.5.0.0/24", cidr + "10.5.0.0/16", cidr + "2001:db8::/32"}
	actions := []v1alpha1.Action{"redis:connect", "redis:admin"}
	if d.IntN(2) == 0 {
		actions = []v1alpha1.Action{"web:connect", "web:read", "web:orders", "web:*"}
	}
	resources := []v1alpha1.ResourceName{redis + "bobs-cluster", redis + "orders-cache", redis + "*", redis + "bobs-*"}
	if strings.HasPrefix(string(actions[0]), "web:") {
		resources = []v1alpha1.ResourceName{sites + "shop", sites + "shop", sites + "*"}
	}
	if !plain && d.IntN(3) == 0 {
		subjects = append(subjects, apps+"*", apps+"88*", apps+"Not_An_Account", cidr+"10.0.0.0/8", cidr+"0.0.0.0/0", "trnv1:rsc:trip-com:no:class:x")
		if strings.HasPrefix(string(actions[0]), "redis:") {
			actions = append(actions, "redis:range", "redis:udp", "redis:*", "redis:none")
		} else {
			actions = append(actions, "web:odd")
		}
	}
	st.Subjects, st.Actions, st.Resources = several(d, 2, subjects...), several(d, 2, actions...), several(d, 2, resources...)
	return st
}

// sender is a source as the statements and as the mesh know it.
type sender struct {
	query   policy.Query
	traffic traffic
	// unmeshed pods have a name in statements and no certificate.
	unmeshed bool
}

func (d dice) sender(s *policy.Snapshot) sender {
	labels := pick(d, map[string]string{"com.trip/appid": "888"}, map[string]string{"com.trip/appid": "889"}, map[string]string{"com.trip/service": "cart"},
		map[string]string{"com.trip/service": "888"}, map[string]string{"com.trip/appid": "8889"})
	x := sender{traffic: traffic{address: netip.MustParseAddr(pick(d, "10.0.3.4", "10.1.3.4", "fd00::7"))}}
	switch d.IntN(6) {
	case 0: // a node
	case 1, 2:
		x.query.Source = netip.MustParseAddr(pick(d, "10.5.0.9", "10.5.0.8", "10.5.7.7", "10.9.9.9", "2001:db8::1", "2001:db8:1::1", "2001:dead::1"))
		x.traffic.address = x.query.Source
	case 3:
		x.query.Subjects, x.unmeshed = s.SubjectsOf(labels), true
	default: // in the mesh; some from addresses outside the fleet, which must not count
		x.query.Subjects = s.SubjectsOf(labels)
		if d.IntN(4) == 0 {
			x.traffic.address = netip.MustParseAddr(pick(d, "10.5.0.9", "10.5.0.8", "2001:db8::1"))
		}
		account := "app-" + labels["com.trip/appid"]
		if v, ok := labels["com.trip/service"]; ok {
			account = "svc-" + v
		}
		x.traffic.principal = pick(d, "cluster.local", "other.domain") + "/ns/" + pick(d, "a", "sa") + "/sa/" + account
	}
	return x
}

// outcome of comparing one world in one member.
type outcome struct {
	exact, stricter int
	// let is how many connections passed in spite of refusals.
	let           int
	words         map[policy.Word]int
	disagreements []string
}

// compare asks the statements and the mesh about random connections. change may break what is rendered.
func compare(t *testing.T, seed uint64, plain, knowing bool, out *outcome, change func(spec map[string]any) map[string]any) {
	t.Helper()
	d := dice{rand.New(rand.NewPCG(seed, 7))}
	in := d.world(plain)
	s := policy.NewSnapshot(in)
	e, err := New(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	units := s.Compile(goldenTime)
	if knowing {
		e = e.Knowing(units)
	}
	cluster := pick(d, "m1", "m2", "m3", "unnamed")
	m := mesh{ambient: cluster == "m2"}
	refused := len(s.Refusals()) > 0 && !plain
	for _, u := range units {
		r, err := e.Render(u)
		if err != nil {
			t.Fatal(err)
		}
		refused = refused || len(r.RefusedBy(cluster)) > 0
		if mode, ok := u.ClusterModes[cluster]; ok && mode == v1alpha1.ModeObserve || !ok && u.Mode == v1alpha1.ModeObserve {
			continue // the member gets no object
		}
		for _, o := range r.Objects {
			spec := o.Object.Spec
			if other, ok := o.Overrides[cluster]; ok {
				spec = other
			}
			if change != nil {
				if spec = change(spec); spec == nil {
					continue
				}
			}
			if err := m.add(spec); err != nil && change == nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	for range 30 {
		labels := pick(d, map[string]string{"com.trip/redis-cluster": "bobs-cluster"}, map[string]string{"com.trip/site": "shop"},
			map[string]string{"com.trip/redis-cluster": "orders-cache", "com.trip/site": "shop"}, map[string]string{"com.trip/redis-cluster": "bobs-cluster", "com.trip/site": "blog"})
		x := d.sender(s)
		if x.unmeshed && cluster == "m1" {
			continue // mutual TLS is required: it cannot connect
		}
		q, tr := x.query, x.traffic
		q.Resources, q.Cluster, q.At, q.Protocol = s.ResourcesOf(labels), cluster, goldenTime, v1alpha1.ProtocolTCP
		q.Port = pick[uint16](d, 6379, 6379, 6380, 16380, 80, 8080, 8080, 9121)
		if q.Port == 80 || q.Port == 8080 { // their protocol is HTTP, so a request is what is decided
			q.Method, q.Path = pick(d, "GET", "POST", "PUT"), pick(d, "/", "/orders", "/orders/1", "/ordersx", "/a.css", "/axb")
		}
		tr.port, tr.method, tr.path = q.Port, q.Method, q.Path
		decision := s.Decide(q)
		means := decision.Word != policy.Denied && decision.Word != policy.DefaultDenied
		passes := m.passes(labels, tr)
		exact := !refused && !x.unmeshed && sameMode(s, q)
		switch {
		case passes && !means, exact && passes != means:
			out.disagreements = append(out.disagreements, fmt.Sprintf("seed %d in %s: the mesh lets it through: %v, the statements mean %s (%v)\n%+v\n%+v\n%+v",
				seed, cluster, passes, decision.Word, decision.Statements, q, tr, m.policies))
		case exact:
			out.exact++
			out.words[decision.Word]++
		case passes != means:
			out.stricter++
		case decision.Word == policy.Allowed:
			out.let++
		}
	}
}

// sameMode tells whether all of the destination's resources have one mode. An allow of a resource in Audit or Observe
// cannot open, for Istio, what another resource of the pod closes.
func sameMode(s *policy.Snapshot, q policy.Query) bool {
	modes := map[v1alpha1.Mode]bool{}
	for _, r := range q.Resources {
		modes[s.EffectiveMode(r, q.Cluster, q.At)] = true
	}
	return len(modes) == 1 || len(q.Resources) == 0
}

func TestMeshAgreesWithDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                  string
		plain                   bool
		leastExact, leastStrict int
		leastLet                int
	}{
		"Plain":   {reason: "nothing is refused, so the mesh does what the statements mean", plain: true, leastExact: 10000},
		"Refused": {reason: "what is refused may close more, and never opens anything", leastStrict: 500, leastLet: 300},
	} {
		t.Run(name, func(t *testing.T) {
			out := outcome{words: map[policy.Word]int{}}
			for seed := range uint64(1500) {
				compare(t, seed, tc.plain, true, &out, nil)
			}
			for _, text := range out.disagreements[:min(3, len(out.disagreements))] {
				t.Errorf("%s: %s", tc.reason, text)
			}
			if n := len(out.disagreements); n > 0 {
				t.Fatalf("%d disagreements", n)
			}
			if out.exact < tc.leastExact || out.stricter < tc.leastStrict || out.let < tc.leastLet {
				t.Errorf("%d decisions alike, %d stricter, %d let through: too few to notice a mistake", out.exact, out.stricter, out.let)
			}
			for _, w := range []policy.Word{policy.Allowed, policy.Denied, policy.DefaultDenied, policy.Audited, policy.Unmanaged} {
				if tc.plain && out.words[w] < 200 {
					t.Errorf("only %d of the compared decisions are %s", out.words[w], w)
				}
			}
			t.Logf("%d alike, %d stricter, %d let through, %v", out.exact, out.stricter, out.let, slices.Sorted(maps.Keys(out.words)))
		})
	}
}

// Every mistake that the translation is careful about has to be noticed by the comparison.
func TestBrokenTranslationsAreNoticed(t *testing.T) {
	rule := func(change func(rule map[string]any) map[string]any) func(map[string]any) map[string]any {
		return func(spec map[string]any) map[string]any {
			spec = maps.Clone(spec)
			var rules []any
			for _, r := range anyList(spec["rules"]) {
				if r := change(maps.Clone(r.(map[string]any))); r != nil {
					rules = append(rules, r)
				}
			}
			spec["rules"] = rules
			return spec
		}
	}
	from := func(change func(source map[string]any)) func(map[string]any) map[string]any {
		return rule(func(r map[string]any) map[string]any {
			var out []any
			for _, f := range anyList(r["from"]) {
				source := maps.Clone(f.(map[string]any)["source"].(map[string]any))
				change(source)
				out = append(out, map[string]any{"source": source})
			}
			if out != nil {
				r["from"] = out
			}
			return r
		})
	}
	to := func(change func(operation map[string]any)) func(map[string]any) map[string]any {
		return rule(func(r map[string]any) map[string]any {
			var out []any
			for _, o := range anyList(r["to"]) {
				operation := maps.Clone(o.(map[string]any)["operation"].(map[string]any))
				change(operation)
				out = append(out, map[string]any{"operation": operation})
			}
			if out != nil {
				r["to"] = out
			}
			return r
		})
	}
	action := func(is, becomes string) func(map[string]any) map[string]any {
		return func(spec map[string]any) map[string]any {
			if spec = maps.Clone(spec); spec["action"] == is {
				spec["action"] = becomes
			}
			return spec
		}
	}
	for name, change := range map[string]func(map[string]any) map[string]any{
		"AuditAllows": action("AUDIT", "ALLOW"),
		"AuditDenies": action("AUDIT", "DENY"),
		"NoDenies": func(spec map[string]any) map[string]any {
			if spec["action"] == "DENY" {
				return nil
			}
			return spec
		},
		"NoPolicyWithoutRules": func(spec map[string]any) map[string]any {
			if spec["rules"] == nil {
				return nil
			}
			return spec
		},
		"RangesMatchPods":    from(func(s map[string]any) { delete(s, "notPrincipals") }),
		"LongerRangesCount":  from(func(s map[string]any) { delete(s, "notIpBlocks") }),
		"NoFrom":             rule(func(r map[string]any) map[string]any { delete(r, "from"); return r }),
		"NoTo":               rule(func(r map[string]any) map[string]any { delete(r, "to"); return r }),
		"NoRuleForAnyone":    rule(func(r map[string]any) map[string]any { return map[bool]map[string]any{true: r}[r["from"] != nil] }),
		"AnyPort":            to(func(o map[string]any) { delete(o, "ports") }),
		"AnyMethod":          to(func(o map[string]any) { delete(o, "methods") }),
		"AnyPath":            to(func(o map[string]any) { delete(o, "paths") }),
		"EveryPortIsOpen":    to(func(o map[string]any) { delete(o, "notPorts") }),
		"OneNamespace":       from(principals(func(p string) string { return "cluster.local/ns/a" + p[1:] })),
		"AccountsByTheirEnd": from(principals(func(p string) string { return "*" + p[len(p)-1:] })),
		"OneAccount": from(func(s map[string]any) {
			if p := anyList(s["principals"]); len(p) > 1 {
				s["principals"] = p[:1]
			}
		}),
		"SelectsByClassOnly": func(spec map[string]any) map[string]any {
			spec = maps.Clone(spec)
			labels := spec["selector"].(map[string]any)["matchLabels"].(map[string]any)
			if _, ok := labels["com.trip/redis-cluster"]; ok {
				labels = map[string]any{"com.trip/redis-cluster": "bobs-cluster"}
			}
			spec["selector"] = map[string]any{"matchLabels": labels}
			return spec
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := outcome{words: map[policy.Word]int{}}
			for seed := uint64(0); seed < 1500 && len(out.disagreements) == 0; seed++ {
				compare(t, seed, true, true, &out, change)
			}
			if len(out.disagreements) == 0 {
				t.Errorf("%d decisions do not notice it", out.exact)
			}
		})
	}
}

// A pod may carry the labels of several classes: without the other units, a refused deny would leave a door open.
func TestUnitsHaveToKnowEachOther(t *testing.T) {
	out := outcome{words: map[policy.Word]int{}}
	for seed := uint64(0); seed < 1500 && len(out.disagreements) == 0; seed++ {
		compare(t, seed, false, false, &out, nil)
	}
	if len(out.disagreements) == 0 {
		t.Error("the comparison does not notice that units are rendered alone")
	}
}

func principals(change func(string) string) func(map[string]any) {
	return func(source map[string]any) {
		var out []any
		for _, p := range anyList(source["principals"]) {
			out = append(out, change(p.(string)))
		}
		if out != nil {
			source["principals"] = out
		}
	}
}

func anyList(v any) []any { l, _ := v.([]any); return l }
