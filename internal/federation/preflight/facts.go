package preflight

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
)

// Facts are what was read from one cluster.
type Facts struct {
	Member string
	// Version of its API server, as v1.36.3.
	Version string
	// Silent says why the API server did not answer, or did not take the credentials; "": it did.
	Silent string
	// Kinds tells of each needed kind what the pusher's LIST led to.
	Kinds  []Listing
	Cilium Cilium
	// Mesh is what the member declares as its cluster mesh, see federation.AnnotationMesh.
	Mesh  string
	Istio Istio
	Guard Guard
	// HostPods are pods of the classes that no policy selects. Its zero value is that none were found, or asked for.
	HostPods HostPods
	// Mark is that of a downgrade; nil: there is none. MarkUnread says why it is not known; "": it is.
	Mark       *guard.Downgrade
	MarkUnread string
}

// Guard is what the member has of the policies that guard the managed objects.
type Guard struct {
	Objects []*unstructured.Unstructured
	// Unread says why they are not known; "": they are.
	Unread string
}

// Listing is what a LIST of one kind led to.
type Listing struct {
	Resource schema.GroupVersionResource
	Result   Result
	// Detail is the API server's word when Result is ListFails.
	Detail string
}

// Result of a LIST.
type Result string

// Results.
const (
	Listed     Result = "Listed"
	NotServed  Result = "NotServed"
	Forbidden  Result = "Forbidden"
	ListFails  Result = "Fails"
	NotDecided Result = "NotDecided"
)

// Istio is what the cluster has of Istio.
type Istio struct {
	// Served: the kind AuthorizationPolicy is there.
	Served bool
	// Version of istiod, and whether ambient's ztunnel runs; both unknown when Unread.
	Version string
	Ambient bool
	Unread  string
	// Declared is what the member declares, as its registration has it; "": nothing.
	Declared string
}

// Needs are what a member has to have.
type Needs struct {
	// Kinds that are pushed.
	Kinds []federation.Kind
	// Keys are the labels that classes select pods by.
	Keys []Key
	// Others are the facts of the other members.
	Others []Facts
}

// Key is what a class identifies pods by.
type Key struct {
	Class, Label string
	// ServiceAccount is the template of the service accounts that Istio identifies the class by, if it has one.
	ServiceAccount string
	// GuardedOnly is set where no class of Cilium's uses the label: it is guarded, and Cilium need not know it.
	GuardedOnly bool
}
