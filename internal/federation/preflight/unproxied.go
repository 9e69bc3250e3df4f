package preflight

import (
	"context"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/message"
)

// connected selects the pods that have an address and have not ended. A pod without an address cannot be connected to, and
// Istio writes the redirection to ztunnel only when the network of the pod is set up.
const connected = "status.phase!=Succeeded,status.phase!=Failed,status.podIP!="

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
// themselves, by the annotations. Whoever may create pods can write them.
func proxied(annotations map[string]string) bool {
	if annotations[redirection] == redirected {
		return true
	}
	if named := strings.Split(annotations[templates], ","); annotations[templates] != "" && !slices.Contains(named, "sidecar") {
		return slices.Contains(named, grpcAgent) && annotations[sidecarStatus] != "" && annotations[grpcServers] == xdsServers
	}
	ports, limited := annotations[includedPorts]
	return annotations[sidecarStatus] != "" && annotations[interceptionMode] != "NONE" && (!limited || ports == "*")
}

// ReadUnproxied lists the pods with each label key that have neither a sidecar nor ztunnel: no AuthorizationPolicy is
// enforced for them, so they are open in every mode. In a member that declares no Istio that enforces, nothing is listed.
func ReadUnproxied(ctx context.Context, reader *rest.Config, istio Istio, keys []string) LabeledPods {
	if len(keys) == 0 || !istio.Enforces() {
		return LabeledPods{}
	}
	return readPods(ctx, reader, keys, connected, func(annotations map[string]string) bool { return !proxied(annotations) })
}

// unproxiedFindings reports pods for which Istio enforces nothing, in a member whose Istio is to enforce.
func unproxiedFindings(f Facts, n Needs) []Finding {
	if !f.Istio.Enforces() || len(IstioLabels(n.Keys)) == 0 {
		return nil
	}
	if !f.Unproxied.Unread.IsZero() {
		return []Finding{{Severity: Warns, Code: UnproxiedUnread,
			Message: message.PreflightUnproxiedUnread(f.Unproxied.Unread), Remedy: message.RemedyApplyMemberRbac()}}
	}
	var out []Finding
	for _, k := range n.Keys {
		if pods := f.Unproxied.describeKey(k.Label); k.Istio && !pods.IsZero() {
			out = append(out, Finding{Severity: Warns, Code: UnproxiedPods, Class: k.Class, Label: k.Label,
				Message: message.PreflightUnproxiedPods(k.Label, k.Class, pods), Remedy: message.RemedyInjectProxy()})
		}
	}
	return out
}
