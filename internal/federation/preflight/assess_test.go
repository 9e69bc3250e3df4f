package preflight

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/objectkind"
	"github.com/acp-io/acp/internal/message"
)

var needs = Needs{Kinds: []federation.Kind{federation.CiliumPolicy, federation.CiliumGroup},
	Keys: []Key{{Class: "redis", Label: "com.trip/redis-cluster"}}}

// healthy is a member without findings.
func healthy() Facts {
	guarding, err := guard.Objects(guard.Credentials{})
	if err != nil {
		panic(err)
	}
	return Facts{
		Guard:   Guard{Objects: guarding},
		Member:  "m1",
		Version: "v1.36.3",
		Kinds: []Listing{
			{Resource: federation.CiliumPolicy.TargetResource, Result: Listed},
			{Resource: federation.CiliumGroup.TargetResource, Result: Listed},
		},
		Cilium: cilium("c1", "1"),
	}
}

// cilium is a sound installation of a name and a number.
func cilium(name, id string) Cilium {
	c := ParseCilium(map[string]string{"cluster-name": name, "cluster-id": id})
	c.Version = "v1.20.2"
	return c
}

// istioOnly is a member without Cilium that says so, and a change of it.
func istioOnly(change func(*Facts)) func(*Facts) {
	return func(f *Facts) {
		f.Enforcer, f.Mesh, f.Cilium, f.Istio = "istio", federation.NoMesh, Cilium{
			Unread: message.Verbatim("there is no ConfigMap kube-system/cilium-config"),
		}, Istio{
			Served:  true,
			Version: "1.31.2",
		}
		change(f)
	}
}

// TestIstioAloneVoidsCilium checks that no policy of Cilium counts as enforced in a member with Istio alone, in any mode, whatever else
// is found there.
func TestIstioAloneVoidsCilium(t *testing.T) {
	for _, change := range []func(*Facts){func(*Facts) {}, func(f *Facts) { f.Cilium = cilium("c1", "1") }, func(f *Facts) { f.Istio = Istio{} }} {
		f := healthy()
		istioOnly(change)(&f)
		var invalidates Invalidates
		for _, x := range Assess(f, needs) {
			invalidates |= x.Invalidates()
		}
		if invalidates != invalidatesAll {
			t.Errorf("got invalidates %b, want all", invalidates)
		}
	}
}

// TestMissingKindOfAThirdEnforcer checks that the remedy of a kind which belongs neither to Cilium nor to Istio names the kind.
func TestMissingKindOfAThirdEnforcer(t *testing.T) {
	toy := objectkind.Entry{Enforcer: "toy", Kind: federation.Kind{Prefix: "toy",
		Target:         schema.GroupVersionKind{Group: "toy.example", Version: "v1", Kind: "Toy"},
		TargetResource: schema.GroupVersionResource{Group: "toy.example", Version: "v1", Resource: "toys"}}}
	defer objectkind.Register(toy)()
	want := message.RemedyInstallKind("toys.toy.example")
	if got := installHint(toy.Kind, &Facts{}); got.Text != want.Text {
		t.Errorf("the remedy is %q, want %q", got.Text, want.Text)
	}
}

// TestMissingKindNamesWhatToInstall checks the remedy for a cluster without Cilium's kinds, depending on its other dataplanes.
func TestMissingKindNamesWhatToInstall(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*Facts)
		want   []string
	}{
		{"Istio runs there", func(f *Facts) { f.Istio = Istio{Served: true, Version: "1.31.2"} }, []string{"install Cilium 1.19", "--enforcer istio"}},
		{"nothing does", func(*Facts) {}, []string{"neither Cilium nor Istio is there", "install Cilium 1.19", "Istio 1.29"}},
		{"it is registered with Istio alone", istioOnly(func(*Facts) {}), []string{"cluster check --fix"}},
	} {
		f := healthy()
		c.change(&f)
		f.Kinds[0].Result = NotServed
		do := Assess(f, needs)[0].Remedy.Text
		for _, text := range c.want {
			if !strings.Contains(do, text) {
				t.Errorf("%s: %q does not contain %q", c.reason, do, text)
			}
		}
	}
}

func TestAssess(t *testing.T) {
	type found struct {
		Severity Severity
		Code     string
		About    string
	}
	for _, c := range []struct {
		reason string
		change func(*Facts)
		others []Facts
		want   []found
		passes bool
	}{
		{reason: "a healthy member", passes: true},
		{
			reason: "no answer hides everything else", change: func(f *Facts) { f.Unreachable, f.Kinds = "no route", nil },
			want: []found{{Stops, Unreachable, ""}},
		},
		{
			reason: "a kind that is not served stops it for all", change: func(f *Facts) { f.Kinds[1].Result = NotServed },
			want: []found{{Stops, KindMissing, ""}},
		},
		{
			reason: "so does one that the pusher may not list", change: func(f *Facts) { f.Kinds[0].Result = Forbidden },
			want: []found{{Stops, KindForbidden, ""}},
		},
		{reason: "and one whose list fails", change: func(f *Facts) { f.Kinds[0].Result = ListFails }, want: []found{{Stops, KindFails, ""}}},
		{reason: "a kind that nobody asked about was not listed", change: func(f *Facts) { f.Kinds = f.Kinds[:1] }, want: []found{{Stops, KindFails, ""}}},
		{reason: "agents that only log", change: with("policy-audit-mode", "true"), want: []found{{Fails, AuditMode, ""}}},
		{reason: "agents that enforce nothing", change: with("enable-policy", "never"), want: []found{{Fails, NotEnforcing, ""}}},
		{reason: "a label that is not in identities", change: with("labels", "k8s:app"), want: []found{{Fails, LabelNotIdentity, "redis"}}},
		{reason: "a filter that agents would not start with", change: with("labels", "k8s:("), want: []found{{Fails, LabelsUnreadable, ""}}},
		{reason: "a filter that is in a file", change: with("label-prefix-file", "/f"), want: []found{{Fails, LabelsUnreadable, ""}}},
		{
			reason: "a configuration that nobody read", change: func(f *Facts) { f.Cilium = Cilium{Unread: message.Verbatim("forbidden")} },
			want: []found{{Fails, ConfigUnread, ""}},
		},
		{
			reason: "agents that are not ready", change: func(f *Facts) { f.Cilium.Agents.Desired = 3 },
			want: []found{{Fails, AgentsNotReady, ""}, {Warns, NoHTTP, ""}},
		},
		{
			reason: "some agents that are not ready", change: func(f *Facts) { f.Cilium.Agents = Workload{Desired: 10, Ready: 1} },
			want: []found{{Warns, AgentsNotReady, ""}}, passes: true,
		},
		{
			reason: "some of Envoy's pods are not ready", change: func(f *Facts) { f.Cilium.Envoy = Workload{Desired: 3, Ready: 2} },
			want: []found{{Warns, EnvoyNotReady, ""}}, passes: true,
		},
		{reason: "two clusters of one name and id", others: []Facts{{Member: "m2", Cilium: cilium("c1", "1")}},
			want: []found{{Fails, SameClusterName, ""}, {Fails, SameClusterID, ""}}},
		{
			reason: "in other meshes",
			others: []Facts{{Member: "m2", Mesh: "east", Cilium: cilium("c1", "1")}, {Member: "m3", Mesh: federation.NoMesh, Cilium: cilium("c1", "1")}},
			passes: true,
		},
		{
			reason: "in one mesh that has a name", change: func(f *Facts) { f.Mesh = "east" },
			others: []Facts{{Member: "m2", Mesh: "east", Cilium: cilium("c2", "1")}},
			want:   []found{{Fails, SameClusterID, ""}},
		},
		{reason: "two of the usual installation, which are in no mesh", change: func(f *Facts) { f.Mesh, f.Cilium = federation.NoMesh, cilium("default", "0") },
			others: []Facts{{Member: "m2", Mesh: federation.NoMesh, Cilium: cilium("default", "0")}}, passes: true},
		{reason: "and do not say so", change: func(f *Facts) { f.Cilium = cilium("default", "0") },
			others: []Facts{{Member: "m2", Cilium: cilium("default", "0")}},
			want:   []found{{Warns, MeshUndeclared, ""}}, passes: true},
		{reason: "two with the number 0 that say that they are in one",
			change: func(f *Facts) { f.Mesh, f.Cilium = "east", cilium("a", "0") }, others: []Facts{{Member: "m2", Mesh: "east", Cilium: cilium("b", "0")}},
			want: []found{{Fails, SameClusterID, ""}, {Warns, MeshUndeclared, ""}}},
		{reason: "itself is no other", others: []Facts{healthy()}, passes: true},
		{
			reason: "one that was not read is not compared",
			others: []Facts{{Member: "m2", Unreachable: "x"}, {Member: "m3", Cilium: Cilium{Unread: message.Verbatim("x")}}}, passes: true,
		},
		{
			reason: "an old Cilium, where a peer means all clusters", change: func(f *Facts) { f.Cilium.Version = "v1.18.4" },
			want: []found{{Fails, OldCilium, ""}},
		},
		{reason: "a build of one's own has no version to compare", change: func(f *Facts) { f.Cilium.Version = "main" }, passes: true},
		{reason: "an old API server has no guard", change: func(f *Facts) { f.Version = "v1.29.4" }, want: []found{{Warns, OldServer, ""}}, passes: true},
		{reason: "no guard", change: func(f *Facts) { f.Guard.Objects = nil }, want: []found{{Warns, GuardMissing, ""}}, passes: true},
		{reason: "a guard that was softened", change: func(f *Facts) {
			softened := f.Guard.Objects[1].DeepCopy()
			delete(softened.Object, "spec")
			f.Guard.Objects = append([]*unstructured.Unstructured{softened}, f.Guard.Objects...)
			f.Guard.Objects = slices.Delete(f.Guard.Objects, 2, 3)
		}, want: []found{{Warns, GuardChanged, ""}}, passes: true},
		{
			reason: "a guard that may not be read", change: func(f *Facts) { f.Guard = Guard{Unread: message.Verbatim("forbidden")} },
			want: []found{{Warns, GuardUnread, ""}}, passes: true,
		},
		{
			reason: "a downgrade", change: func(f *Facts) { f.Mark = &guard.DowngradeMark{By: "alice"} },
			want: []found{{Warns, MemberDowngraded, ""}}, passes: true,
		},
		{reason: "Istio alone", change: istioOnly(func(*Facts) {}), want: []found{{Warns, NoCilium, ""}, {Warns, IstioCapabilities, ""}}, passes: true},
		{reason: "an entry of waypoints that dedicates nothing", change: istioOnly(func(f *Facts) {
			f.Istio.Declared = `{"dataplane": "ambient", "version": "1.31.2", "waypoints": [{"resource": "a", "gateway": "x"}]}`
		}), want: []found{{Warns, NoCilium, ""}, {Warns, IstioWaypointUnused, ""}, {Warns, IstioCapabilities, ""}}, passes: true},
		{reason: "Istio alone, without Cilium's kinds", change: istioOnly(func(f *Facts) { f.Kinds[0].Result = NotServed }),
			want: []found{{Stops, KindMissing, ""}, {Warns, NoCilium, ""}, {Warns, IstioCapabilities, ""}}},
		{
			reason: "Istio alone, and it is not there", change: istioOnly(func(f *Facts) { f.Istio = Istio{} }),
			want: []found{{Fails, NoEnforcer, ""}, {Warns, NoCilium, ""}},
		},
		{reason: "Istio alone, and only its kinds are there", change: istioOnly(func(f *Facts) {
			f.Istio = Istio{Served: true, Unread: message.Verbatim("there is no Deployment istio-system/istiod")}
		}),
			want: []found{{Fails, NoEnforcer, ""}, {Warns, NoCilium, ""}}},
		{reason: "Istio alone, run from elsewhere, as the member declares", change: istioOnly(func(f *Facts) {
			f.Istio = Istio{
				Served: true, Unread: message.Verbatim("there is no Deployment istio-system/istiod"),
				Declared: `{"dataplane": "sidecar", "version": "1.31.2"}`,
			}
		}), want: []found{{Warns, NoCilium, ""}}, passes: true},
		{reason: "Istio alone, and it declares that it enforces nothing",
			change: istioOnly(func(f *Facts) { f.Istio = Istio{Declared: `{"dataplane": "none"}`} }),
			want:   []found{{Fails, NoEnforcer, ""}, {Warns, NoCilium, ""}}},
		{reason: "Istio alone, and Cilium is configured", change: istioOnly(func(f *Facts) { f.Cilium = cilium("c1", "1") }),
			want: []found{{Warns, NoCilium, ""}, {Warns, CiliumUndeclared, ""}, {Warns, IstioCapabilities, ""}}, passes: true},
		{reason: "an enforcer that is none", change: func(f *Facts) { f.Enforcer = "Istio" }, want: []found{{Fails, EnforcerUnknown, ""}}},
		{
			reason: "an old Istio", change: func(f *Facts) { f.Istio = Istio{Served: true, Version: "1.28.1"} },
			want: []found{{Warns, IstioUnsupported, ""}}, passes: true,
		},
		{
			reason: "a new Istio", change: func(f *Facts) { f.Istio = Istio{Served: true, Version: "1.31.1", Ambient: true} },
			want: []found{{Warns, IstioCapabilities, ""}}, passes: true,
		},
		{
			reason: "no Istio, whose policies cannot be read",
			change: func(f *Facts) {
				f.Istio = Istio{Declared: `{"dataplane": "none"}`, PoliciesUnread: message.Verbatim("forbidden")}
			},
			want: []found{{Warns, IstioUndeclared, ""}}, passes: true,
		},
		{
			reason: "an Istio, whose policies cannot be read", change: func(f *Facts) {
				f.Istio = Istio{Declared: `{"dataplane": "sidecar", "version": "1.31.2"}`, PoliciesUnread: message.Verbatim("forbidden")}
			},
			passes: true,
		},
		{reason: "the worst first", change: func(f *Facts) {
			f.Version, f.Kinds[0].Result, f.Cilium.Sources[0].Settings["policy-audit-mode"] = "v1.29.0", Forbidden, "true"
		},
			want: []found{{Stops, KindForbidden, ""}, {Fails, AuditMode, ""}, {Warns, OldServer, ""}}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f, n := healthy(), needs
			if c.change != nil {
				c.change(&f)
			}
			n.Others = c.others
			findings := Assess(f, n)
			var got []found
			for _, x := range findings {
				got = append(got, found{x.Severity, x.Code, x.Class})
				if x.Message.IsZero() || x.Remedy.IsZero() {
					t.Errorf("%s does not say what to do", x.Code)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if Passes(findings) != c.passes {
				t.Errorf("passes: %v", Passes(findings))
			}
		})
	}
}

func TestFilter(t *testing.T) {
	for _, c := range []struct {
		reason, setting, key string
		want                 bool
	}{
		{"by default every label of a pod is in", "", "com.trip/redis-cluster", true},
		{"but not those of Kubernetes", "", "io.kubernetes.container.name", false},
		{"a longer rule includes some of them again", "", "io.kubernetes.pod.namespace", true},
		{"with a rule that includes, only what is included is in", `k8s:app`, "com.trip/redis-cluster", false},
		{"and is", `k8s:app k8s:com\.trip/`, "com.trip/redis-cluster", true},
		{"rules match from the key's beginning", `k8s:redis-cluster`, "com.trip/redis-cluster", false},
		{"rules of another source do not count", `container:com.trip`, "com.trip/redis-cluster", false},
		{"a rule without source counts", `com.trip`, "com.trip/redis-cluster", true},
		{"a rule that excludes alone takes out just that", `k8s:!com\.trip/redis`, "com.trip/redis-cluster", false},
		{"and nothing else", `k8s:!com\.trip/redis`, "com.trip/appid", true},
		{"the longer match wins", `k8s:!com\.trip k8s:com\.trip/redis-cluster`, "com.trip/redis-cluster", true},
		{"a tie keeps it out", `k8s:!com\.trip k8s:com\.trip`, "com.trip/redis-cluster", false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			f, err := ParseFilter(c.setting)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Has(c.key); got != c.want {
				t.Errorf("%q has %s: %v", c.setting, c.key, got)
			}
		})
	}
	for _, bad := range []string{"k8s:", "k8s:!", "("} {
		if _, err := ParseFilter(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add(`k8s:!com\.trip k8s:app`, "com.trip/appid")
	f.Fuzz(func(t *testing.T, setting, key string) {
		with, err := ParseFilter(setting)
		if err != nil {
			return
		}
		// One more rule that includes exactly the key must not take it out.
		if more, err := ParseFilter(setting + " k8s:.*"); err == nil && with.chosen && with.Has(key) && !more.Has(key) && !strings.Contains(key, "\n") {
			t.Errorf("%q has %q, and not with a rule that includes more", setting, key)
		}
	})
}

func TestTag(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/cilium/cilium:v1.20.2@sha256:abc": "v1.20.2", "registry:5000/cilium": "", "cilium": "", "istio/pilot:1.31.1-distroless": "1.31.1-distroless",
	} {
		if got := tag(image); got != want {
			t.Errorf("%s: %q", image, got)
		}
	}
}
