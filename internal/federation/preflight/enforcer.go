package preflight

import (
	"fmt"

	"github.com/acp-io/acp/api/v1alpha1"
	mesh "github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
)

// withoutCilium reports whether the member declares that Istio alone enforces there.
func (f Facts) withoutCilium() bool { return f.Enforcer == string(v1alpha1.EnforcerIstio) }

// declaredEnforcer judges the declaration. One that is not understood counts as that of a member with Cilium, whose settings then
// have to be found.
func declaredEnforcer(f Facts) []Finding {
	switch v1alpha1.EnforcerName(f.Enforcer) {
	case "", v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio:
		return nil
	}
	return []Finding{{Severity: Fails, Code: EnforcerUnknown, Message: fmt.Sprintf("its KubeFedCluster declares the enforcer %q, which is none: it counts as a member with Cilium", clip(f.Enforcer)),
		Do: "set the annotation " + federation.AnnotationEnforcer + " to istio where there is no Cilium, or remove it"}}
}

// istioAlone judges a member that declares that it has no Cilium. Whatever Cilium's policies say, none of them counts as enforced
// there, also where agents of Cilium run contrary to the declaration.
func istioAlone(f Facts) []Finding {
	out := []Finding{{Severity: Warns, Code: NoCilium, voids: voidsAll,
		Message: "Cilium enforces nothing there: the member is registered as one with Istio alone, and has Cilium's kinds only for KubeFed, which would stop for every member without them",
		Do:      "nothing, unless classes that Cilium enforces are placed there: place them in other members, or install Cilium and join the member again with --enforcer cilium"}}
	if len(f.Cilium.Sources) > 0 {
		out = append(out, Finding{Severity: Warns, Code: CiliumUndeclared, Message: "the member is registered as one with Istio alone, and Cilium is configured there in " + f.Cilium.Sources[0].Where,
			Do: "if agents of Cilium run there, join the member again with --enforcer cilium; else remove what is left of Cilium"})
	}
	if why := f.Istio.absent(); why != "" && !f.Istio.declared() {
		out = append(out, Finding{Severity: Fails, Code: NoEnforcer, Message: "neither Cilium nor Istio enforces anything there: the member is registered as one with Istio alone, and " + why,
			Do: "install Istio 1.29 or newer there; or install Cilium 1.19 or newer, and join the member with --enforcer cilium"})
	}
	return out
}

// absent says why Istio does not run in the cluster, as far as was read; "": it runs.
func (i Istio) absent() string {
	switch {
	case i.Unread != "":
		return i.Unread
	case !i.Served:
		return "it does not serve Istio's kinds"
	}
	return ""
}

// declared reports whether the member declares an Istio that enforces.
func (i Istio) declared() bool {
	c, err := mesh.ParseCapabilities(i.Declared)
	return i.Declared != "" && err == nil && c.Dataplane != mesh.NoDataplane
}
