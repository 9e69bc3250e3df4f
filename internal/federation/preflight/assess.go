package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/acp-io/acp/api/v1alpha1"
	mesh "github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
)

// Severity is the severity of a finding.
type Severity string

// Severities, the worst first.
const (
	// Stops means that, while KubeFed counts the cluster as ready, it would stop the kind for every member.
	Stops Severity = "Stops"
	// Fails means that what is pushed would not be enforced, or would have another meaning.
	Fails Severity = "Fails"
	// Warns means that the finding is for information.
	Warns Severity = "Warns"
)

// Codes of findings. They are stable.
const (
	Unreachable       = "Unreachable"
	KindMissing       = "KindMissing"
	KindForbidden     = "KindForbidden"
	KindFails         = "KindFails"
	AuditMode         = "AuditMode"
	NotEnforcing      = "NotEnforcing"
	AlwaysEnforcing   = "AlwaysEnforcing"
	PoliciesIgnored   = "PoliciesIgnored"
	RangesMatchPods   = "RangesMatchPods"
	NodeRefused       = "NodeRefused"
	AuditCloses       = "AuditCloses"
	ICMPRefused       = "ICMPRefused"
	NoHTTP            = v1alpha1.FindingNoHTTP
	EnvoyNotReady     = "EnvoyNotReady"
	AgentsNotReady    = "AgentsNotReady"
	SmallPolicyMaps   = "SmallPolicyMaps"
	LabelNotIdentity  = "LabelNotInIdentities"
	LabelsUnreadable  = "IdentityLabelsUnreadable"
	SameClusterName   = "SameClusterName"
	SameClusterID     = "SameClusterID"
	ConfigUnread      = "CiliumConfigUnread"
	MeshUndeclared    = "MeshUndeclared"
	OldCilium         = "OldCilium"
	OldServer         = "OldServer"
	IstioUnsupported  = "IstioUnsupported"
	IstioCapabilities = "IstioCapabilities"
	IstioDeclaration  = "IstioDeclarationUnreadable"
	NoCilium          = "NoCilium"
	CiliumUndeclared  = "CiliumUndeclared"
	NoEnforcer        = "NoEnforcer"
	EnforcerUnknown   = "EnforcerUnknown"
	HostNetworkPods   = "HostNetworkPods"
	HostPodsUnread    = "HostPodsUnread"
	GuardMissing      = "GuardMissing"
	GuardChanged      = "GuardChanged"
	GuardUnread       = "GuardUnread"
	MemberDowngraded  = "Downgraded"
)

// Finding is one result of the preflight, with what to do about it.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	// Class is the class of a finding about one class.
	Class string `json:"about,omitempty"`
	// Label is the pod label key, in a finding about one label.
	Label   string `json:"label,omitempty"`
	Message string `json:"message"`
	Do      string `json:"remedy"`

	voids Voids
}

// Voids returns the modes in which policies of the member have another meaning because of the finding.
func (f Finding) Voids() Voids { return f.voids }

// Oldest supported versions.
var (
	oldestCilium = version.MustParseGeneric("1.19.0")
	// oldestServer is the first version with stable ValidatingAdmissionPolicies, which guard the managed objects.
	oldestServer = version.MustParseGeneric("1.30.0")
	oldestIstio  = version.MustParseGeneric("1.29.0")
)

// Assess returns the findings about a cluster, the worst first.
func Assess(f Facts, n Needs) []Finding {
	if f.Unreachable != "" {
		return []Finding{{Severity: Stops, Code: Unreachable, Message: fmt.Sprintf("the cluster does not answer: %s", f.Unreachable),
			Do: "check address, certificate authority, proxy and token, from where the adapter and KubeFed run"}}
	}
	out := append(listingFindings(f, n), declaredEnforcer(f)...)
	out = append(out, settingFindings(f, n)...)
	out = append(out, meshFindings(f, n.Others)...)
	out = append(out, versionFindings(f)...)
	out = append(out, guardFindings(f, n)...)
	out = append(out, hostPodFindings(f, n)...)
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
	return out
}

var order = []Severity{Stops, Fails, Warns}

// Passes reports that no finding prevents membership.
func Passes(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity != Warns })
}

// listingFindings checks that each kind was listed. A kind without a result counts as not listed.
func listingFindings(f Facts, n Needs) []Finding {
	var out []Finding
	for _, k := range n.Kinds {
		gvr := k.TargetResource
		l := Listing{Resource: gvr, Result: NotDecided}
		if i := slices.IndexFunc(f.Kinds, func(l Listing) bool { return l.Resource == gvr }); i >= 0 {
			l = f.Kinds[i]
		}
		name := gvr.GroupResource().String()
		switch l.Result {
		case Listed:
		case NotServed:
			out = append(out, Finding{Severity: Stops, Code: KindMissing, Message: fmt.Sprintf("it does not serve %s in version %s", name, gvr.Version),
				Do: installHint(k, &f)})
		case Forbidden:
			out = append(out, Finding{Severity: Stops, Code: KindForbidden, Message: fmt.Sprintf("the pusher may not list %s", name),
				Do: "give the pusher's account its role again: kubectl acp cluster join does"})
		default:
			out = append(out, Finding{Severity: Stops, Code: KindFails, Message: strings.TrimSuffix(fmt.Sprintf("%s cannot be listed: %s", name, l.Detail), ": "),
				Do: "mend the API server or the stored objects there"})
		}
	}
	return out
}

// installHint says how a kind comes to a cluster.
func installHint(k federation.Kind, f *Facts) string {
	const install = "install Cilium 1.19 or newer there, with its CRDs"
	switch {
	case k == federation.IstioPolicy:
		return "kubectl acp cluster check --fix brings the kind there; Istio itself is not needed"
	case f.withoutCilium():
		return "kubectl acp cluster check --fix brings Cilium's kind there; Cilium itself is not needed"
	case f.Istio.absent() == "":
		return install + "; or, as Istio is there, make it a member without Cilium: kubectl acp cluster join --enforcer istio brings the kind"
	}
	return "neither Cilium nor Istio is there: " + install + "; or Istio 1.29 or newer, and join it with --enforcer istio"
}

func versionFindings(f Facts) []Finding {
	var out []Finding
	if old(f.Cilium.Version, oldestCilium) {
		out = append(out, Finding{Severity: Fails, Code: OldCilium, Message: "Cilium " + f.Cilium.Version + " is older than 1.19: policies mean something else there",
			Do: "upgrade Cilium"})
	}
	if old(f.Version, oldestServer) {
		out = append(out, Finding{Severity: Warns, Code: OldServer, Message: "Kubernetes " + f.Version + " has no stable admission policies: nothing guards the managed objects there",
			Do: "upgrade to 1.30 or newer"})
	}
	if f.Istio.Declared != "" {
		if _, err := mesh.ParseCapabilities(f.Istio.Declared); err != nil {
			out = append(out, Finding{Severity: Fails, Code: IstioDeclaration, Message: fmt.Sprintf("what it declares about its Istio cannot be read, so every statement of classes with the enforcer istio is refused there: %v", err),
				Do: "correct the annotation " + federation.AnnotationIstio + " of its KubeFedCluster"})
		}
	}
	if f.Istio.Served && f.Istio.Unread == "" {
		out = append(out, istio(f.Istio))
	}
	return out
}

func istio(i Istio) Finding {
	if old(i.Version, oldestIstio) {
		return Finding{Severity: Warns, Code: IstioUnsupported, Message: "Istio " + i.Version + " is older than 1.29: classes with the enforcer istio are refused there",
			Do: "upgrade Istio"}
	}
	what := "sidecars"
	if i.Ambient {
		what = "sidecars, and ambient for layer 4"
	}
	return Finding{Severity: Warns, Code: IstioCapabilities, Message: "Istio " + i.Version + " is there with " + what, Do: "nothing"}
}

// old returns false for a version that cannot be parsed, which may be a custom build.
func old(text string, oldest *version.Version) bool {
	v, err := version.ParseGeneric(text)
	return err == nil && v.LessThan(oldest)
}
