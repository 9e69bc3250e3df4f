package federation

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/message"
)

// Annotations of KubeFedClusters with the locations of a member's dataplane, for members in which Cilium and Istio are
// not at the locations that their installers use.
const (
	// AnnotationCiliumConfig is the agents' ConfigMap, as namespace/name.
	AnnotationCiliumConfig = "acp.io/cilium-config"
	// AnnotationCiliumAgents is the agents' DaemonSet, as namespace/name. CiliumNodeConfigs are read in its namespace.
	AnnotationCiliumAgents = "acp.io/cilium-agents"
	// AnnotationCiliumEnvoy is the DaemonSet of Envoy, as namespace/name, where it runs apart from the agents.
	AnnotationCiliumEnvoy = "acp.io/cilium-envoy"
	// AnnotationIstioRoot is Istio's root namespace.
	AnnotationIstioRoot = "acp.io/istio-root-namespace"
)

// Places are the locations of the parts of a member's dataplane.
type Places struct {
	CiliumConfig, CiliumAgents, CiliumEnvoy types.NamespacedName
	IstioRoot                               string
	// Problem names the declaration that cannot be parsed, or is zero.
	Problem message.Message
}

// DefaultPlaces returns the locations of the usual installations.
func DefaultPlaces() Places { return ParsePlaces(nil) }

// ParsePlaces parses the annotations of a KubeFedCluster.
func ParsePlaces(annotations map[string]string) Places {
	out := Places{IstioRoot: cmp.Or(annotations[AnnotationIstioRoot], guard.IstioRoot)}
	for _, p := range []struct {
		annotation, usual string
		place             *types.NamespacedName
	}{
		{AnnotationCiliumConfig, "cilium-config", &out.CiliumConfig},
		{AnnotationCiliumAgents, "cilium", &out.CiliumAgents},
		{AnnotationCiliumEnvoy, "cilium-envoy", &out.CiliumEnvoy},
	} {
		text, declared := annotations[p.annotation]
		if !declared {
			text = "kube-system/" + p.usual
		}
		namespace, name, ok := strings.Cut(text, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			out.Problem = message.PreflightPlaceInvalid(p.annotation)
			continue
		}
		*p.place = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return out
}

// OtherIstioRoot returns Istio's root namespace if it is not the one that policies are carried to, and "" if it is.
func (p Places) OtherIstioRoot() string {
	if p.IstioRoot == guard.IstioRoot {
		return ""
	}
	return p.IstioRoot
}

// Annotations returns the annotations that declare the differences from the default locations.
func (p Places) Annotations() map[string]string {
	usual, out := DefaultPlaces(), map[string]string{}
	for annotation, pair := range map[string][2]string{
		AnnotationCiliumConfig: {p.CiliumConfig.String(), usual.CiliumConfig.String()},
		AnnotationCiliumAgents: {p.CiliumAgents.String(), usual.CiliumAgents.String()},
		AnnotationCiliumEnvoy:  {p.CiliumEnvoy.String(), usual.CiliumEnvoy.String()},
		AnnotationIstioRoot:    {p.IstioRoot, usual.IstioRoot},
	} {
		if pair[0] != pair[1] {
			out[annotation] = pair[0]
		}
	}
	return out
}
