package preflight

import (
	"github.com/acp-io/acp/api/v1alpha1"
	mesh "github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
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
	return []Finding{{Severity: Fails, Code: EnforcerUnknown, Message: message.PreflightEnforcerUnknown(message.Quoted(clip(f.Enforcer))),
		Remedy: message.RemedyEnforcerAnnotation(federation.AnnotationEnforcer)}}
}

// istioAlone judges a member that declares that it has no Cilium. Whatever Cilium's policies say, none of them counts as enforced
// there, also where agents of Cilium run contrary to the declaration.
func istioAlone(f Facts) []Finding {
	out := []Finding{{Severity: Warns, Code: NoCilium, invalidates: invalidatesAll,
		Message: message.PreflightNoCilium(), Remedy: message.RemedyPlaceElsewhere()}}
	if len(f.Cilium.Sources) > 0 {
		out = append(
			out,
			Finding{
				Severity: Warns,
				Code:     CiliumUndeclared,
				Message:  message.PreflightCiliumUndeclared(f.Cilium.Sources[0].Where),
				Remedy:   message.RemedyJoinWithCilium(),
			},
		)
	}
	if why := f.Istio.absent(); !why.IsZero() && !f.Istio.Enforces() {
		out = append(out, Finding{Severity: Fails, Code: NoEnforcer, Message: message.PreflightNoEnforcer(why), Remedy: message.RemedyInstallEnforcer()})
	}
	return out
}

// undeclaredIstio reports a member that declares no Istio, and whose policies of Istio the adapter cannot read although its API server serves them. What
// waits for the removal of a policy that ACP distributed there waits until this is known.
func undeclaredIstio(f Facts) []Finding {
	if why := f.Istio.PoliciesUnread; f.Istio.declares(mesh.NoDataplane) && !why.IsZero() {
		return []Finding{{Severity: Warns, Code: IstioUndeclared, Message: message.PreflightIstioUndeclared(why), Remedy: message.RemedyReadIstio()}}
	}
	return nil
}

// absent returns why Istio does not run in the cluster, as far as was read, or zero if it runs.
func (i Istio) absent() message.Message {
	switch {
	case !i.Unread.IsZero():
		return i.Unread
	case !i.Served:
		return message.PreflightIstioKindsMissing()
	}
	return message.Message{}
}

// waypoints returns the names of the Gateways that the member dedicates to resources.
func (i Istio) waypoints() map[string]bool {
	c, err := mesh.ParseCapabilities(i.Declared)
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for _, w := range c.Waypoints {
		out[w.Gateway] = true
	}
	return out
}

// declares reports whether the member declares a dataplane.
func (i Istio) declares(d mesh.Dataplane) bool {
	c, err := mesh.ParseCapabilities(i.Declared)
	return err == nil && c.Dataplane == d
}

// Enforces reports whether the member declares an Istio that enforces.
func (i Istio) Enforces() bool {
	c, err := mesh.ParseCapabilities(i.Declared)
	return i.Declared != "" && err == nil && c.Dataplane != mesh.NoDataplane
}
