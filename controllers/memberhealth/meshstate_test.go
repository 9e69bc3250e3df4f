package memberhealth

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

// TestInspectorFindsMeshProblems checks that Istio counts as enforcing only where the pods of the label were listed and all of them have a
// proxy, and where the mutual TLS that the member declares is required; and that one failed read changes nothing.
func TestInspectorFindsMeshProblems(t *testing.T) {
	const key = "com.trip/redis"
	const declared = `{"dataplane": "sidecar", "version": "1.31.2", "strictMTLS": true}`
	sound := func() preflight.Facts {
		f := configured(nil)
		f.Istio = preflight.Istio{Served: true, Declared: declared, MTLS: preflight.MTLS{Strict: true}}
		f.MeshPods = listedMeshPods([]string{key})
		return f
	}
	facts := sound()
	changes := 0
	i := checkedMember(t, func() preflight.Facts { return facts }, func() { changes++ })
	if i.MeshProblem("m1", key, "a", true, "").IsZero() {
		t.Error("nothing was read yet")
	}
	bare := map[federation.Label][]string{{Key: key, Value: "a"}: {"ns/redis-0"}}
	unread := preflight.LabeledPods{Unread: message.Verbatim("a timeout")}
	for _, c := range []struct {
		reason  string
		change  func(*preflight.Facts)
		says    string // of the value a; "" for no problem
		changes int
	}{
		{"every pod has a proxy", func(*preflight.Facts) {}, "", 1},
		{"a pod has none", func(f *preflight.Facts) { f.Unproxied.Pods = bare }, "ns/redis-0", 2},
		{"the pods cannot be listed once, so what was known counts", func(f *preflight.Facts) {
			f.MeshPods = preflight.UnreadMeshPods(message.Verbatim("a timeout"))
			f.HostPods.Pods = map[federation.Label][]string{{Key: "com.trip/other", Value: "x"}: {"ns/host-0"}}
		}, "ns/redis-0", 3},
		{"nor a second time", func(f *preflight.Facts) { f.MeshPods = preflight.UnreadMeshPods(message.Verbatim("a timeout")) }, "a timeout", 4},
		{"it has a proxy now", func(*preflight.Facts) {}, "", 5},
		{"the label was not asked for", func(f *preflight.Facts) { f.Unproxied.Keys = []string{"com.trip/other"} }, "have not been listed", 6},
		{"plain text is accepted", func(f *preflight.Facts) { f.Istio.MTLS = preflight.MTLS{} }, "no mesh-wide PeerAuthentication", 7},
		{"mutual TLS is required again", func(*preflight.Facts) {}, "", 8},
		{"it cannot be read once", func(f *preflight.Facts) { f.Istio.MTLS = preflight.MTLS{Unread: message.Verbatim("a timeout")} }, "", 8},
		{"nor a second time", func(f *preflight.Facts) { f.Istio.MTLS = preflight.MTLS{Unread: message.Verbatim("a timeout")} }, "unknown: a timeout", 9},
		{"connections to a pod pass a waypoint", func(f *preflight.Facts) { f.BehindWaypoint.Pods = bare }, "waypoint's service account", 10},
		{"what uses waypoints cannot be read once", func(f *preflight.Facts) { f.BehindWaypoint = unread }, "waypoint's service account", 10},
		{"nor a second time", func(f *preflight.Facts) { f.BehindWaypoint = unread }, "pass a waypoint is unknown: a timeout", 11},
		{"the label was not considered for waypoints", func(f *preflight.Facts) { f.BehindWaypoint.Keys = nil }, "have not been listed", 12},
		{"a pod is in ambient", func(f *preflight.Facts) { f.InAmbient.Pods = bare }, "the member declares sidecars", 13},
		{"none is", func(*preflight.Facts) {}, "", 14},
		{"its mesh has another root namespace", func(f *preflight.Facts) {
			f.Istio.Config = preflight.MeshConfig{Ignored: message.Verbatim("root namespace mesh")}
		}, "does not apply it to the whole mesh: root namespace mesh", 15},
		{"that was corrected", func(*preflight.Facts) {}, "", 16},
		{"the mesh configuration cannot be read once", func(f *preflight.Facts) {
			f.Istio.Config = preflight.MeshConfig{Unread: message.Verbatim("a timeout")}
		}, "", 16},
		{"nor a second time", func(f *preflight.Facts) {
			f.Istio.Config = preflight.MeshConfig{Unread: message.Verbatim("a timeout")}
		}, "to the whole mesh is unknown: a timeout", 17},
		{"it was read without problems", func(*preflight.Facts) {}, "", 18},
		{"an istiod is too old", func(f *preflight.Facts) { f.Istio.Config = preflight.MeshConfig{Old: message.Verbatim("1.28")} }, "enforces it: 1.28", 19},
		{"one istiod has another root namespace, and that of another cannot be read", func(f *preflight.Facts) {
			f.Istio.Config = preflight.MeshConfig{Ignored: message.Verbatim("root namespace mesh"), Unread: message.Verbatim("a timeout")}
		}, "does not apply it to the whole mesh: root namespace mesh", 20},
	} {
		facts = sound()
		c.change(&facts)
		i.checkAll(t.Context())
		if got := i.MeshProblem("m1", key, "a", true, "").Text; (got == "") != (c.says == "") || !strings.Contains(got, c.says) || changes != c.changes {
			t.Errorf("%s: %q, %d changes", c.reason, got, changes)
		}
		if got := i.MeshProblem("m1", key, "a", false, "").Text; strings.Contains(c.says, "declares sidecars") != (got == "" && c.says != "") {
			t.Errorf("%s: without rules about requests %q", c.reason, got)
		}
		if c.says == "ns/redis-0" && !i.MeshProblem("m1", key, "b", true, "").IsZero() {
			t.Errorf("%s: a pod of another resource counts", c.reason)
		}
	}
	if len(i.trigger) == 0 {
		t.Error("a label that was not listed requests no check")
	}
}

// TestInspectorKnowsDedicatedWaypoints checks that a pod behind the waypoint of its resource does not count, one behind another does, one behind none
// counts for a policy about requests, and what is known about the Gateway.
func TestInspectorKnowsDedicatedWaypoints(t *testing.T) {
	const key = "com.trip/redis"
	facts := configured(nil)
	facts.Istio = preflight.Istio{Served: true, Declared: `{"dataplane": "ambient", "version": "1.31.2"}`}
	facts.MeshPods = listedMeshPods([]string{key})
	of := func(value string, pods ...string) map[federation.Label][]string {
		return map[federation.Label][]string{{Key: key, Value: value}: pods}
	}
	facts.Dedicated.Pods, facts.Direct.Pods = of("a", "ns/redis-0 (istio-system/w)"), of("b", "ns/redis-1")
	facts.Gateways = map[string]message.Message{"w": {}, "x": message.Verbatim("another class")}
	i := checkedMember(t, func() preflight.Facts { return facts }, func() {})
	if _, known := i.GatewayProblem("m1", "w"); known {
		t.Error("nothing was read yet")
	}
	i.MeshProblem("m1", key, "a", false, "")
	i.checkAll(t.Context())
	for _, c := range []struct {
		reason, value, gateway string
		requests               bool
		says                   string
	}{
		{"behind its waypoint", "a", "w", true, ""},
		{"the waypoint of another resource", "a", "v", false, "istio-system/w"},
		{"its resource has none", "a", "", false, "istio-system/w"},
		{"behind none, and requests are decided there", "b", "w", true, "ns/redis-1"},
		{"behind none", "b", "w", false, ""},
		{"its resource has none, and it is behind none", "b", "", true, ""},
	} {
		if got := i.MeshProblem("m1", key, c.value, c.requests, c.gateway).Text; (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", c.reason, got)
		}
	}
	for gateway, want := range map[string]string{"w": "", "x": "another class"} {
		if got, known := i.GatewayProblem("m1", gateway); got.Text != want || !known {
			t.Errorf("%s: %q, known %t", gateway, got.Text, known)
		}
	}
	if _, known := i.GatewayProblem("m1", "y"); known {
		t.Error("a Gateway that was not read is known")
	}
	i.Keys = func() []preflight.Key {
		return []preflight.Key{{Class: "letters", ServiceAccount: "w{id}"}, {Class: "app", ServiceAccount: "app-{id}"}}
	}
	for gateway, known := range map[string]bool{"w": true, "app-1": true} {
		if got, read := i.GatewayProblem("m1", gateway); read != known || strings.Contains(got.Text, "class app") != (gateway == "app-1") {
			t.Errorf("%s, with the accounts of a class: %q, known %t", gateway, got.Text, read)
		}
	}
}

// listedMeshPods are the pods of a member in which none with these keys has a problem.
func listedMeshPods(keys []string) preflight.MeshPods {
	none := preflight.LabeledPods{Keys: keys}
	return preflight.MeshPods{Unproxied: none, InAmbient: none, BehindWaypoint: none}
}

var redisKey, appKey = []string{"com.trip/redis"}, []string{"com.trip/appid"}

// TestIstiodIsLostAfterARestartWouldHaveEnded checks that an istiod without an available pod counts only if every check of half a minute found this, also if
// the mesh configuration could not be read meanwhile, and that it counts no more at once when a pod is available.
func TestIstiodIsLostAfterARestartWouldHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "com.trip/redis"
		facts, changes := configured(nil), 0
		facts.MeshPods = listedMeshPods([]string{key})
		facts.Istio = preflight.Istio{Served: true, Declared: `{"dataplane": "sidecar", "version": "1.31.2"}`}
		i := checkedMember(t, func() preflight.Facts { return facts }, func() { changes++ })
		i.Keys = func() []preflight.Key { return []preflight.Key{{Class: "redis", Label: key, Istio: true}} }
		down, unread := message.Verbatim("no pod is available"), message.Verbatim("a timeout")
		for _, c := range []struct {
			reason  string
			after   time.Duration
			config  preflight.MeshConfig
			says    string
			changes int
		}{
			{"it runs", 0, preflight.MeshConfig{}, "", 1},
			{"it may be restarting", 30 * time.Second, preflight.MeshConfig{Down: down}, "", 1},
			{"it is not", 30 * time.Second, preflight.MeshConfig{Down: down}, "no pod is available", 2},
			{"it runs again", 30 * time.Second, preflight.MeshConfig{}, "", 3},
			{"it may be restarting once more", 30 * time.Second, preflight.MeshConfig{Down: down}, "", 3},
			{"it cannot be read once", 30 * time.Second, preflight.MeshConfig{Unread: unread}, "no pod is available", 4},
		} {
			time.Sleep(c.after)
			facts.Istio.Config = c.config
			i.checkAll(t.Context())
			if got := i.MeshProblem("m1", key, "a", false, "").Text; (got == "") != (c.says == "") || !strings.Contains(got, c.says) || changes != c.changes {
				t.Errorf("%s: %q, %d changes", c.reason, got, changes)
			}
			found := slices.ContainsFunc(i.lastResults["m1"].Findings, func(f preflight.Finding) bool { return f.Code == preflight.IstiodNotAvailable })
			if c.config.Unread.IsZero() && found != (c.says != "") {
				t.Errorf("%s: the finding is there: %t", c.reason, found)
			}
		}
	})
}
