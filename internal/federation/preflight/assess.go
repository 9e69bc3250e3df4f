package preflight

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/acp-io/acp/api/v1alpha1"
	mesh "github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/objectkind"
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
	// Unreachable means that the API server does not answer, or refuses a token.
	Unreachable = "Unreachable"
	// KindMissing means that the API server does not serve a kind that KubeFed distributes.
	KindMissing = "KindMissing"
	// KindForbidden means that the pusher may not list such a kind.
	KindForbidden = "KindForbidden"
	// KindFails means that such a kind cannot be listed for another reason.
	KindFails = "KindFails"
	// AuditMode means that Cilium audits every policy and refuses nothing.
	AuditMode = "AuditMode"
	// NotEnforcing means that Cilium enforces no policy.
	NotEnforcing = "NotEnforcing"
	// AlwaysEnforcing means that Cilium refuses connections to pods without a policy, so that Observe and Audit
	// refuse, too.
	AlwaysEnforcing = "AlwaysEnforcing"
	// PoliciesIgnored means that Cilium ignores the kind of policies that ACP writes.
	PoliciesIgnored = "PoliciesIgnored"
	// RangesMatchPods means that address ranges also match pods or nodes, so that a grant to a range allows too
	// much.
	RangesMatchPods = "RangesMatchPods"
	// NodeRefused means that an enforced pod refuses its own node, so that kubelet's probes fail.
	NodeRefused = "NodeRefused"
	// AuditCloses means that every policy enables default deny, so that Audit and wildcards refuse, too.
	AuditCloses = "AuditCloses"
	// ICMPRefused means that Cilium rejects policies that open the ports of no action.
	ICMPRefused = "ICMPRefused"
	// PoliciesFromFiles means that agents also enforce policies in files on their nodes, which no API server has.
	PoliciesFromFiles = "PoliciesFromFiles"
	// FixedIdentities means that a label gives a pod an identity without its other labels, so that no policy of ACP
	// selects it.
	FixedIdentities = "FixedIdentities"
	// NoHTTP means that rules about HTTP requests cannot be enforced, and are refused.
	NoHTTP = v1alpha1.FindingNoHTTP
	// EnvoyNotReady means that some nodes have no ready Envoy, where a policy with rules about requests blocks all
	// changes.
	EnvoyNotReady = "EnvoyNotReady"
	// AgentsNotReady means that agents of Cilium are not ready, so that no change takes effect on their nodes. It fails the
	// preflight if none is ready.
	AgentsNotReady = "AgentsNotReady"
	// AgentsOutdated reports agents of Cilium that started before their configuration was changed, and use earlier settings, which are known.
	AgentsOutdated = "AgentsOutdated"
	// AgentSettingsUnknown reports such agents if it is not known which settings they use, which counts as not enforced.
	AgentSettingsUnknown = "AgentSettingsUnknown"
	// SmallPolicyMaps means that a policy map has fewer entries than Cilium's default.
	SmallPolicyMaps = "SmallPolicyMaps"
	// LabelNotIdentity means that a label of a class is not in Cilium's identities, so that policies with it select
	// nothing.
	LabelNotIdentity = "LabelNotInIdentities"
	// LabelsUnreadable means that it cannot be determined which labels are in Cilium's identities.
	LabelsUnreadable = "IdentityLabelsUnreadable"
	// SameClusterName means that another member of the same cluster mesh has the same cluster-name.
	SameClusterName = "SameClusterName"
	// SameClusterID means that another member of the same cluster mesh has the same cluster-id.
	SameClusterID = "SameClusterID"
	// ConfigUnread means that Cilium's configuration is not known completely, which counts as not enforced.
	ConfigUnread = "CiliumConfigUnread"
	// MeshUndeclared reports a member with the cluster-id 0 whose KubeFedCluster does not declare that it is in no
	// cluster mesh.
	MeshUndeclared = "MeshUndeclared"
	// OldCilium reports a version of Cilium in which policies have another meaning.
	OldCilium = "OldCilium"
	// OldServer reports a version of Kubernetes without stable ValidatingAdmissionPolicies, so that the guard cannot
	// be installed.
	OldServer = "OldServer"
	// IstioUnsupported reports a version of Istio for which nothing of classes with this enforcer counts as enforced.
	IstioUnsupported = "IstioUnsupported"
	// IstioCapabilities reports for information which modes of Istio the member has.
	IstioCapabilities = "IstioCapabilities"
	// IstioDeclaration means that the annotation about the member's Istio cannot be parsed, so that its Istio is
	// not used.
	IstioDeclaration = "IstioDeclarationUnreadable"
	// IstioWaypointUnused means that an entry of waypoints in that annotation dedicates nothing.
	IstioWaypointUnused = "IstioWaypointUnused"
	// NoCilium reports for information that the member declares Istio as its only enforcer.
	NoCilium = "NoCilium"
	// CiliumUndeclared means that such a member has a configuration of Cilium all the same.
	CiliumUndeclared = "CiliumUndeclared"
	// NoEnforcer means that such a member has no Istio either.
	NoEnforcer = "NoEnforcer"
	// EnforcerUnknown means that the annotation about the member's enforcer has an unknown value. The member counts
	// as one with Cilium.
	EnforcerUnknown = "EnforcerUnknown"
	// HostNetworkPods reports pods of a class that use the network of their node, so that no policy selects them.
	HostNetworkPods = "HostNetworkPods"
	// HostPodsUnread means that it is unknown whether there are such pods.
	HostPodsUnread = "HostPodsUnread"
	// UnproxiedPods reports pods of a class of Istio's that no proxy protects, so that no policy of Istio is enforced for them.
	UnproxiedPods = "UnproxiedPods"
	// UnproxiedUnread means that it is unknown whether there are such pods.
	UnproxiedUnread = "UnproxiedPodsUnread"
	// PodsInAmbient reports pods of a class of Istio's that ztunnel protects in a member that declares sidecars, so that rules about
	// requests are not enforced for them.
	PodsInAmbient = "PodsInAmbient"
	// PodsBehindWaypoint reports pods of a class of Istio's whose connections pass a waypoint, so that no policy that names clients has
	// its meaning for them.
	PodsBehindWaypoint = "PodsBehindWaypoint"
	// WaypointsUnread means that it is unknown whether there are such pods.
	WaypointsUnread = "WaypointsUnread"
	// GRPCServersStated reports workloads of a class of Istio's that have no proxy, and count as protected because their owner states that
	// their gRPC servers enforce policies.
	GRPCServersStated = v1alpha1.FindingGRPCServersStated
	// PlainTextAccepted means that the member declares strictMTLS, on which denies by name rely, and that its pods accept plain
	// text, or that this is unknown.
	PlainTextAccepted = "PlainTextAccepted"
	// PoliciesNotInMesh means that an istiod of the member does not apply the policies of the namespace to which ACP distributes them to the
	// whole mesh, by its mesh configuration.
	PoliciesNotInMesh = "PoliciesNotInMesh"
	// IstiodNotAvailable means that no pod of an istiod is available, so that no change of policies reaches its proxies.
	IstiodNotAvailable = "IstiodNotAvailable"
	// MeshConfigUnread means that it is unknown whether there is such an istiod.
	MeshConfigUnread = "MeshConfigUnread"
	// IstioUndeclared means that the member declares no Istio, serves its policies, and does not let the adapter read whether it has any of ACP's.
	IstioUndeclared = "IstioUndeclared"
	// GuardMissing means that the guard, or a part of it, is not installed.
	GuardMissing = "GuardMissing"
	// GuardChanged means that the guard differs from what ACP installs.
	GuardChanged = "GuardChanged"
	// GuardUnread means that the guard cannot be read.
	GuardUnread = "GuardUnread"
	// ProfileInvalid means that the annotation about the member's ClusterProfile cannot be parsed.
	ProfileInvalid = "ClusterProfileInvalid"
	// ProfileMissing means that the member's ClusterProfile does not exist.
	ProfileMissing = "ClusterProfileMissing"
	// ProfileUnread means that the member's ClusterProfile cannot be read.
	ProfileUnread = "ClusterProfileUnread"
	// ProfileLeaving means that the deletion of the member's ClusterProfile was requested.
	ProfileLeaving = "ClusterProfileLeaving"
	// ProfileUnhealthy means that the ClusterProfile says that the control plane is not healthy.
	ProfileUnhealthy = "ClusterProfileUnhealthy"
	// ProfileHealthUnknown means that the ClusterProfile does not say whether the control plane is healthy.
	ProfileHealthUnknown = "ClusterProfileHealthUnknown"
	// ProfileDiffers means that the ClusterProfile does not contain the way by which the member is registered.
	ProfileDiffers = "ClusterProfileDiffers"
	// ProfileShared means that another member names the same ClusterProfile.
	ProfileShared = "ClusterProfileShared"
	// AgentSilent means that the work agent of the member does not answer, so that nothing is distributed to it.
	AgentSilent = "AgentSilent"
	// AgentUnread means that it is unknown whether the work agent answers.
	AgentUnread = "AgentUnread"
	// NotReadByHost means that the host has no token of the member, so that no resource counts as enforced there.
	NotReadByHost = "NotReadByHost"
	// MemberDowngraded means that an operator changed the member's policies to allow all traffic.
	MemberDowngraded = "Downgraded"
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
	Remedy  message.Message `json:"remedy"`

	invalidates Invalidates
}

// Text returns the message with what to do about it.
func (f Finding) Text() message.Message {
	if f.Remedy.IsZero() || f.Remedy == message.RemedyNothing() {
		return f.Message
	}
	return message.PreflightWithRemedy(f.Message, f.Remedy)
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
	var out []Finding
	switch {
	case f.Unreachable == "":
		out = listingFindings(f, n)
	case f.Agent.NoReader:
		out = []Finding{{Severity: Warns, Code: NotReadByHost, Message: message.PreflightNoReader(), Remedy: message.RemedyJoinWithReader()}}
	default:
		out = []Finding{{Severity: Stops, Code: Unreachable, Message: f.UnreachableReason(), Remedy: message.RemedyCheckConnection()}}
	}
	out = append(out, agentFindings(&f)...)
	out = append(out, profileFindings(f, n.Others)...)
	if !f.ConfigRead() {
		return out
	}
	out = append(out, declaredEnforcer(f)...)
	out = append(out, settingFindings(f, n)...)
	out = append(out, meshFindings(f, n.Others)...)
	out = append(out, versionFindings(f)...)
	out = append(out, guardFindings(f, n)...)
	out = append(out, hostPodFindings(f, n)...)
	out = append(out, meshPodFindings(f, n)...)
	out = append(out, mtlsFindings(f, n)...)
	out = append(out, meshConfigFindings(f, n)...)
	out = append(out, undeclaredIstio(f)...)
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
	return out
}

var order = []Severity{Stops, Fails, Warns}

// Passes reports whether no finding prevents membership.
func Passes(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity != Warns })
}

// listingFindings checks that each kind was listed. A kind without a result counts as not listed.
func listingFindings(f Facts, n Needs) []Finding {
	var out []Finding
	for _, k := range n.Kinds {
		if k == federation.IstioPolicy && !(federation.Cluster{Engine: f.Engine, Istio: f.Istio.Declared}).NeedsIstioKind() {
			continue
		}
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
				Remedy: installHint(k, &f)})
		case Forbidden:
			out = append(out, Finding{Severity: Stops, Code: KindForbidden, Message: message.PreflightKindForbidden(name), Remedy: message.RemedyRejoinRole()})
		default:
			why := message.PreflightKindFailsSilently(name)
			if l.Detail != "" {
				why = message.PreflightKindFails(name, l.Detail)
			}
			out = append(out, Finding{Severity: Stops, Code: KindFails, Message: why, Remedy: message.RemedyMendServer()})
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

// installHint returns how a kind is installed in a cluster.
func installHint(k federation.Kind, f *Facts) message.Message {
	switch e := objectkind.EnforcerOf(k); {
	case e == v1alpha1.EnforcerIstio:
		return message.RemedyFixIstioKind()
	case e != "" && e != v1alpha1.EnforcerCilium:
		return message.RemedyInstallKind(k.TargetResource.GroupResource().String())
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
		out = append(
			out,
			Finding{Severity: Fails, Code: OldCilium, Message: message.PreflightOldCilium(f.Cilium.Version), Remedy: message.RemedyUpgradeCilium()},
		)
	}
	if old(f.Version, oldestServer) {
		out = append(out, Finding{Severity: Warns, Code: OldServer, Message: message.PreflightOldServer(f.Version), Remedy: message.RemedyUpgradeServer()})
	}
	if f.Istio.Declared != "" {
		c, err := mesh.ParseCapabilities(f.Istio.Declared)
		if err != nil {
			out = append(out, Finding{Severity: Fails, Code: IstioDeclaration, Message: message.PreflightIstioDeclaration(message.Of(err)),
				Remedy: message.RemedyCorrectAnnotation(federation.AnnotationIstio)})
		}
		for _, u := range c.Unused {
			out = append(out, Finding{Severity: Warns, Code: IstioWaypointUnused, Message: message.PreflightIstioWaypoint(u.Reason),
				Remedy: message.RemedyCorrectAnnotation(federation.AnnotationIstio)})
		}
	}
	if f.Istio.Served && f.Istio.Unread.IsZero() {
		out = append(out, istio(f.Istio))
	}
	return out
}

func istio(i Istio) Finding {
	if old(i.Version, oldestIstio) {
		return Finding{Severity: Warns, Code: IstioUnsupported, Message: message.PreflightOldIstio(i.Version), Remedy: message.RemedyUpgradeIstio()}
	}
	what := message.PreflightIstioSidecars
	if i.Ambient {
		what = message.PreflightIstioAmbient
	}
	return Finding{Severity: Warns, Code: IstioCapabilities, Message: what(i.Version), Remedy: message.RemedyNothing()}
}

// old returns false for a version that cannot be parsed, which may be a custom build.
func old(text string, oldest *version.Version) bool {
	v, err := version.ParseGeneric(text)
	return err == nil && v.LessThan(oldest)
}
