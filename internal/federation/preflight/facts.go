package preflight

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/message"
)

// Facts are the properties that were read from one cluster.
type Facts struct {
	Member string
	// Version is the version of its API server, as v1.36.3.
	Version string
	// Unreachable is the reason why the API server did not answer or rejected the credentials, or "".
	Unreachable string
	// OnlyPusherFails reports whether Unreachable concerns only the pusher, and everything but Kinds was read with the
	// reader's credentials.
	OnlyPusherFails bool
	// Kinds contains the result of the pusher's LIST request for each needed kind.
	Kinds  []Listing
	Cilium Cilium
	// Mesh is the cluster mesh that the member declares; see federation.AnnotationMesh.
	Mesh string
	// Enforcer is what the member declares by federation.AnnotationEnforcer. "" means Cilium.
	Enforcer string
	Istio    Istio
	Guard    Guard
	// Engine is the engine of the member, whose user the guard has to admit. "" means KubeFed.
	Engine federation.Engine
	// Agent is what is known about the work agent of a member whose engine pulls.
	Agent Agent
	// Profile is what the inventory of a cluster manager says about the member.
	Profile Profile
	// HostPods are the pods that use the network of their node.
	HostPods LabeledPods
	MeshPods
	// Mark is the mark of a downgrade, or nil. MarkUnread is the reason why it is not known, or zero.
	Mark       *guard.DowngradeMark
	MarkUnread message.Message
}

// Agent is what is known about the work agent of a member.
type Agent struct {
	// Silent reports whether the agent has not answered since SilentSince.
	Silent      bool
	SilentSince time.Time
	// Unread is why this is not known, or "".
	Unread string
	// NoReader reports whether the host has no token of the member, so that nothing but the agent's reports is read.
	NoReader bool
}

// ConfigRead reports whether the member's configuration was read, at least in part. Each part reports what could not be read.
func (f *Facts) ConfigRead() bool { return f.Unreachable == "" || f.OnlyPusherFails }

// UnreachableReason returns the reason why the member is unreachable, if it is.
func (f *Facts) UnreachableReason() message.Message {
	return message.PreflightUnreachable(apiText(f.Unreachable))
}

// Guard contains the guard policies that the member has.
type Guard struct {
	Objects []*unstructured.Unstructured
	// Unread is the reason why they are not known, or zero.
	Unread message.Message
}

// Listing is the result of a LIST request for one kind.
type Listing struct {
	Resource schema.GroupVersionResource
	Result   Result
	// Detail is the API server's message if Result is ListFails.
	Detail string
}

// Result is the result of a LIST request.
type Result string

// Results of a LIST request.
const (
	// Listed means that the objects were listed.
	Listed Result = "Listed"
	// NotServed means that the API server does not serve the kind.
	NotServed Result = "NotServed"
	// Forbidden means that the user may not list the kind.
	Forbidden Result = "Forbidden"
	// ListFails means that the request failed for another reason, which is in Listing.Detail.
	ListFails Result = "Fails"
	// NotDecided means that no result was read. It counts as not listed.
	NotDecided Result = "NotDecided"
)

// Istio contains the properties of the cluster's Istio.
type Istio struct {
	// Served reports whether the API server serves AuthorizationPolicies.
	Served bool
	// Version of istiod, and whether ambient's ztunnel runs; both unknown when Unread.
	Version string
	Ambient bool
	Unread  message.Message
	// GatewayAPI reports whether the API server serves the Gateways of the Gateway API, which waypoints are. It is unknown when the
	// kinds could not be discovered, so that Served is false and Unread is set.
	GatewayAPI bool
	// Declared is the member's declaration in its registration, or "".
	Declared string
	MTLS     MTLS
	// Config is what the mesh configurations of its istiods contain.
	Config MeshConfig
	// PoliciesUnread is the reason why the policies in the namespace to which ACP distributes its own cannot be read, or zero.
	PoliciesUnread message.Message
}

// Needs are the requirements for a member.
type Needs struct {
	// Kinds are the kinds that are pushed to the member.
	Kinds []federation.Kind
	// Keys are the labels by which classes select pods.
	Keys []Key
	// Others are the facts of the other members.
	Others []Facts
}

// Key is a label by which a class identifies pods.
type Key struct {
	Class, Label string
	// ServiceAccount is the template of the service accounts by which Istio identifies the class, if it has one.
	ServiceAccount string
	// GuardedOnly is set where no class of Cilium's uses the label: it is guarded, and Cilium need not know it.
	GuardedOnly bool
	// Istio is set for the label of a class of resources that Istio enforces.
	Istio bool
}
