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

// Locations says where the parts of a member's dataplane are.
type Locations struct {
	CiliumConfig, CiliumAgents, CiliumEnvoy types.NamespacedName
	IstioRoot                               string
	// Problem names the declaration that cannot be parsed, or is zero.
	Problem message.Message
}

// DefaultLocations returns the locations of the usual installations.
func DefaultLocations() Locations { return ParseLocations(nil) }

// ParseLocations parses the annotations of a KubeFedCluster.
func ParseLocations(annotations map[string]string) Locations {
	out := Locations{IstioRoot: cmp.Or(annotations[AnnotationIstioRoot], guard.IstioRoot)}
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

// NonDefaultIstioRoot returns Istio's root namespace if it is not the default one, to which policies are distributed, and "" if it is.
func (p Locations) NonDefaultIstioRoot() string {
	if p.IstioRoot == guard.IstioRoot {
		return ""
	}
	return p.IstioRoot
}

// Annotations returns the annotations that declare the differences from the default locations.
func (p Locations) Annotations() map[string]string {
	usual, out := DefaultLocations(), map[string]string{}
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
