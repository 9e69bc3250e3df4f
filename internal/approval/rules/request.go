package rules

import (
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Request is the value of the variable request in expressions. The names of its fields are part of the API: docs/approvals.md lists
// them.
type Request struct {
	Kind        string        `cel:"kind"` // grant, extend, revoke, mode, onboard, offboard, class, approval-policy, workload, package, statement
	Requester   Person        `cel:"requester"`
	Application Entity        `cel:"application"`
	Resource    Entity        `cel:"resource"`
	Actions     []string      `cel:"actions"`
	Duration    time.Duration `cel:"duration"` // 0 means until revoked
	Total       time.Duration `cel:"total"`    // from the first grant to the end of this one; 0 means until revoked
	Permanent   bool          `cel:"permanent"`
	// Hours reports whether the access is restricted to recurring hours.
	Hours      bool     `cel:"hours"`
	BreakGlass bool     `cel:"breakGlass"`
	Enforcers  []string `cel:"enforcers"` // that enforce the resource
	Clients    int64    `cel:"clients"`   // that may reach the resource now
	FromMode   string   `cel:"fromMode"`  // the strictest one in effect in any member; empty if it is not protected
	ToMode     string   `cel:"toMode"`    // the weakest one that would be in effect in any member
	Opens      bool     `cel:"opens"`     // a member enforces less than before
	Closes     bool     `cel:"closes"`    // a member begins to enforce
	Adopt      bool     `cel:"adopt"`     // the resource's owners request access for clients that were observed
	Override   bool     `cel:"override"`  // it closes the resource without evidence enough
}

// Person is the requester.
type Person struct {
	ID     string   `cel:"id"`
	Groups []string `cel:"groups"`
}

// Entity is an application or a resource. All fields are empty if the request concerns none.
type Entity struct {
	ID          string   `cel:"id"`
	Name        string   `cel:"name"`
	Class       string   `cel:"class"` // of a resource
	Environment string   `cel:"environment"`
	Sensitivity string   `cel:"sensitivity"`
	Owners      []string `cel:"owners"` // "user:<id>" or "group:<id>"
}

// kinds contains the kinds of requests (approval.Kinds), with the entities whose owners can be approvers of each.
var kinds = map[string]struct{ application, resource bool }{
	"grant": {true, true}, "extend": {true, true}, "revoke": {true, true},
	"mode": {false, true}, "onboard": {false, true}, "offboard": {false, true},
	"class": {false, false}, "approval-policy": {false, false}, "workload": {true, true}, "package": {false, true}, "statement": {false, true},
}

// HasKind reports whether approval policies can be evaluated for a kind of request.
func HasKind(kind string) bool {
	_, ok := kinds[kind]
	return ok
}

// canBe reports whether an approver expression can select a person for a kind of request.
func canBe(a v1alpha1.Approver, kind string) bool {
	switch a {
	case "resource.owner":
		return kinds[kind].resource
	case "application.owner":
		return kinds[kind].application
	}
	return true
}
