package preflight

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	mesh "github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// connected selects the pods that have an address and have not ended. A pod without an address cannot be connected to, and
// Istio writes the redirection to ztunnel only when the network of the pod is set up.
const connected = "status.phase!=Succeeded,status.phase!=Failed,status.podIP!="

// inPodNetwork and inNodeNetwork divide the connected pods into those with a network of their own and those that use the network of their
// node. Istio neither injects anything into the latter nor redirects their traffic, so annotations that say so were copied from other pods.
// Source: injectRequired in pkg/kube/inject/inject.go, and cni/pkg/util.
const (
	inPodNetwork  = "spec.hostNetwork=false," + connected
	inNodeNetwork = "spec.hostNetwork=true," + connected
)

// Annotations of pods that Istio writes or reads. Source: istio.io/api/annotation.
const (
	// sidecarStatus is added when containers are injected. Its value describes them.
	sidecarStatus = "sidecar.istio.io/status"
	// templates names what is injected, if it is something else than the sidecar.
	templates = "inject.istio.io/templates"
	// grpcAgent is the template of the agent that gives a gRPC server its configuration. It intercepts nothing.
	grpcAgent = "grpc-agent"
	// interceptionMode and includedPorts determine which connections the sidecar gets.
	interceptionMode = "sidecar.istio.io/interceptionMode"
	includedPorts    = "traffic.sidecar.istio.io/includeInboundPorts"
	// excludedPorts and excludedInterfaces take connections away from the sidecar.
	excludedPorts      = "traffic.sidecar.istio.io/excludeInboundPorts"
	excludedInterfaces = "traffic.sidecar.istio.io/excludeInterfaces"
	// proxyConfig contains settings of the sidecar in YAML, which may include the mode of interception.
	proxyConfig = "proxy.istio.io/config"
	// reroutedInterfaces names the network interfaces whose connections the sidecar or ztunnel handles as outbound ones, for which no
	// AuthorizationPolicy counts. kubevirtInterfaces is its older name, which only the sidecar supports.
	reroutedInterfaces = "istio.io/reroute-virtual-interfaces"
	kubevirtInterfaces = "traffic.sidecar.istio.io/kubevirtInterfaces"
	// noInboundCapture takes all inbound connections away from ztunnel, with a value that is true. The redirection is enabled all the same.
	noInboundCapture = "ambient.istio.io/bypass-inbound-capture"
	// statusPort is the port on which the sidecar answers probes, if it is not the default.
	statusPort = "status.sidecar.istio.io/port"
	// redirection is added by istio-cni when the traffic of a pod is redirected to ztunnel, with the value redirected.
	redirection = "ambient.istio.io/redirection"
	redirected  = "enabled"
)

// grpcServers states, with the value xds, that gRPC servers that enforce what istiod sends them serve all ports of a pod. The
// agent is injected whether the program uses it or not, so that only the owner of the pod can state this.
const (
	grpcServers = "acp.io/grpc-servers"
	xdsServers  = "xds"
)

// proxied reports whether a pod has a proxy that gets all of its connections, or only gRPC servers that enforce policies
// themselves, by the annotations. Everyone who may create pods can write these annotations.
func proxied(annotations map[string]string) bool {
	if annotations[redirection] == redirected {
		// Istio ignores a value that is not a boolean. Source: getPodLevelTrafficOverrides in cni/pkg/nodeagent/net.go.
		disabled, err := strconv.ParseBool(annotations[noInboundCapture])
		return (err != nil || !disabled) && !reroutes(annotations[reroutedInterfaces])
	}
	if !injectsSidecar(annotations) {
		return statesServers(annotations)
	}
	if excludes(annotations) || reroutes(annotations[reroutedInterfaces]) || reroutes(annotations[kubevirtInterfaces]) {
		return false
	}
	ports, limited := annotations[includedPorts]
	return annotations[sidecarStatus] != "" && intercepts(annotations) && (!limited || ports == "*")
}

// noInterception is the mode of interception in which the sidecar gets no connections.
const noInterception = "NONE"

// intercepts reports whether neither annotation with the mode of interception turns it off. With istio-cni, the injection writes the mode of
// proxyConfig into interceptionMode as well; without it, proxyConfig alone contains it. What cannot be parsed is unknown, so it does not count.
func intercepts(annotations map[string]string) bool {
	if annotations[interceptionMode] == noInterception {
		return false
	}
	// Istio reads both names of the field, and also the number of a mode.
	var config struct {
		Mode     any `json:"interceptionMode"`
		Original any `json:"interception_mode"`
	}
	if err := yaml.Unmarshal([]byte(annotations[proxyConfig]), &config); err != nil {
		return false
	}
	return intercepting(config.Mode) && intercepting(config.Original)
}

// intercepting reports whether a mode of interception in a configuration, which may be absent, is one in which the sidecar gets connections: REDIRECT
// (0) or TPROXY (1).
func intercepting(mode any) bool {
	switch mode {
	case nil, "REDIRECT", "TPROXY", 0.0, 1.0:
		return true
	}
	return false
}

// virtualMachineBridge is the prefix of the bridges that KubeVirt creates inside a pod for its virtual machine. Only connections of the machine to
// others arrive there.
const virtualMachineBridge = "k6t-"

// reroutes reports whether connections from other pods may arrive at one of these network interfaces.
func reroutes(interfaces string) bool {
	for name := range strings.SplitSeq(interfaces, ",") {
		if name = strings.TrimSpace(name); name != "" && !strings.HasPrefix(name, virtualMachineBridge) {
			return true
		}
	}
	return false
}

// injectsSidecar reports whether what is injected into a pod, if anything is, includes the sidecar.
func injectsSidecar(annotations map[string]string) bool {
	named := strings.Split(annotations[templates], ",")
	return annotations[templates] == "" || slices.Contains(named, "sidecar")
}

// statesServers reports whether a pod counts as one with a proxy only because its owner states that gRPC servers that enforce policies
// serve all of its ports.
func statesServers(annotations map[string]string) bool {
	return annotations[redirection] != redirected && !injectsSidecar(annotations) && annotations[sidecarStatus] != "" &&
		slices.Contains(strings.Split(annotations[templates], ","), grpcAgent) && annotations[grpcServers] == xdsServers
}

// ownPorts are the ports of the sidecar itself: its statistics, its readiness, and the probes of the pod, which it answers. With
// istio-cni, the injection excludes the last one in the annotations of every pod.
var ownPorts = []string{"15020", "15021", "15090"}

// excludes reports whether connections to a pod bypass its sidecar: those to a port that is not the sidecar's own, or those of a
// network interface.
func excludes(annotations map[string]string) bool {
	for port := range strings.SplitSeq(annotations[excludedPorts], ",") {
		port = strings.TrimSpace(port)
		if port != "" && port != annotations[statusPort] && !slices.Contains(ownPorts, port) {
			return true
		}
	}
	return strings.TrimSpace(annotations[excludedInterfaces]) != ""
}

// MeshPods contains the pods of a member with the labels of Istio's classes, grouped by how policies are enforced for connections to them.
type MeshPods struct {
	// Unproxied contains pods that have neither a sidecar nor ztunnel, as all pods that use the network of their node: no AuthorizationPolicy is
	// enforced for them, so they are open in every mode.
	Unproxied LabeledPods
	// InAmbient contains pods that ztunnel protects, in a member that declares sidecars: rules about requests are not enforced for them.
	InAmbient LabeledPods
	// BehindWaypoint contains pods whose connections pass a waypoint, whose name follows in parentheses: their proxies see the waypoint's
	// service account instead of the client's.
	BehindWaypoint LabeledPods
	// Dedicated contains pods whose connections pass a waypoint that the member dedicates to one resource, whose name follows in parentheses.
	Dedicated LabeledPods
	// Direct contains pods whose connections pass no waypoint. They are listed only in a member that dedicates waypoints.
	Direct LabeledPods
	// Gateways contains the Gateways that the member dedicates to resources, by name, with the reason why they are not suited, or zero. A Gateway
	// that is not listed was not read.
	Gateways map[string]message.Message
	// StatedServers contains the workloads, as namespace/name, of pods that have no proxy, and count as protected because their owner states
	// that their gRPC servers enforce policies.
	StatedServers LabeledPods
}

// UnreadMeshPods returns MeshPods that could not be read, with the reason.
func UnreadMeshPods(why message.Message) MeshPods {
	out := LabeledPods{Unread: why}
	return MeshPods{Unproxied: out, InAmbient: out, BehindWaypoint: out, Dedicated: out, Direct: out, StatedServers: out}
}

// EqualMeshPods reports whether both contain the same pods that a policy does not protect as written. Stated servers change no state.
func EqualMeshPods(p, o MeshPods) bool {
	return p.Unproxied.equal(o.Unproxied) && p.InAmbient.equal(o.InAmbient) && p.BehindWaypoint.equal(o.BehindWaypoint) &&
		p.Dedicated.equal(o.Dedicated) && p.Direct.equal(o.Direct) && maps.Equal(p.Gateways, o.Gateways)
}

// ReadMeshPods lists the pods with each label key. In a member that declares no Istio that enforces, nothing is listed.
func ReadMeshPods(ctx context.Context, reader *rest.Config, istio Istio, keys []string) MeshPods {
	if len(keys) == 0 || !istio.Enforces() {
		return MeshPods{}
	}
	reading, err := dynamic.NewForConfig(bounded(reader))
	if err != nil {
		return UnreadMeshPods(message.Of(err))
	}
	passed, unknown := readWaypoints(ctx, reading, istio)
	out := MeshPods{Unproxied: newLabeledPods(keys), InAmbient: newLabeledPods(keys), BehindWaypoint: newLabeledPods(keys),
		Dedicated: newLabeledPods(keys), Direct: newLabeledPods(keys), StatedServers: newLabeledPods(keys), Gateways: passed.dedicated}
	sidecars, dedicates := istio.declares(mesh.Sidecar), len(istio.waypoints()) > 0
	add := func(onNode bool) func(label federation.Label, pod *metav1.PartialObjectMetadata) {
		return func(label federation.Label, pod *metav1.PartialObjectMetadata) {
			name := pod.Namespace + "/" + pod.Name
			switch {
			case onNode || !proxied(pod.Annotations):
				out.Unproxied.add(label, name)
			case statesServers(pod.Annotations):
				out.StatedServers.addOnce(label, pod.Namespace+"/"+workloadOf(pod))
			}
			if sidecars && !onNode && pod.Annotations[redirection] == redirected {
				out.InAmbient.add(label, name)
			}
			through := passed.of(pod)
			switch named := name + " (" + strings.Join(through, ", ") + ")"; {
			case passed.dedicatedTo(through) != "":
				out.Dedicated.add(label, named)
			case len(through) > 0:
				out.BehindWaypoint.add(label, named)
			case dedicates:
				out.Direct.add(label, name)
			}
		}
	}
	why := readPods(ctx, reader, keys, inPodNetwork, add(false))
	if why.IsZero() {
		why = readPods(ctx, reader, keys, inNodeNetwork, add(true))
	}
	if !why.IsZero() {
		return UnreadMeshPods(why)
	}
	if !unknown.IsZero() {
		unread := LabeledPods{Unread: unknown}
		out.BehindWaypoint, out.Dedicated, out.Direct, out.Gateways = unread, unread, unread, nil
	}
	for _, pods := range []*LabeledPods{&out.Unproxied, &out.InAmbient, &out.BehindWaypoint, &out.Dedicated, &out.Direct, &out.StatedServers} {
		pods.sort()
	}
	return out
}

// WaypointOther lists the first pods with a label whose connections pass a waypoint that is not the one that is dedicated to their resource, or
// returns the zero Message if there are none. The name of the Gateway is "" for a resource without a waypoint.
func (p *MeshPods) WaypointOther(key, value, gateway string) message.Message {
	label := federation.Label{Key: key, Value: value}
	own := " (" + federation.IstioPolicy.Namespace + "/" + gateway + ")"
	others := slices.DeleteFunc(slices.Clone(p.Dedicated.Pods[label]), func(pod string) bool { return gateway != "" && strings.HasSuffix(pod, own) })
	return namesOf(slices.Concat(p.BehindWaypoint.Pods[label], others), maxNamedPods)
}

// workloadOf returns the name of the object that a pod belongs to: that of its controller, of the Deployment for a ReplicaSet of one, or its
// own.
func workloadOf(pod *metav1.PartialObjectMetadata) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return pod.Name
	}
	if hash := pod.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
		return strings.TrimSuffix(owner.Name, "-"+hash)
	}
	return owner.Name
}

// meshPodFindings reports pods for which Istio does not enforce the policies as written, in a member whose Istio is to enforce.
func meshPodFindings(f Facts, n Needs) []Finding {
	if !f.Istio.Enforces() || len(IstioLabels(n.Keys)) == 0 {
		return nil
	}
	pods := &f.MeshPods
	if !pods.Unproxied.Unread.IsZero() {
		return []Finding{{Severity: Warns, Code: UnproxiedUnread,
			Message: message.PreflightUnproxiedUnread(pods.Unproxied.Unread), Remedy: message.RemedyApplyMemberRbac()}}
	}
	var out []Finding
	if why := pods.BehindWaypoint.Unread; !why.IsZero() {
		out = append(out, Finding{Severity: Warns, Code: WaypointsUnread,
			Message: message.PreflightWaypointsUnread(why), Remedy: message.RemedyApplyIstioRoles()})
	}
	for _, kind := range []struct {
		pods   *LabeledPods
		code   string
		most   int
		what   func(label, class string, pods message.Message) message.Message
		remedy message.Message
	}{
		{&pods.Unproxied, UnproxiedPods, maxNamedPods, message.PreflightUnproxiedPods, message.RemedyInjectProxy()},
		{&pods.InAmbient, PodsInAmbient, maxNamedPods, message.PreflightPodsInAmbient, message.RemedyDeclareAmbient()},
		{&pods.BehindWaypoint, PodsBehindWaypoint, maxNamedPods, message.PreflightBehindWaypoint, message.RemedyNoWaypoint()},
		{&pods.StatedServers, GRPCServersStated, maxNamedWorkloads, message.PreflightGrpcServersStated, message.RemedyCheckGrpcServers()},
	} {
		for _, k := range n.Keys {
			if named := kind.pods.describeKey(k.Label, kind.most); k.Istio && !named.IsZero() {
				out = append(out, Finding{Severity: Warns, Code: kind.code, Class: k.Class, Label: k.Label,
					Message: kind.what(k.Label, k.Class, named), Remedy: kind.remedy})
			}
		}
	}
	return out
}
