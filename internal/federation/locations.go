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
	// AnnotationCiliumConfig contains the namespace and name of the agents' ConfigMap, as namespace/name.
	AnnotationCiliumConfig = "acp.io/cilium-config"
	// AnnotationCiliumAgents contains the namespace and name of the agents' DaemonSet, as namespace/name. CiliumNodeConfigs
	// are read in that namespace.
	AnnotationCiliumAgents = "acp.io/cilium-agents"
	// AnnotationCiliumEnvoy contains the namespace and name of Envoy's DaemonSet, as namespace/name, for members in which
	// Envoy runs apart from the agents.
	AnnotationCiliumEnvoy = "acp.io/cilium-envoy"
	// AnnotationIstioRoot contains the name of Istio's root namespace.
	AnnotationIstioRoot = "acp.io/istio-root-namespace"
)

// Locations contains the locations of the parts of a member's dataplane.
type Locations struct {
	CiliumConfig, CiliumAgents, CiliumEnvoy types.NamespacedName
	IstioRoot                               string
	// IstioRootDeclared reports whether the member declares Istio's root namespace, so that it counts where no mesh configuration is found.
	IstioRootDeclared bool
	// Problem names the declaration that cannot be parsed, or is zero.
	Problem message.Message
}

// DefaultLocations returns the locations of the usual installations.
func DefaultLocations() Locations { return ParseLocations(nil) }

// ParseLocations parses the annotations of a KubeFedCluster.
func ParseLocations(annotations map[string]string) Locations {
	out := Locations{IstioRoot: cmp.Or(annotations[AnnotationIstioRoot], guard.IstioRoot), IstioRootDeclared: annotations[AnnotationIstioRoot] != ""}
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
func (l Locations) NonDefaultIstioRoot() string {
	if l.IstioRoot == guard.IstioRoot {
		return ""
	}
	return l.IstioRoot
}

// Annotations returns the annotations that declare the differences from the default locations, and Istio's root namespace if it is declared.
func (l Locations) Annotations() map[string]string {
	usual, out := DefaultLocations(), map[string]string{}
	for annotation, pair := range map[string][2]string{
		AnnotationCiliumConfig: {l.CiliumConfig.String(), usual.CiliumConfig.String()},
		AnnotationCiliumAgents: {l.CiliumAgents.String(), usual.CiliumAgents.String()},
		AnnotationCiliumEnvoy:  {l.CiliumEnvoy.String(), usual.CiliumEnvoy.String()},
		AnnotationIstioRoot:    {l.IstioRoot, usual.IstioRoot},
	} {
		if pair[0] != pair[1] {
			out[annotation] = pair[0]
		}
	}
	if l.IstioRootDeclared {
		out[AnnotationIstioRoot] = l.IstioRoot
	}
	return out
}
