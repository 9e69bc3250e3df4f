package approval

import (
	"context"
	"encoding/json"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Classes answers what can be asked for; false: no class covers the name. The errors say that the host cluster is not
// known yet.
type Classes interface {
	// ResourceActions are the actions of the resource's class.
	ResourceActions(resource string) ([]string, bool, error)
	// SubjectCovered tells whether a subject class covers the application.
	SubjectCovered(application string) (bool, error)
}

// Host is what the Service asks about the host cluster; it answers from a cache. The errors say that the host cluster is
// not known yet.
type Host interface {
	Classes
	// Facts about a resource, by its name.
	Facts(resource string) (Facts, error)
	// ApprovalPolicies that there are, in no order.
	ApprovalPolicies() ([]*v1alpha1.ApprovalPolicy, error)
	// Object of one of the kinds that a Change can be about; false: there is none.
	Object(kind, name string) (Object, bool, error)
	// DryRun asks the API server what a change would make of its object, and returns the spec with its defaults; of a
	// deletion nothing. A *RefusedError says why it would not.
	DryRun(ctx context.Context, c Change) (json.RawMessage, error)
	// Compiled are the lines that an item brings to the dataplanes of every enforcer. Those of a statement are compiled as
	// if its resource were in Enforce and had no other statement; those of a change of a ProtectedResource or of a class
	// from the host cluster's state with and without the change.
	Compiled(it Item) ([]string, error)
}

// Facts about a resource that rules look at.
type Facts struct {
	Class      string                      // empty: no class covers it
	Enforcers  []string                    // of the class
	Clients    int                         // subjects that may reach it now
	Members    []string                    // where the class places it, sorted; none: not known
	Protection *v1alpha1.ProtectedResource // nil: it is not onboarded
}

// Object of the host cluster.
type Object struct {
	ResourceVersion string
	Spec            json.RawMessage
}

// ObjectSeen is what the host cluster says of an object that was changed.
type ObjectSeen struct {
	Exists               bool
	UID                  string
	Generation, Observed int64 // Observed: the generation that the status is about
	Spec                 json.RawMessage
	Ready                bool   // the adapter did what the object says, everywhere
	Refused              string // why the adapter does not accept it
	Waits                string // what it waits for
	// Revision and Clusters are what the status of a ProtectedResource says about its unit and about each member.
	Revision string
	Clusters []v1alpha1.ClusterState
}

// ObjectWriter changes objects of the host cluster. Apply reads the object, checks that it is what the change is based
// on, calls the check, and writes; it is idempotent. A *RefusedError says that trying again will not help.
type ObjectWriter interface {
	Apply(ctx context.Context, c Change, check Check) (Written, error)
}
