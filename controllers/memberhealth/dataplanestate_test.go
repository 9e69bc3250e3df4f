package memberhealth

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

// checkedMember returns an Inspector of a single member m1, which has the facts that read returns. changed is called when the result of a
// check changed.
func checkedMember(t *testing.T, read func() preflight.Facts, changed func()) *Inspector {
	t.Helper()
	i := &Inspector{
		Clusters: func() []federation.Cluster { return []federation.Cluster{{Name: "m1"}} }, Kinds: kinds, Keys: keys, Registrations: &host{},
		Log: logr.Discard(), Read: func(context.Context, federation.Cluster) preflight.Facts { return read() }, Changed: func(string) { changed() },
	}
	if err := i.Prepare(); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestUnenforced(t *testing.T) {
	var facts preflight.Facts
	members := []federation.Cluster{{Name: "m1"}}
	changes := 0
	i := &Inspector{Clusters: func() []federation.Cluster { return members }, Kinds: kinds, Keys: keys, Registrations: &host{}, Log: logr.Discard(),
		Read: func(context.Context, federation.Cluster) preflight.Facts { return facts }, Changed: func(string) { changes++ }}
	if err := i.Prepare(); err != nil {
		t.Fatal(err)
	}
	settings := func(key, value string) func() {
		return func() { facts = configured(map[string]string{key: value}) }
	}
	for _, c := range []struct {
		reason string
		change func()
		// These are the answers about classes in Enforce, about Audit, and about rules for requests.
		redis, app, audit, http bool
		// lacks is what is said of the member's pods as those that connect, by the label of applications.
		lacks   string
		changes int
	}{
		{"a member that never answered is not known", func() { facts.Unreachable = "away" }, true, true, true, true, "unknown", 1},
		{"it answers, and its configuration may not be read", func() {
			facts = configured(nil)
			facts.Cilium = preflight.Cilium{Unread: message.Verbatim("forbidden")}
		}, true, true, true, true, "unknown", 2},
		{"all labels of pods are in identities", settings("a", "b"), false, false, false, false, "", 3},
		{"one class's is not", settings("labels", `k8s:com\.trip/appid`), true, false, false, false, "", 4},
		{"nothing changed", func() {}, true, false, false, false, "", 4},
		{"agents only log", settings("policy-audit-mode", "true"), true, true, true, false, "", 5},
		{"a member that is silent is as it was", func() { facts.Unreachable = "away" }, true, true, true, false, "", 5},
		{"agents ignore what is pushed", settings("enable-cilium-clusterwide-network-policy", "false"), true, true, true, false, "", 6},
		{"pods are closed without a policy", settings("enable-policy", "always"), false, false, true, false, "", 7},
		{"the proxy is off", settings("enable-l7-proxy", "false"), false, false, false, true, "", 8},
		{
			"what keeps a cluster from joining does not void what is pushed",
			func() { facts = configured(nil); facts.Cilium.Version = "v1.18.0" }, false, false, false, false, "", 9,
		},
		{"that of applications is not, by which the unit denies", settings("labels", `k8s:com\.trip/redis`), false, true, false, false, "known", 10},
		{"the labels are in a file", settings("label-prefix-file", "f"), true, true, false, false, "unknown", 11},
		{"a member that left is forgotten", func() { members = nil }, true, true, true, true, "", 12},
	} {
		c.change()
		i.checkAll(t.Context())
		if redis, app := !i.Unenforced("m1", redisKey).
			IsZero(),
			!i.Unenforced("m1", appKey).
				IsZero(); redis != c.redis || app != c.app ||
			changes != c.changes {
			t.Errorf("%s: redis %v, app %v, %d changes", c.reason, redis, app, changes)
		}
		lacks := ""
		for _, l := range i.MembersLacking(appKey) {
			if lacks = "known"; l.Unknown {
				lacks = "unknown"
			}
		}
		if lacks != c.lacks || (lacks != "") != (!i.MissingLabels("m1", appKey).IsZero()) && len(members) > 0 {
			t.Errorf("%s: lacks %q, takes %q", c.reason, lacks, i.MissingLabels("m1", appKey))
		}
		if audit, http := !i.MeaningChanged("m1").IsZero(), !i.NoHTTP("m1").IsZero(); audit != c.audit || http != c.http {
			t.Errorf("%s: audit %v, requests %v", c.reason, audit, http)
		}
	}

	// A class that is newer than the last look.
	members, facts = []federation.Cluster{{Name: "m1"}}, configured(map[string]string{"labels": `k8s:com\.trip/redis`})
	i.checkAll(t.Context())
	for range 2 {
		if key := []string{"com.trip/new"}; i.MissingLabels("m1", key).IsZero() || len(i.MembersLacking(key)) != 1 || i.Unenforced("m1", key).IsZero() {
			t.Error("a label that no look judged by is taken to be in identities")
		}
		i.checkAll(t.Context())
	}
	for n, unknown := range []bool{false, true, true} {
		facts.HostPods.Unread = message.Verbatim("a timeout")
		if i.checkAll(t.Context()); (!i.Unenforced("m1", redisKey).IsZero()) != unknown {
			t.Errorf("look %d without a list of pods: %q", n, i.Unenforced("m1", redisKey))
		}
	}
	facts.HostPods.Unread = message.Message{}
	i.checkAll(t.Context())
	if !i.MissingLabels("m1", redisKey).IsZero() || !i.Unenforced("m1", redisKey).IsZero() {
		t.Error("the others are not as they were")
	}
}

// TestPodsOfANewClassAreUnknown checks that it is not known whether pods use the network of their node until a check listed
// those with the label, that another check is requested for the label of a class, and that the units are triggered after it.
func TestPodsOfANewClassAreUnknown(t *testing.T) {
	facts := configured(nil)
	facts.HostPods = preflight.LabeledPods{Keys: appKey}
	changes := 0
	i := checkedMember(t, func() preflight.Facts { return facts }, func() { changes++ })
	i.checkAll(t.Context())
	if got := i.HostPodProblem("m1", redisKey[0], "a").Text; !strings.Contains(got, "have not been listed") || len(i.trigger) != 1 {
		t.Errorf("not listed yet: %q, %d checks requested", got, len(i.trigger))
	}
	<-i.trigger
	if got := i.HostPodProblem("m1", "com.trip/gone", "a"); got.IsZero() || len(i.trigger) > 0 {
		t.Errorf("a label of no class: %q, %d checks requested", got.Text, len(i.trigger))
	}
	if got := i.HostPodProblem("m1", appKey[0], "a"); !got.IsZero() {
		t.Errorf("no pod was found: %q", got.Text)
	}
	facts.HostPods.Keys = slices.Concat(appKey, redisKey)
	i.checkAll(t.Context())
	if got := i.HostPodProblem("m1", redisKey[0], "a"); !got.IsZero() || changes != 2 || len(i.trigger) > 0 {
		t.Errorf("listed: %q, %d changes", got.Text, changes)
	}
	facts.HostPods.Pods = map[federation.Label][]string{{Key: redisKey[0], Value: "a"}: {"ns/redis-0"}}
	i.checkAll(t.Context())
	if got := i.HostPodProblem("m1", redisKey[0], "a").Text; !strings.Contains(got, "stay open") || !strings.Contains(got, "ns/redis-0") || changes != 3 {
		t.Errorf("a pod was found: %q, %d changes", got, changes)
	}
	if got := i.HostPodProblem("m2", redisKey[0], "a").Text; !strings.Contains(got, "not been read") {
		t.Errorf("a member that was not read: %q", got)
	}
}

// TestConfigurationThatCannotBeReadExpires checks that the facts of a member whose configuration cannot be read any more count
// for a limited time, after which nothing is known to be enforced there, until the configuration is read again. What the facts
// say about other members' rules and about rules for requests stays, because both would change what is distributed.
func TestConfigurationThatCannotBeReadExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const declared = `{"dataplane": "sidecar", "version": "1.31.2"}`
		facts, reading := configured(nil), time.Duration(0)
		facts.Istio = preflight.Istio{Served: true, Declared: declared}
		facts.MeshPods = listedMeshPods(redisKey)
		changes := 0
		i := checkedMember(t, func() preflight.Facts { time.Sleep(reading); return facts }, func() { changes++ })
		for _, c := range []struct {
			reason  string
			after   time.Duration
			reading time.Duration
			change  func(*preflight.Facts)
			unknown string // of what the member enforces
			changes int
		}{
			{"it is read", 0, 0, func(*preflight.Facts) {}, "", 1},
			{"it cannot be read for a short time", DefaultTiming.MaxAge, 0, func(f *preflight.Facts) { f.Unreachable = "the host's Secret is gone" }, "", 1},
			{"it cannot be read for longer", time.Second, 0, func(f *preflight.Facts) { f.Unreachable = "the host's Secret is gone" }, "Secret is gone", 2},
			{"nor later", time.Hour, 0, func(f *preflight.Facts) { f.Unreachable = "away" }, "Secret is gone", 2},
			{"only the pusher is refused", time.Second, 0, func(f *preflight.Facts) { f.Unreachable, f.OnlyPusherFails = "refused", true }, "", 3},
			{"its agents audit, and only the pusher is refused", time.Hour, 0, func(f *preflight.Facts) {
				f.Unreachable, f.OnlyPusherFails, f.Cilium = "refused", true, preflight.ParseCilium(map[string]string{"policy-audit-mode": "true"})
			}, "policy-audit-mode", 4},
			{"it is read again", time.Second, 0, func(*preflight.Facts) {}, "", 5},
			{"it answers too slowly", time.Second, DefaultTiming.MaxAge + time.Second, func(*preflight.Facts) {}, "did not answer in time", 6},
		} {
			facts = configured(nil)
			facts.Istio, facts.MeshPods = preflight.Istio{Served: true, Declared: declared}, listedMeshPods(redisKey)
			c.change(&facts)
			reading = c.reading
			time.Sleep(c.after)
			i.checkAll(t.Context())
			if reading > 0 {
				time.Sleep(reading)
				i.expire()
			}
			enforce, audit := i.Unenforced("m1", redisKey).Text, i.MeaningChanged("m1").Text
			if (enforce == "") != (c.unknown == "") || !strings.Contains(enforce, c.unknown) || audit != enforce || changes != c.changes {
				t.Errorf("%s: Enforce %q, Audit %q, %d changes", c.reason, enforce, audit, changes)
			}
			outdated := c.unknown != "" && !strings.Contains(c.unknown, "policy")
			if mesh := i.MeshProblem(
				"m1",
				redisKey[0],
				"a",
				false,
				"",
			).Text; strings.Contains(mesh, c.unknown) != (outdated || c.unknown == "") ||
				(mesh != "") != outdated {
				t.Errorf("%s: Istio %q", c.reason, mesh)
			}
			if !i.NoHTTP("m1").IsZero() || !i.MissingLabels("m1", redisKey).IsZero() || len(i.MembersLacking(redisKey)) > 0 {
				t.Errorf("%s: requests %q, labels %q", c.reason, i.NoHTTP("m1"), i.MissingLabels("m1", redisKey))
			}
		}
	})
}

// TestInspectorToleratesARestartOfTheProxy checks that HTTP rules are removed only if two checks in a row find no proxy.
func TestInspectorToleratesARestartOfTheProxy(t *testing.T) {
	facts := configured(nil)
	i := checkedMember(t, func() preflight.Facts { return facts }, func() {})
	for n, c := range []struct {
		ready        int32
		works, again bool
	}{{0, false, false}, {1, true, false}, {0, true, true}, {1, true, false}, {0, true, true}, {0, false, false}, {0, false, false}, {1, true, false}} {
		facts.Cilium.Agents = preflight.Workload{Desired: 1, Ready: c.ready}
		again := i.checkAll(t.Context())
		if works := i.NoHTTP("m1").IsZero(); works != c.works || again != c.again {
			t.Errorf("look %d, %d ready: works %v, looks again %v", n, c.ready, works, again)
		}
	}
}

// TestPodsThatStayUnreadyAreReported checks that agents and Envoys of some nodes that are not ready are findings only if they were not
// ready in an earlier check, too, so that a short restart is none; and that rules about requests then count as not enforced on
// some nodes, and continue to be distributed.
func TestPodsThatStayUnreadyAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		facts := configured(map[string]string{"external-envoy-proxy": "true"})
		changes := 0
		i := checkedMember(t, func() preflight.Facts { return facts }, func() { changes++ })
		for _, c := range []struct {
			reason        string
			after         time.Duration
			agents, envoy int32 // of 10 that are ready
			reported      []string
			incomplete    bool
			changes       int
		}{
			{"all are ready", 0, 10, 10, nil, false, 1},
			{"some are not", time.Minute, 1, 9, nil, false, 1},
			{"soon after that", 5 * time.Second, 1, 9, nil, false, 1},
			{"in the next round", 25 * time.Second, 1, 8, []string{preflight.AgentsNotReady, preflight.EnvoyNotReady}, true, 2},
			{"others are not", 30 * time.Second, 2, 9, []string{preflight.AgentsNotReady, preflight.EnvoyNotReady}, true, 2},
			{"Envoy is ready", 30 * time.Second, 2, 10, []string{preflight.AgentsNotReady}, false, 3},
			{"all are ready again", 30 * time.Second, 10, 10, nil, false, 3},
			{"some are not, later", time.Hour, 9, 9, nil, false, 3},
			{"no Envoy is ready", time.Minute, 10, 0, []string{preflight.NoHTTP}, false, 3},
			{"nor in the next check, so the rules are not distributed", 5 * time.Second, 10, 0, []string{preflight.NoHTTP}, false, 4},
		} {
			time.Sleep(c.after)
			facts.Cilium.Agents, facts.Cilium.Envoy = preflight.Workload{Desired: 10, Ready: c.agents}, preflight.Workload{Desired: 10, Ready: c.envoy}
			i.checkAll(t.Context())
			var reported []string
			last, _ := i.LastResult("m1")
			for _, f := range last.Findings {
				if f.Code != preflight.MeshUndeclared && f.Code != preflight.GuardMissing && f.Code != preflight.GuardUnread {
					reported = append(reported, f.Code)
				}
			}
			if d := cmp.Diff(c.reported, reported, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s: %s", c.reason, d)
			}
			if got := i.RequestsIncomplete("m1"); got != c.incomplete || changes != c.changes {
				t.Errorf("%s: rules about requests are incomplete: %v, %d changes", c.reason, got, changes)
			}
			if !i.Unenforced("m1", redisKey).IsZero() {
				t.Errorf("%s: %q", c.reason, i.Unenforced("m1", redisKey))
			}
		}
	})
}

// TestSettingsOfOutdatedAgentsCount checks that settings which void policies count until the agents that use them have started again, and
// that settings which were never read count as voiding, unless the last status of the member says that they are harmless.
func TestSettingsOfOutdatedAgentsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		facts := configured(nil)
		var recorded []string
		read := false
		start := func() *Inspector {
			i := checkedMember(t, func() preflight.Facts { return facts }, func() {})
			i.Recorded = func(context.Context, string) ([]string, bool) { return recorded, read }
			return i
		}
		i := start()
		audit, debug := map[string]string{"policy-audit-mode": "true"}, map[string]string{"debug": "true"}
		restarted, changed := time.Now().Add(-time.Hour), time.Now().Add(-2*time.Hour)
		for _, c := range []struct {
			reason   string
			settings map[string]string
			changed  bool   // the settings
			restart  bool   // the agents, before that
			unread   string // what cannot be read
			unknown  bool   // whether policies count as not enforced
			reported []string
		}{
			{"all agents use the settings", nil, false, false, "", false, nil},
			{"a change that voids nothing", debug, true, false, "", false, []string{preflight.AgentsOutdated}},
			{"the agents restarted", debug, false, true, "", false, nil},
			{"a setting voids policies", audit, true, false, "", true, []string{preflight.AuditMode, preflight.AgentsOutdated}},
			{"agents use it", audit, false, true, "", true, []string{preflight.AuditMode}},
			{"it was removed, and the agents did not restart", nil, true, false, "", true, []string{preflight.AuditMode, preflight.AgentsOutdated}},
			{"a later change does not hide it", debug, true, false, "", true, []string{preflight.AuditMode, preflight.AgentsOutdated}},
			{"nor does a check that cannot read the pods", debug, false, false, "pods", true, []string{preflight.AuditMode, preflight.AgentsOutdated}},
			{"nor does the next one", debug, false, false, "pods", true, []string{preflight.AgentSettingsUnknown}},
			{"nor does a check that reads nothing", nil, false, false, "settings", true, []string{preflight.ConfigUnread}},
			{"the next check reads it again", debug, false, false, "", true, []string{preflight.AuditMode, preflight.AgentsOutdated}},
			{"the agents restarted again", debug, false, true, "", false, nil},
			{"settings that nobody read", nil, true, true, "", true, []string{preflight.AgentSettingsUnknown}},
		} {
			time.Sleep(time.Minute)
			if c.restart {
				restarted = time.Now().Add(-20 * time.Second)
			}
			if c.changed {
				changed = time.Now().Add(-10 * time.Second)
			}
			facts.Cilium = configured(c.settings).Cilium
			facts.Cilium.Pods.Created = []time.Time{restarted}
			switch c.unread {
			case "settings":
				facts.Cilium = preflight.Cilium{Unread: message.Verbatim("forbidden")}
			case "pods":
				facts.Cilium.Pods = preflight.AgentPods{Unread: message.Verbatim("forbidden")}
			}
			facts.Cilium.ChangedAt(changed)
			i.checkAll(t.Context())
			checkSettings(t, i, c.reason, c.reported, c.unknown)
		}
		for _, c := range []struct {
			reason   string
			recorded []string
			read     bool
			unknown  bool
			reported string
		}{
			{"no status of an earlier process", nil, false, true, preflight.AgentSettingsUnknown},
			{"one that reports nothing", nil, true, false, preflight.AgentsOutdated},
			{"one of other findings", []string{preflight.GuardMissing, preflight.AgentsOutdated}, true, false, preflight.AgentsOutdated},
			{"one of a setting that voids policies", []string{preflight.NotEnforcing}, true, true, preflight.AgentSettingsUnknown},
			{"one of unknown settings", []string{preflight.AgentSettingsUnknown}, true, true, preflight.AgentSettingsUnknown},
		} {
			recorded, read = c.recorded, c.read
			i := start()
			i.checkAll(t.Context())
			checkSettings(t, i, c.reason, []string{c.reported}, c.unknown)
		}
	})
}

// checkSettings compares the findings about settings, and whether policies count as not enforced.
func checkSettings(t *testing.T, i *Inspector, reason string, want []string, unenforced bool) {
	t.Helper()
	var reported []string
	last, _ := i.LastResult("m1")
	for _, f := range last.Findings {
		if !slices.Contains([]string{preflight.MeshUndeclared, preflight.GuardMissing, preflight.GuardUnread, preflight.NoHTTP}, f.Code) {
			reported = append(reported, f.Code)
		}
	}
	if d := cmp.Diff(want, reported, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s: %s", reason, d)
	}
	if got := i.Unenforced("m1", redisKey); got.IsZero() == unenforced {
		t.Errorf("%s: %q", reason, got)
	}
}
