package approval

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Limits of a request. api/openapi.yaml has the same.
const (
	// MinDuration is the shortest duration of access that can be requested.
	MinDuration = 5 * time.Minute
	// MaxDuration is the longest duration of access that can be requested.
	MaxDuration = 366 * 24 * time.Hour
	// MaxText is the maximum length of reasons and comments, in characters.
	MaxText = 2000
	// MaxItems is the maximum number of items of one request.
	MaxItems = 50
)

// Request is a request for a ticket. Applications and resources are given by their catalog ids.
type Request struct {
	Kind       Kind // KindGrant if empty
	Items      []RequestItem
	Reason     string
	BreakGlass bool
	// Adopt marks a request by an owner of the resources for clients that were seen. The requester need not own their
	// applications.
	Adopt bool
	// Override is a security administrator's reason to close a resource without enough evidence; empty for no override.
	Override string
	// Package is the access package that is requested as a whole. The only item names the application, and perhaps a shorter duration.
	Package        *PackageChoice
	IdempotencyKey string
	// holderUpdate reports whether an application is given a version of a package that it holds; see PlanHolderRequest.
	holderUpdate bool
}

// RequestItem is one item of a request. The kind determines which fields are set.
type RequestItem struct {
	Application, Resource string
	Actions               []string
	Duration              time.Duration         // 0 means until revoked
	Hours                 *v1alpha1.WeeklyHours // nil means at any hour
	Target                *Target               // extend, revoke
	Mode                  v1alpha1.Mode         // mode, onboard
	ClusterModes          map[string]v1alpha1.Mode
	Object                *ObjectChange   // class, approval-policy
	Workload              *Registration   // workload
	Package               *PackageDraft   // package
	Scope                 *StatementScope // statement; the actions, the duration and the hours are those of the item
	// part is set for the items of an access package.
	part *PackageRef
}

// Registration describes a client outside of the fleet that is to be registered.
type Registration struct {
	ID, Description string
	Addresses       []string
}

// ObjectChange is the wanted state of an object of the host cluster.
type ObjectChange struct {
	Kind, Name, Verb string
	Spec             json.RawMessage
}

// Plan is a checked request with the items that its ticket would have.
type Plan struct {
	Kind  Kind
	Items []PlanItem
}

// PlanItem is one item of a plan.
type PlanItem struct {
	Item
	Duplicate int64   // the ticket under way about the same; 0 if there is none
	Covered   *Target // the grant in force that already gives the access, so that the item is an extension
	// Err is the reason why this item cannot be requested; it does not concern the other items. If only the evidence or the guard refuses it, Item
	// contains the change.
	Err error
}

// same reports whether a ticket is about the same request.
func (t *Ticket) same(d Draft) bool {
	return t.Kind == d.Kind && t.Reason == d.Reason && t.BreakGlass == d.BreakGlass && slices.EqualFunc(t.Items, d.Items, func(a, b Item) bool {
		return a.ApplicationName == b.ApplicationName && a.ResourceName == b.ResourceName && slices.Equal(a.Actions, b.Actions) &&
			a.Duration == b.Duration && equality.Semantic.DeepEqual(a.Hours, b.Hours) && a.Adopt == b.Adopt && a.Override.because() == b.Override.because() &&
			sameTarget(a.Target, b.Target) && sameChange(a.Change, b.Change) && samePackage(a.Package, b.Package) && a.Scope.equal(b.Scope)
	})
}

// samePackage reports whether two items are a part of the same version of a package, or of none.
func samePackage(a, b *PackageRef) bool {
	return a == b || a != nil && b != nil && a.Name == b.Name && a.Version == b.Version && a.Digest == b.Digest
}

func sameTarget(a, b *Target) bool { return a == b || a != nil && b != nil && *a == *b }

func sameChange(a, b *Change) bool {
	return a == b || a != nil && b != nil && a.Kind == b.Kind && a.Name == b.Name && a.Verb == b.Verb && string(a.After) == string(b.After) &&
		a.Description == b.Description
}
