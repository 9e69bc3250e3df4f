package approval

import (
	"context"
	"encoding/json"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/message"
)

// Classes looks up what can be requested. The second result is false if no class covers the name. The errors mean that the
// host cluster is not known yet.
type Classes interface {
	// ResourceActions returns the actions of the resource's class.
	ResourceActions(resource string) ([]string, bool, error)
	// SubjectCovered reports whether a subject class covers the application.
	SubjectCovered(application string) (bool, error)
}

// Host reads the host cluster for the Service, from a cache. The errors mean that the host cluster is not known yet.
type Host interface {
	Classes
	// Facts returns the facts about a resource, which is given by its name.
	Facts(resource string) (Facts, error)
	// ApprovalPolicies returns all approval policies, in no order.
	ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error)
	// Organizations returns all organizations, in no order.
	Organizations() ([]*v1alpha1.Organization, error)
	// Object returns an object of one of the kinds of a Change; false if it does not exist.
	Object(kind, name string) (Object, bool, error)
	// DryRun makes a dry run of a change on the API server, and returns the spec with its defaults; nothing for a deletion.
	// A *RefusedError says why the API server refuses it.
	DryRun(ctx context.Context, c Change) (json.RawMessage, error)
	// Compiled returns the lines that describe what an item adds to the policies of every enforcer. The lines of a statement
	// are compiled as if its resource were in Enforce and had no other statement; those of a change of a ProtectedResource
	// or a class from the host cluster's state with and without the change.
	Compiled(it Item) ([]string, error)
	// Reached returns the resources that an application has access to.
	Reached(application string) (Reached, error)
	// Affected returns the names of the resources that a change of a class affects, sorted: those whose units differ with and without
	// it and, if it changes where or by what the class is enforced, all that are onboarded.
	Affected(c Change) ([]string, error)
}

// Reached are the resources that an application may reach by allows that have not ended, by its name or by a wildcard.
// Allows for anyone are left out, because a further address does not change them.
type Reached struct {
	Resources []string // exact names, sorted
	Wildcards []string // wildcards of resources as they are written, sorted
}

// Registrations checks registrations of clients outside the fleet.
type Registrations interface {
	// Propose returns the normal form of the workload that a person requests to register, or an error if even an approval would
	// not permit it: the person does not own the application, or another application has the addresses. The error is
	// workloads.ErrUnknown while the host cluster is not known.
	Propose(person string, w workloads.Workload) (workloads.Workload, error)
}

// Facts are the facts about a resource that approval policies use.
type Facts struct {
	Class string // empty if no class covers it
	// ClassObject is the class; nil if no class covers it. It must not be changed.
	ClassObject *v1alpha1.ResourceClass
	Enforcers   []string                    // of the class
	Clients     int                         // number of subjects that may reach it now
	Members     []string                    // where the class places it, sorted; empty if not known
	Protection  *v1alpha1.ProtectedResource // nil if it is not onboarded
}

// Object is an object of the host cluster.
type Object struct {
	ResourceVersion string
	Spec            json.RawMessage
}

// ObjectSeen is the observed state of an object that was changed.
type ObjectSeen struct {
	Exists               bool
	UID                  string
	Generation, Observed int64 // Observed: the generation that the status is about
	Spec                 json.RawMessage
	Ready                bool            // the adapter has applied the object in every member
	Refused              message.Message // why the adapter refuses it
	Waits                message.Message // what it waits for
	// Revision and Clusters are taken from the status of a ProtectedResource: its unit, and each member.
	Revision string
	Clusters []v1alpha1.ClusterState
	// Unrealized is the number of members that are not in the required state, also those that Clusters does not list.
	Unrealized int
}

// ObjectWriter changes objects of the host cluster. Apply reads the object, verifies that the change is based on it, calls
// the check, and writes. It is idempotent. A *RefusedError means that a retry will not help.
type ObjectWriter interface {
	Apply(ctx context.Context, c Change, check Check) (Written, error)
}
