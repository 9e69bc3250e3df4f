package preflight

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/acp-io/acp/api/v1alpha1"
	mesh "github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
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
	Label   string          `json:"label,omitempty"`
	Message message.Message `json:"message"`
	Do      message.Message `json:"remedy"`

	invalidates Invalidates
}

// Text returns the message with what to do about it.
func (f Finding) Text() message.Message {
	if f.Do.IsZero() || f.Do == message.RemedyNothing() {
		return f.Message
	}
	return message.PreflightWithRemedy(f.Message, f.Do)
}

// Invalidates returns the modes in which policies of the member have another meaning because of the finding.
func (f Finding) Invalidates() Invalidates { return f.invalidates }

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
		why := message.PreflightUnreachable(apiText(f.Unreachable))
		return []Finding{{Severity: Stops, Code: Unreachable, Message: why, Do: message.RemedyCheckConnection()}}
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
			out = append(out, Finding{Severity: Stops, Code: KindMissing, Message: message.PreflightKindMissing(name, gvr.Version),
				Do: installHint(k, &f)})
		case Forbidden:
			out = append(out, Finding{Severity: Stops, Code: KindForbidden, Message: message.PreflightKindForbidden(name), Do: message.RemedyRejoinRole()})
		default:
			why := message.PreflightKindFailsSilently(name)
			if l.Detail != "" {
				why = message.PreflightKindFails(name, l.Detail)
			}
			out = append(out, Finding{Severity: Stops, Code: KindFails, Message: why, Do: message.RemedyMendServer()})
		}
	}
	return out
}

// apiText returns a text of the API server, or of the client that called it.
func apiText(text string) message.Message {
	if text == refused {
		return message.PreflightTokenRefused()
	}
	return message.Verbatim(text)
}

// installHint says how a kind comes to a cluster.
func installHint(k federation.Kind, f *Facts) message.Message {
	switch {
	case k == federation.IstioPolicy:
		return message.RemedyFixIstioKind()
	case f.withoutCilium():
		return message.RemedyFixCiliumKind()
	case f.Istio.absent().IsZero():
		return message.RemedyInstallCilium()
	}
	return message.RemedyInstallEither()
}

func versionFindings(f Facts) []Finding {
	var out []Finding
	if old(f.Cilium.Version, oldestCilium) {
		out = append(out, Finding{Severity: Fails, Code: OldCilium, Message: message.PreflightOldCilium(f.Cilium.Version), Do: message.RemedyUpgradeCilium()})
	}
	if old(f.Version, oldestServer) {
		out = append(out, Finding{Severity: Warns, Code: OldServer, Message: message.PreflightOldServer(f.Version), Do: message.RemedyUpgradeServer()})
	}
	if f.Istio.Declared != "" {
		if _, err := mesh.ParseCapabilities(f.Istio.Declared); err != nil {
			out = append(out, Finding{Severity: Fails, Code: IstioDeclaration, Message: message.PreflightIstioDeclaration(message.Of(err)),
				Do: message.RemedyCorrectAnnotation(federation.AnnotationIstio)})
		}
	}
	if f.Istio.Served && f.Istio.Unread.IsZero() {
		out = append(out, istio(f.Istio))
	}
	return out
}

func istio(i Istio) Finding {
	if old(i.Version, oldestIstio) {
		return Finding{Severity: Warns, Code: IstioUnsupported, Message: message.PreflightOldIstio(i.Version), Do: message.RemedyUpgradeIstio()}
	}
	what := message.PreflightIstioSidecars
	if i.Ambient {
		what = message.PreflightIstioAmbient
	}
	return Finding{Severity: Warns, Code: IstioCapabilities, Message: what(i.Version), Do: message.RemedyNothing()}
}

// old returns false for a version that cannot be parsed, which may be a custom build.
func old(text string, oldest *version.Version) bool {
	v, err := version.ParseGeneric(text)
	return err == nil && v.LessThan(oldest)
}
