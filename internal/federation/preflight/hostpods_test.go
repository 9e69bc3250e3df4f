package preflight

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// Pods that no policy selects are found, by class, and a message names only a few of many.
func TestHostPods(t *testing.T) {
	f := healthy()
	redis := federation.Label{Key: needs.Keys[0].Label, Value: "a"}
	f.HostPods.Pods = map[federation.Label][]string{{Key: "other", Value: "a"}: {"ns/other"}}
	if found := Assess(f, needs); len(found) != 0 {
		t.Errorf("pods of no class: %+v", found)
	}
	for n := range 150 {
		f.HostPods.Pods[redis] = append(f.HostPods.Pods[redis], fmt.Sprintf("ns/redis-%03d", n))
	}
	found := Assess(f, needs)
	if len(found) != 1 || found[0].Code != HostNetworkPods || found[0].Class != "redis" || !Passes(found) || found[0].Invalidates() != 0 ||
		!strings.Contains(found[0].Message.Text, "ns/redis-004 and 145 more") || strings.Contains(found[0].Message.Text, "ns/redis-005") {
		t.Errorf("%+v", found)
	}
	if !f.HostPods.Describe(redis.Key, "b").IsZero() || f.HostPods.Describe(redis.Key, "a").IsZero() {
		t.Error("the pods of one resource are taken for those of another")
	}
	f.HostPods = LabeledPods{Unread: message.Verbatim("forbidden")}
	if found := Assess(f, needs); len(found) != 1 || found[0].Code != HostPodsUnread || !found[0].Invalidates().In(v1alpha1.ModeEnforce) {
		t.Errorf("unknown is taken for sound: %+v", found)
	}
}

// TestUnproxiedPods checks that pods without a proxy are reported for the classes that Istio enforces, and that unknown is not sound.
func TestUnproxiedPods(t *testing.T) {
	f, n := healthy(), needs
	f.Istio.Declared = `{"dataplane": "sidecar", "version": "1.31.2"}`
	redis := federation.Label{Key: n.Keys[0].Label, Value: "a"}
	f.Unproxied.Pods = map[federation.Label][]string{redis: {"ns/redis-0", "ns/redis-1"}}
	if found := Assess(f, n); len(found) != 0 {
		t.Errorf("a class of Cilium's: %+v", found)
	}
	n.Keys = []Key{{Class: "redis", Label: redis.Key, Istio: true, GuardedOnly: true}}
	found := Assess(f, n)
	if len(found) != 1 || found[0].Code != UnproxiedPods || found[0].Class != "redis" || !Passes(found) ||
		!strings.Contains(found[0].Message.Text, "ns/redis-1") {
		t.Errorf("%+v", found)
	}
	if !f.Unproxied.Describe(redis.Key, "b").IsZero() || f.Unproxied.Describe(redis.Key, "a").IsZero() {
		t.Error("the pods of one resource are taken for those of another")
	}
	f.Istio.Declared = `{"dataplane": "none"}`
	if found := Assess(f, n); len(found) != 0 {
		t.Errorf("no Istio enforces there: %+v", found)
	}
	f.Istio.Declared = `{"dataplane": "ambient", "version": "1.31.2"}`
	f.Unproxied = LabeledPods{Unread: message.Verbatim("forbidden")}
	if found := Assess(f, n); len(found) != 1 || found[0].Code != UnproxiedUnread {
		t.Errorf("unknown is taken for sound: %+v", found)
	}
}

// TestMeshPodsThatAreNotProtectedAsWritten checks that pods in ambient and pods behind waypoints are reported for the classes that Istio
// enforces, and that unknown is not sound.
func TestMeshPodsThatAreNotProtectedAsWritten(t *testing.T) {
	f, n := healthy(), needs
	f.Istio.Declared = `{"dataplane": "sidecar", "version": "1.31.2"}`
	n.Keys = []Key{{Class: "redis", Label: needs.Keys[0].Label, Istio: true, GuardedOnly: true}}
	pods := LabeledPods{Pods: map[federation.Label][]string{{Key: n.Keys[0].Label, Value: "a"}: {"ns/redis-0 (ns/waypoint)"}}}
	for _, c := range []struct {
		reason, code, says string
		pods               MeshPods
	}{
		{"ztunnel protects it, and the member declares sidecars", PodsInAmbient, "ns/redis-0", MeshPods{InAmbient: pods}},
		{"a waypoint is in front of it", PodsBehindWaypoint, "ns/waypoint", MeshPods{BehindWaypoint: pods}},
		{"only its owner says that it is protected", GRPCServersStated, "ns/redis-0", MeshPods{StatedServers: pods}},
		{"this is unknown", WaypointsUnread, "forbidden", MeshPods{BehindWaypoint: LabeledPods{Unread: message.Verbatim("forbidden")}}},
		{"every pod is unknown", UnproxiedUnread, "forbidden", UnreadMeshPods(message.Verbatim("forbidden"))},
	} {
		f.MeshPods = c.pods
		if found := Assess(f, n); len(found) != 1 || found[0].Code != c.code || !strings.Contains(found[0].Message.Text, c.says) || !Passes(found) {
			t.Errorf("%s: %+v", c.reason, found)
		}
		if found := Assess(f, needs); len(found) != 0 {
			t.Errorf("%s, of a class of Cilium's: %+v", c.reason, found)
		}
	}
}

// TestStatedServersOfManyWorkloads checks that the finding lists each workload once, and only some of many.
func TestStatedServersOfManyWorkloads(t *testing.T) {
	f, n := healthy(), needs
	f.Istio.Declared = `{"dataplane": "sidecar", "version": "1.31.2"}`
	n.Keys = []Key{{Class: "redis", Label: needs.Keys[0].Label, Istio: true, GuardedOnly: true}}
	stated := newLabeledPods([]string{n.Keys[0].Label})
	for i := range 24 {
		label := federation.Label{Key: n.Keys[0].Label, Value: fmt.Sprint(i % 2)}
		stated.addOnce(label, fmt.Sprintf("ns/points-%02d", i/4*2+i%2))
		stated.addOnce(label, "ns/shared")
	}
	stated.sort()
	f.StatedServers = stated
	found := Assess(f, n)
	if len(found) != 1 || !strings.HasSuffix(found[0].Message.Text, ": ns/points-00, ns/points-01, ns/points-02, ns/points-03, ns/points-04, "+
		"ns/points-05, ns/points-06, ns/points-07, ns/points-08, ns/points-09 and 3 more") {
		t.Errorf("%+v", found)
	}
}

// TestProxied checks which annotations say that a proxy gets all connections of a pod.
func TestProxied(t *testing.T) {
	const (
		templates   = "inject.istio.io/templates"
		mode        = "sidecar.istio.io/interceptionMode"
		ports       = "traffic.sidecar.istio.io/includeInboundPorts"
		redirection = "ambient.istio.io/redirection"
		excluded    = "traffic.sidecar.istio.io/excludeInboundPorts"
		config      = "proxy.istio.io/config"
		bypass      = "ambient.istio.io/bypass-inbound-capture"
		rerouted    = "istio.io/reroute-virtual-interfaces"
		kubevirt    = "traffic.sidecar.istio.io/kubevirtInterfaces"
	)
	injected := func(key, value string) map[string]string {
		return map[string]string{"sidecar.istio.io/status": `{"containers": ["istio-proxy"]}`, key: value}
	}
	inAmbient := func(key, value string) map[string]string {
		return map[string]string{redirection: "enabled", key: value}
	}
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		want        bool
	}{
		"None":    {reason: "nothing was injected"},
		"Sidecar": {reason: "the sidecar was injected", annotations: injected("other", ""), want: true},
		"Ambient": {reason: "ztunnel gets the connections", annotations: map[string]string{redirection: "enabled"}, want: true},
		"NotYet":  {reason: "the redirection is not set up", annotations: map[string]string{redirection: "pending"}},
		"Agent":   {reason: "a gRPC agent intercepts nothing", annotations: injected(templates, "grpc-agent")},
		"Servers": {reason: "all its ports are gRPC servers of the mesh", want: true,
			annotations: map[string]string{"sidecar.istio.io/status": "{}", templates: "grpc-agent", "acp.io/grpc-servers": "xds"}},
		"NoAgent": {reason: "no agent was injected", annotations: map[string]string{templates: "grpc-agent", "acp.io/grpc-servers": "xds"}},
		"OtherTemplate": {reason: "something else than the agent was injected",
			annotations: map[string]string{"sidecar.istio.io/status": "{}", templates: "custom", "acp.io/grpc-servers": "xds"}},
		"ServersInAmbient": {reason: "ztunnel gets the connections, whatever the owner states", want: true,
			annotations: map[string]string{"sidecar.istio.io/status": "{}", templates: "grpc-agent", "acp.io/grpc-servers": "xds", redirection: "enabled"}},
		"ServersWithSidecar": {reason: "the sidecar gets the connections, whatever the owner states", want: true,
			annotations: map[string]string{"sidecar.istio.io/status": "{}", templates: "sidecar,grpc-agent", "acp.io/grpc-servers": "xds"}},
		"Both":            {reason: "the sidecar and more", annotations: injected(templates, "sidecar,custom"), want: true},
		"NoInterception":  {reason: "the sidecar intercepts nothing", annotations: injected(mode, "NONE")},
		"SomePorts":       {reason: "only some ports", annotations: injected(ports, "8080")},
		"AllPorts":        {reason: "all ports", annotations: injected(ports, "*"), want: true},
		"NoPorts":         {reason: "no port", annotations: injected(ports, "")},
		"Excluded":        {reason: "a port bypasses the sidecar", annotations: injected(excluded, "15020, 6379")},
		"Own":             {reason: "the sidecar's own ports, as the injection writes them", annotations: injected(excluded, "15090,15020"), want: true},
		"NoneExcluded":    {reason: "no port", annotations: injected(excluded, ""), want: true},
		"Range":           {reason: "not understood", annotations: injected(excluded, "15020-15090")},
		"Interface":       {reason: "a network interface bypasses the sidecar", annotations: injected("traffic.sidecar.istio.io/excludeInterfaces", "net1")},
		"OwnConfig":       {reason: "settings without a mode", annotations: injected(config, "concurrency: 2"), want: true},
		"OwnMode":         {reason: "another mode of interception", annotations: injected(config, "interceptionMode: TPROXY"), want: true},
		"NumberedMode":    {reason: "the number of that mode", annotations: injected(config, "interceptionMode: 1"), want: true},
		"ConfigNone":      {reason: "the sidecar intercepts nothing by its settings", annotations: injected(config, "interceptionMode: NONE")},
		"OriginalName":    {reason: "the same with the field's other name", annotations: injected(config, `{"interception_mode": "NONE"}`)},
		"NumberedNone":    {reason: "the same as a number", annotations: injected(config, "interceptionMode: 2")},
		"InvalidConfig":   {reason: "settings that cannot be parsed", annotations: injected(config, "interceptionMode")},
		"Rerouted":        {reason: "connections of an interface count as outbound", annotations: injected(rerouted, "eth0")},
		"OldRerouted":     {reason: "the same by the older name", annotations: injected(kubevirt, "k6t-eth0, net1")},
		"Machine":         {reason: "only those of a virtual machine in the pod do", annotations: injected(kubevirt, "k6t-eth0"), want: true},
		"Bypass":          {reason: "ztunnel gets no inbound connections", annotations: inAmbient(bypass, "true")},
		"BypassByNumber":  {reason: "the same by another form of true", annotations: inAmbient(bypass, "1")},
		"NoBypass":        {reason: "ztunnel gets the connections", annotations: inAmbient(bypass, "false"), want: true},
		"IgnoredBypass":   {reason: "a value that Istio ignores", annotations: inAmbient(bypass, "yes"), want: true},
		"AmbientRerouted": {reason: "connections of an interface count as outbound", annotations: inAmbient(rerouted, "eth0")},
		"OtherProbes": {
			reason: "the pod's own port of the sidecar's readiness", want: true,
			annotations: map[string]string{"sidecar.istio.io/status": "{}", "status.sidecar.istio.io/port": "16020", excluded: "16020"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := proxied(tc.annotations); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
			if got := statesServers(tc.annotations); got != (name == "Servers") {
				t.Errorf("%s: its owner's statement counts: %t", tc.reason, got)
			}
		})
	}
}

// TestWorkloadOf checks which name a list of workloads has for a pod.
func TestWorkloadOf(t *testing.T) {
	owned := func(kind, owner string, labels map[string]string) metav1.ObjectMeta {
		yes := true
		owners := []metav1.OwnerReference{{Kind: "Other", Name: "x"}, {Kind: kind, Name: owner, Controller: &yes}}
		return metav1.ObjectMeta{Name: "pod-0", Labels: labels, OwnerReferences: owners}
	}
	hash := map[string]string{"pod-template-hash": "5d8f"}
	for name, tc := range map[string]struct {
		pod  metav1.ObjectMeta
		want string
	}{
		"Alone":       {metav1.ObjectMeta{Name: "pod-0"}, "pod-0"},
		"StatefulSet": {owned("StatefulSet", "points", hash), "points"},
		"Deployment":  {owned("ReplicaSet", "points-5d8f", hash), "points"},
		"ReplicaSet":  {owned("ReplicaSet", "points-5d8f", nil), "points-5d8f"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := workloadOf(&metav1.PartialObjectMetadata{ObjectMeta: tc.pod}); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
