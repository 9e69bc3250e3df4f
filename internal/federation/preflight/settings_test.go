package preflight

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// with is a healthy member whose ConfigMap has one more setting.
func with(key, value string) func(*Facts) {
	return func(f *Facts) { f.Cilium.Sources[0].Settings[key] = value }
}

// Each setting that changes what policies mean keeps a member from joining and its units from being Realized in the modes that it
// changes; in every place that agents take settings from.
func TestSettingsThatChangeWhatPoliciesMean(t *testing.T) {
	for _, c := range []struct {
		key, value, code      string
		enforce, audit, warns bool
	}{
		{"policy-audit-mode", "true", AuditMode, true, true, false},
		{"policy-audit-mode", "T", AuditMode, true, true, false},
		{"policy-audit-mode", "yes", AuditMode, true, true, false}, // which no agent starts with
		{"policy-audit-mode", "", "", false, false, false},
		{"enable-policy", "never", NotEnforcing, true, true, false},
		{"enable-policy", "Never", NotEnforcing, true, true, false},
		{"enable-policy", "always", AlwaysEnforcing, false, true, false},
		{"enable-policy", "default", "", false, false, false},
		{"enable-cilium-clusterwide-network-policy", "false", PoliciesIgnored, true, true, false},
		{"enable-cilium-clusterwide-network-policy", "", PoliciesIgnored, true, true, false}, // agents read it as false
		{"enable-cilium-clusterwide-network-policy", "true", "", false, false, false},
		{"policy-cidr-match-mode", "nodes", RangesMatchPods, true, true, false},
		{"policy-cidr-match-mode", "pods nodes", RangesMatchPods, true, true, false},
		{"policy-cidr-match-mode", "", "", false, false, false},
		{"allow-localhost", "policy", NodeRefused, true, false, false},
		{"allow-localhost", "always", "", false, false, false},
		{"enable-non-default-deny-policies", "false", AuditCloses, true, true, false},
		{"enable-icmp-rules", "false", ICMPRefused, true, false, false},
		{"static-cnp-path", "/policies", PoliciesFromFiles, true, true, false},
		{"static-cnp-path", "", "", false, false, false},
		{"fixed-identity-mapping", "128=kv-store", FixedIdentities, true, true, false},
		{"fixed-identity-mapping", `{"128": "kv-store"}`, FixedIdentities, true, true, false},
		{"fixed-identity-mapping", "{}", "", false, false, false},
		{"fixed-identity-mapping", "", "", false, false, false},
		{"label-prefix-file", "/etc/prefixes", LabelsUnreadable, true, false, false},
		{"enable-l7-proxy", "false", NoHTTP, false, false, true},
		{"external-envoy-proxy", "true", NoHTTP, false, false, true}, // no pod of it is ready
		{"bpf-policy-map-max", "1024", SmallPolicyMaps, false, false, true},
		{"bpf-policy-map-max", "65536", "", false, false, false},
	} {
		for place := range 2 {
			t.Run(c.key+"="+c.value+" "+[]string{"in the ConfigMap", "on some nodes"}[place], func(t *testing.T) {
				f := healthy()
				if place == 0 {
					with(c.key, c.value)(&f)
				} else {
					f.Cilium.Sources = append(f.Cilium.Sources, Source{Where: "somewhere", Settings: map[string]string{c.key: c.value}})
				}
				findings := Assess(f, needs)
				var codes, want []string
				var invalidates Invalidates
				for _, x := range findings {
					codes = append(codes, x.Code)
					invalidates |= x.Invalidates()
				}
				if c.code != "" {
					want = []string{c.code}
				}
				if d := cmp.Diff(want, codes); d != "" {
					t.Fatal(d)
				}
				if Passes(findings) != (c.code == "" || c.warns) {
					t.Errorf("passes: %v", Passes(findings))
				}
				if enforce, audit := invalidates.In(
					v1alpha1.ModeEnforce,
				), invalidates.In(
					v1alpha1.ModeAudit,
				); enforce != c.enforce || audit != c.audit ||
					invalidates.In("") != audit {
					t.Errorf("invalidates Enforce %v, Audit %v", enforce, audit)
				}
			})
		}
	}
}

func TestPolicyMapMax(t *testing.T) {
	for _, c := range []struct {
		reason string
		values []string // of the ConfigMap and of overrides; "-": none
		want   int
	}{
		{"the default", []string{"-"}, 16384},
		{"nothing was read", nil, 16384},
		{"a number", []string{"32768"}, 32768},
		{"agents correct what is too small", []string{"1"}, 256},
		{"and too large", []string{"1000000"}, 65536},
		{"no number", []string{"many"}, 256},
		{"the smallest counts", []string{"65536", "20000", "30000"}, 20000},
		{"also where the ConfigMap says nothing", []string{"-", "65536"}, 16384},
		{"an override about something else", []string{"65536", "-"}, 65536},
	} {
		var cilium Cilium
		for i, v := range c.values {
			s := Source{Where: strconv.Itoa(i), Settings: map[string]string{}, Base: i == 0}
			if v != "-" {
				s.Settings["bpf-policy-map-max"] = v
			}
			cilium.Sources = append(cilium.Sources, s)
		}
		if got := cilium.PolicyMapMax(); got != c.want {
			t.Errorf("%s: %d, want %d", c.reason, got, c.want)
		}
	}
}

// Rules about requests need a proxy that is known to work.
func TestNoHTTP(t *testing.T) {
	external := map[string]string{"external-envoy-proxy": "true"}
	for _, c := range []struct {
		reason string
		cilium Cilium
		works  bool
	}{
		{"nothing was read", Cilium{}, false},
		{"the configuration cannot be read", Cilium{Unread: message.Verbatim("forbidden"), Sources: ParseCilium(nil).Sources}, false},
		{"Envoy is in the agents", ParseCilium(nil), true},
		{"of which none is ready", Cilium{Sources: ParseCilium(nil).Sources, Agents: Workload{Desired: 3}}, false},
		{"of which some are ready", Cilium{Sources: ParseCilium(nil).Sources, Agents: Workload{Desired: 3, Ready: 1}}, true},
		{"the proxy is off", ParseCilium(map[string]string{"enable-l7-proxy": "false"}), false},
		{"it is said to be on", ParseCilium(map[string]string{"enable-l7-proxy": "true"}), true},
		{"it is off on some nodes", Cilium{Sources: append(ParseCilium(nil).Sources, Source{Settings: map[string]string{"enable-l7-proxy": "0"}})}, false},
		{"Envoy apart, and nothing known of it", Cilium{Sources: ParseCilium(external).Sources, Envoy: Workload{Unread: message.Verbatim("forbidden")}}, false},
		{"Envoy apart, without pods", ParseCilium(external), false},
		{"Envoy apart, none ready", Cilium{Sources: ParseCilium(external).Sources, Envoy: Workload{Desired: 3}}, false},
		{"Envoy apart and ready", Cilium{Sources: ParseCilium(external).Sources, Envoy: Workload{Desired: 3, Ready: 3}}, true},
	} {
		if why := c.cilium.NoHTTP(); why.IsZero() != c.works {
			t.Errorf("%s: %q", c.reason, why)
		}
	}
}

// TestEnvoyMissing checks that rules about requests are incomplete only where they work and Envoy runs apart from the agents.
func TestEnvoyMissing(t *testing.T) {
	external := ParseCilium(map[string]string{"external-envoy-proxy": "true"}).Sources
	for _, c := range []struct {
		reason  string
		cilium  Cilium
		missing bool
	}{
		{"nothing was read", Cilium{Envoy: Workload{Desired: 3, Ready: 2}}, false},
		{"every pod is ready", Cilium{Sources: external, Envoy: Workload{Desired: 3, Ready: 3}}, false},
		{"one is not", Cilium{Sources: external, Envoy: Workload{Desired: 3, Ready: 2}}, true},
		{"none is, so such rules are not distributed", Cilium{Sources: external, Envoy: Workload{Desired: 3}}, false},
		{"Envoy is in the agents", Cilium{Sources: ParseCilium(nil).Sources, Envoy: Workload{Desired: 3, Ready: 2}}, false},
	} {
		if got := c.cilium.EnvoyMissing(); got != c.missing {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}

// ClusterNetworkPolicies open nothing only where it is known that no agent takes them.
func TestIgnoresClusterNetworkPolicies(t *testing.T) {
	const key = "enable-k8s-cluster-network-policy"
	sources := func(values ...string) []Source {
		var out []Source
		for _, v := range values {
			s := Source{Settings: map[string]string{}}
			if v != "-" {
				s.Settings[key] = v
			}
			out = append(out, s)
		}
		return out
	}
	for _, c := range []struct {
		reason  string
		cilium  Cilium
		ignores bool
	}{
		{"nothing was read", Cilium{Version: "v1.20.2"}, false},
		{"the configuration cannot be read", Cilium{Version: "v1.20.2", Unread: message.Verbatim("forbidden"), Sources: sources("false")}, false},
		{"the default", Cilium{Version: "v1.20.2", Sources: sources("-")}, true},
		{"the default of a version that is not known", Cilium{Sources: sources("-")}, false},
		{"the default of somebody's own build", Cilium{Version: "ours", Sources: sources("-")}, false},
		{"the default of a later version", Cilium{Version: "v1.21.0", Sources: sources("-")}, false},
		{"it is off in a later version", Cilium{Version: "v1.21.0", Sources: sources("false")}, true},
		{"it is off, and the version is not known", Cilium{Sources: sources("false")}, true},
		{"agents read an empty value as false", Cilium{Sources: sources("")}, true},
		{"it is on", Cilium{Version: "v1.20.2", Sources: sources("true")}, false},
		{"a value that agents do not start with", Cilium{Version: "v1.20.2", Sources: sources("yes")}, false},
		{"it is on on some nodes", Cilium{Version: "v1.20.2", Sources: sources("false", "true")}, false},
		{"it is off on some nodes, and the rest is not known", Cilium{Version: "v1.21.0", Sources: sources("-", "false")}, false},
		{"it is on, and off on some nodes", Cilium{Version: "v1.20.2", Sources: sources("true", "false")}, false},
	} {
		if got := c.cilium.IgnoresClusterNetworkPolicies(); got != c.ignores {
			t.Errorf("%s: ignores %v", c.reason, got)
		}
	}
}

// The configuration is read from every place that agents take it from, and is unknown when one of them cannot be read.
func TestReadCilium(t *testing.T) {
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium-config"},
		Data:       map[string]string{"cluster-name": "c1", "enable-policy": "default"},
	}
	elsewhere := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "cilium", Name: "settings"}, Data: map[string]string{"cluster-name": "c2"}}
	agents := func(namespace, name string, change func(*corev1.PodSpec)) *appsv1.DaemonSet {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		d.Spec.Template.Spec = corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "config", Command: []string{"cilium-dbg", "build-config"}}},
			Containers: []corev1.Container{
				{
					Name:    "cilium-agent",
					Image:   "quay.io/cilium/cilium:v1.20.2",
					Command: []string{"cilium-agent"},
					Args:    []string{"--config-dir=/tmp/cilium/config-map"},
				},
			},
		}
		d.Status.DesiredNumberScheduled, d.Status.NumberReady = 3, 2
		if change != nil {
			change(&d.Spec.Template.Spec)
		}
		return d
	}
	nodeConfig := func(namespace, name string, selector any, defaults map[string]any) *unstructured.Unstructured {
		spec := map[string]any{"defaults": defaults}
		if selector != nil {
			spec["nodeSelector"] = selector
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumNodeConfig",
			"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec}}
	}
	audit := map[string]any{"policy-audit-mode": "true"}
	usual := agents("kube-system", "cilium", nil)
	for _, c := range []struct {
		reason      string
		objects     []runtime.Object
		configs     []runtime.Object
		annotations map[string]string
		unread      bool
		codes       []string
	}{
		{reason: "the usual places", objects: []runtime.Object{configMap, usual}},
		{reason: "no ConfigMap", objects: []runtime.Object{usual}, unread: true},
		{reason: "no agents", objects: []runtime.Object{configMap}, unread: true},
		{reason: "the ConfigMap is elsewhere and nobody said so", objects: []runtime.Object{elsewhere, agents("cilium", "agent", nil)}, unread: true},
		{reason: "it is declared", objects: []runtime.Object{elsewhere, agents("cilium", "agent", nil)},
			annotations: map[string]string{federation.AnnotationCiliumConfig: "cilium/settings", federation.AnnotationCiliumAgents: "cilium/agent"}},
		{
			reason: "a declaration that cannot be read", objects: []runtime.Object{configMap, usual},
			annotations: map[string]string{federation.AnnotationCiliumConfig: "cilium-config"}, unread: true,
		},
		{reason: "an override of nodes", objects: []runtime.Object{configMap, usual},
			configs: []runtime.Object{nodeConfig("kube-system", "old", map[string]any{"matchLabels": map[string]any{"a": "b"}}, audit)},
			codes:   []string{AuditMode}},
		{
			reason: "of all nodes", objects: []runtime.Object{configMap, usual},
			configs: []runtime.Object{nodeConfig("kube-system", "all", map[string]any{}, audit)}, codes: []string{AuditMode},
		},
		{
			reason: "one without a selector applies to none", objects: []runtime.Object{configMap, usual},
			configs: []runtime.Object{nodeConfig("kube-system", "none", nil, audit)},
		},
		{
			reason: "one in another namespace, too", objects: []runtime.Object{configMap, usual},
			configs: []runtime.Object{nodeConfig("default", "all", map[string]any{}, audit)},
		},
		{reason: "an argument", objects: []runtime.Object{configMap, agents("kube-system", "cilium", func(p *corev1.PodSpec) {
			p.Containers[0].Args = append(p.Containers[0].Args, "--enable-cilium-clusterwide-network-policy=false")
		})}, codes: []string{PoliciesIgnored}},
		{reason: "an argument without a value", objects: []runtime.Object{configMap, agents("kube-system", "cilium", func(p *corev1.PodSpec) {
			p.Containers[0].Args = append(p.Containers[0].Args, "--policy-audit-mode", "--debug")
		})}, codes: []string{AuditMode}},
		{reason: "one in the text of a shell", objects: []runtime.Object{configMap, agents("kube-system", "cilium", func(p *corev1.PodSpec) {
			p.Containers[0].Command = []string{"sh", "-c", "exec cilium-agent --config-dir=/x --enable-policy=never"}
		})}, codes: []string{NotEnforcing}},
		{reason: "a variable", objects: []runtime.Object{configMap, agents("kube-system", "cilium", func(p *corev1.PodSpec) {
			p.Containers[0].Env = []corev1.EnvVar{{Name: "CILIUM_ENABLE_POLICY", Value: "never"}}
		})}, codes: []string{NotEnforcing}},
		{reason: "a variable whose value is not there to read", objects: []runtime.Object{configMap, agents("kube-system", "cilium", func(p *corev1.PodSpec) {
			p.Containers[0].Env = []corev1.EnvVar{
				{Name: "CILIUM_POLICY_AUDIT_MODE", ValueFrom: &corev1.EnvVarSource{}},
				{Name: "CILIUM_K8S_NAMESPACE", ValueFrom: &corev1.EnvVarSource{}},
			}
		})}, codes: []string{AuditMode}},
		{reason: "all variables of another object", objects: []runtime.Object{configMap, agents("kube-system", "cilium", func(p *corev1.PodSpec) {
			p.Containers[0].EnvFrom = []corev1.EnvFromSource{{}}
		})}, unread: true},
		{reason: "the sources that are read", objects: []runtime.Object{configMap, agents("kube-system", "cilium", func(p *corev1.PodSpec) {
			p.InitContainers[0].Command = append(p.InitContainers[0].Command, "--source=config-map:kube-system/cilium-config,cilium-node-config:kube-system")
		})}},
		{reason: "annotations of nodes are not read", objects: []runtime.Object{configMap, agents("kube-system", "cilium", func(p *corev1.PodSpec) {
			p.InitContainers[0].Command = append(p.InitContainers[0].Command, "--source=config-map:cilium-config,node:")
		})}, unread: true},
		{reason: "nor is another ConfigMap", objects: []runtime.Object{configMap, agents("kube-system", "cilium", func(p *corev1.PodSpec) {
			p.InitContainers[0].Args = []string{"--source", "config-map:cilium-config,config-map:more"}
		})}, unread: true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
				runtime.NewScheme(),
				map[schema.GroupVersionResource]string{nodeConfigs: "CiliumNodeConfigList"},
				c.configs...)
			read := readCilium(
				t.Context(),
				fake.NewClientset(c.objects...),
				objects,
				metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()),
				federation.ParseLocations(c.annotations),
			)
			if !read.Unread.IsZero() != c.unread {
				t.Fatalf("unread: %q", read.Unread)
			}
			f := healthy()
			f.Cilium = read
			codes := codesOf(Assess(f, needs))
			if c.unread {
				c.codes = []string{ConfigUnread}
			} else if c.codes = append(c.codes, AgentsNotReady); read.Version != "v1.20.2" || read.Agents != (Workload{Desired: 3, Ready: 2}) {
				t.Errorf("%+v", read)
			}
			if d := cmp.Diff(c.codes, codes, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

func codesOf(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Code)
	}
	return out
}
