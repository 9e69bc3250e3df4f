package policy

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// Ref names a statement.
type Ref struct {
	Policy string `json:"policy"`
	SID    string `json:"sid"`
}

// String is "<policy>/<sid>".
func (r Ref) String() string { return r.Policy + "/" + r.SID }

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.SID, b.SID))
}

// Effect is that of a statement.
type Effect = v1alpha1.Effect

const (
	Allow = v1alpha1.EffectAllow
	Deny  = v1alpha1.EffectDeny
)

// Word is the outcome of a decision. The same words are used in the API, the CLI, the flow store and the UI.
type Word string

const (
	// Allowed: a counting allow matched, or the class opens the ports that no action names.
	Allowed Word = "allowed"
	// Denied: a counting deny matched.
	Denied Word = "denied"
	// DefaultDenied: nothing matched, and some resource enforces.
	DefaultDenied Word = "default-denied"
	// Audited: let through, but it would be denied or default-denied if its Audit resources were in Enforce.
	Audited Word = "audited"
	// Unmanaged: let through, and no resource is in Audit or Enforce.
	Unmanaged Word = "unmanaged"
)

// Input is everything that a Snapshot is built from. The Snapshot keeps pointers into it, so the objects must not be
// changed afterwards; it changes nothing itself.
type Input struct {
	Policies        []*v1alpha1.AccessControlPolicy
	ResourceClasses []*v1alpha1.ResourceClass
	SubjectClasses  []*v1alpha1.SubjectClass
	Resources       []*v1alpha1.ProtectedResource
	Workloads       []*v1alpha1.ExternalWorkload
}

// Query is one connection, or one request.
type Query struct {
	// Subjects are the source's names, as SubjectsOf gives them; none for nodes, host-network pods and other sources
	// that only the subject "*" matches.
	Subjects []string
	// Resources are the destination's names, as ResourcesOf gives them.
	Resources []string
	// Source is the address of a source outside the fleet. It must be left zero for pods and nodes, whose addresses
	// no address range matches. Its ExternalWorkload's subject is found here and need not be in Subjects.
	Source netip.Addr
	// Cluster is the destination's member cluster; "" asks with the resources' base modes.
	Cluster string
	// Protocol may be any text, for example "ICMP"; only those of the API are in actions.
	Protocol v1alpha1.Protocol
	Port     uint16
	// Method and Path of a request; "" is not known.
	Method, Path string
	At           time.Time
}

// Decision is the answer to a Query.
type Decision struct {
	Word Word `json:"word"`
	// Reason is a sentence for people; the same for the same case.
	Reason string `json:"reason"`
	// Statements that decided, sorted; none when no statement did.
	Statements []Ref `json:"statements,omitempty"`
}

// Grant is what one statement gives or takes between one subject and one resource, as written.
type Grant struct {
	Ref      Ref
	Effect   Effect
	Subject  string
	Resource string
	// Actions of the statement that the resource's class has, by name, sorted; as written for a wildcard resource that
	// no class covers.
	Actions []string
	// NotBefore and NotAfter are zero when the statement has no such bound.
	NotBefore, NotAfter time.Time
	// Counting tells whether it counts at the instant of the question, in the base mode of the resource.
	Counting bool
	// Wildcard tells whether Resource is a wildcard.
	Wildcard bool
}

// Refusal is a statement that is not pushed to any member, or not as part of one resource's unit.
type Refusal struct {
	Ref Ref
	// Reason is one of the Refused constants of the API.
	Reason string
	// Message names the offending part and says what to do.
	Message string
	// Resource is the unit that lacks the statement; "": all of them.
	Resource string
}

func compareRefusals(a, b Refusal) int {
	return cmp.Or(compareRefs(a.Ref, b.Ref), cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Message, b.Message))
}

// Problem is what is wrong with an object other than a policy.
type Problem struct {
	// Kind and Name of the object.
	Kind, Name string
	// Reason is one of the Reason constants of the API for the condition Accepted.
	Reason  string
	Message string
	// LeftOut tells that the object takes no part in decisions and compilation; otherwise the message is a warning.
	LeftOut bool
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
}

// SubjectSelector selects pods by one label.
type SubjectSelector struct {
	LabelKey string
	// Values are sorted and never empty.
	Values []string
}

// Rule gives the ports of one or several actions to its subjects, or takes them.
type Rule struct {
	Effect Effect
	// Subjects are sorted by label key and never empty: a rule without peers would match anyone.
	Subjects []SubjectSelector
	// Ports are sorted and never empty, their protocol always set.
	Ports []v1alpha1.Port
	// HTTP limits the rule to requests; empty: every connection.
	HTTP []v1alpha1.HTTPMatch
	// From are the statements it came from, sorted.
	From []Ref
}

// Unit is everything that is pushed for one resource. The same Snapshot and instant give the same bytes, in whatever
// order the input came.
type Unit struct {
	// ID is a DNS label of at most 28 characters, made from the resource's name.
	ID       string
	Resource string
	// Class is the ResourceClass.
	Class string
	// LabelKey and LabelValue select the resource's pods.
	LabelKey, LabelValue string
	// Mode is the base mode at the instant of compilation. It is Observe only when ClusterModes says more for a member.
	// A member whose mode is Observe gets no object of the unit.
	Mode v1alpha1.Mode
	// ClusterModes holds the members whose mode differs from Mode.
	ClusterModes map[string]v1alpha1.Mode
	// Rules in a fixed order; none: nobody may connect, which closes the resource in Enforce.
	Rules []Rule
	// OtherPorts is that of the class, and Deny while an action of the class is unusable.
	OtherPorts v1alpha1.OtherPorts
	// OpenPorts are the ports in none of the class's actions; set only when OtherPorts is Allow.
	OpenPorts []v1alpha1.Port
	// ForeignKeys are the label keys of all other resource classes, sorted: a workload that carries one of them does
	// not get OpenPorts. Set only when OtherPorts is Allow.
	ForeignKeys []string
	Placement   v1alpha1.Placement
	Enforcers   []v1alpha1.EnforcerName
	// Refused are the statements in force that cover the resource and are not in Rules, sorted: those of
	// Snapshot.Refusals, and the allows that a refused deny takes out of this unit.
	Refused []Refusal
	// From are the statements in Rules, sorted.
	From []Ref
	// Statements are what Rules came from, and the allows of wildcards, by ref. Nil unless an enforcer of the class needs
	// them: see WithStatements.
	Statements []UnitStatement `json:",omitempty"`
}
