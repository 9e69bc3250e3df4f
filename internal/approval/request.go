package approval

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Limits of a request, as api/openapi.yaml states them.
const (
	MinDuration = 5 * time.Minute
	MaxDuration = 366 * 24 * time.Hour
	// MaxText bounds reasons and comments, in characters.
	MaxText = 2000
	// MaxItems of one request.
	MaxItems = 50
)

// Request is what somebody asks for, by catalog ids.
type Request struct {
	Kind       Kind // empty: grant
	Items      []RequestItem
	Reason     string
	BreakGlass bool
	// Adopt: an owner of the resources asks that clients that were seen may stay; their applications need not be his.
	Adopt bool
	// Override is why a security administrator closes a resource without evidence enough; empty: he does not.
	Override       string
	IdempotencyKey string
}

// RequestItem is one thing that is asked for; which fields, the kind says.
type RequestItem struct {
	Application, Resource string
	Actions               []string
	Duration              time.Duration // 0: until revoked
	Target                *Target       // extend, revoke
	Mode                  v1alpha1.Mode // mode, onboard
	ClusterModes          map[string]v1alpha1.Mode
	Object                *ObjectChange // class, approval-policy
}

// ObjectChange is what an object of the host cluster should be.
type ObjectChange struct {
	Kind, Name, Verb string
	Spec             json.RawMessage
}

// Plan is a checked request: what a ticket for it would be.
type Plan struct {
	Kind  Kind
	Items []PlanItem
}

// PlanItem is one item of a plan.
type PlanItem struct {
	Item
	Duplicate int64   // a ticket under way about the same; 0: none
	Covered   *Target // the grant in force that gives it already, so that it is an extension
	// Err is why this item cannot be asked for; the others may be. Of what only the evidence or the guard refuses, Item says
	// what it would change.
	Err error
}

// same tells whether a ticket is about this request.
func (t *Ticket) same(d Draft) bool {
	return t.Kind == d.Kind && t.Reason == d.Reason && t.BreakGlass == d.BreakGlass && slices.EqualFunc(t.Items, d.Items, func(a, b Item) bool {
		return a.ApplicationName == b.ApplicationName && a.ResourceName == b.ResourceName && slices.Equal(a.Actions, b.Actions) &&
			a.Duration == b.Duration && a.Adopt == b.Adopt && a.Override.because() == b.Override.because() && sameTarget(a.Target, b.Target) && sameChange(a.Change, b.Change)
	})
}

func sameTarget(a, b *Target) bool { return a == b || a != nil && b != nil && *a == *b }

func sameChange(a, b *Change) bool {
	return a == b || a != nil && b != nil && a.Kind == b.Kind && a.Name == b.Name && a.Verb == b.Verb && string(a.After) == string(b.After)
}
