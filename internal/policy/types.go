package policy

import (
	"cmp"
	"net/netip"
	"strings"
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
	if c := strings.Compare(a.Policy, b.Policy); c != 0 {
		return c
	}
	return strings.Compare(a.SID, b.SID)
}

// Effect is that of a statement.
type Effect = v1alpha1.Effect

const (
	Allow = v1alpha1.EffectAllow
	Deny  = v1alpha1.EffectDeny
)

// Verdict is the outcome of a decision. The same words are used in the API, the CLI, the flow store and the UI.
type Verdict string

const (
	// Allowed: a counting allow matched, or the class opens the ports that no action names.
	Allowed Verdict = "allowed"
	// Denied: a counting deny matched.
	Denied Verdict = "denied"
	// DefaultDenied: nothing matched, and some resource enforces.
	DefaultDenied Verdict = "default-denied"
	// Audited: let through, but it would be denied or default-denied if its Audit resources were in Enforce.
	Audited Verdict = "audited"
	// Unmanaged: let through, and no resource is in Audit or Enforce.
	Unmanaged Verdict = "unmanaged"
)

// LetsThrough tells whether the connection is let through now.
func (w Verdict) LetsThrough() bool { return w != Denied && w != DefaultDenied }

// Input is everything that a Snapshot is built from. The Snapshot keeps pointers into it, so the objects must not be
// changed afterwards; it changes nothing itself.
type Input struct {
	Policies        []*v1alpha1.AccessControlPolicy
	ResourceClasses []*v1alpha1.ResourceClass
	SubjectClasses  []*v1alpha1.SubjectClass
	Resources       []*v1alpha1.ProtectedResource
	Workloads       []*v1alpha1.ExternalWorkload
	// KnownNames are exact names of applications and resources seen in the members' identities. Prefixes such as
	// app/team-* stand for those of them that they cover, beside the names of Resources and the subjects of Workloads.
	KnownNames []string
	// Lacks is what the distributor does not bring to the members. What would need it is refused.
	Lacks Lacks
	// NamesUnknown tells that KnownNames are not what the members have, as in a program that does not read them. A decision
	// about what the members have then takes a prefix as every name that it covers.
	NamesUnknown bool `json:",omitempty"`
	// Members is how many clusters the fleet has, for estimates only: in each, a subject has an identity of its own.
	// Less than 1 is taken as 1, and less than there are Clusters as their number.
	Members int
	// Clusters are the members of the fleet; nil: not known. Where a class is not placed its resources are as if they were in
	// Observe, and its wildcards say nothing. What is known of their dataplanes decides how much fits into a unit, and what a member
	// cannot express.
	Clusters []Cluster `json:",omitempty"`
}

// Lacks names what a distributor cannot do.
type Lacks struct {
	// Groups: it brings no groups of external workloads.
	Groups bool
	// Names: it does not know the names that a prefix stands for.
	Names bool
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
	// Action tells, in place of Method and Path, which action of requests a request is of; NoAction: none. "" is not known.
	Action string
	At     time.Time
}

// NoAction is the Action of a request that no action of requests matches. It is no action's name.
const NoAction = "-"

// Decision is the answer to a Query.
type Decision struct {
	Verdict Verdict `json:"word"`
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
	// Values are sorted, and empty only with Any.
	Values []string
	// Any selects every pod that carries the label, whatever its value.
	Any bool
}

// Rule gives the ports of one or several actions to its peers, or takes them. It has at least one kind of peer: without
// any it would match everyone. The kinds add up.
type Rule struct {
	Effect Effect
	// Anyone is every source: pods, nodes, and what is outside the fleet. The other peers are then empty.
	Anyone bool
	// Subjects are sorted by label key.
	Subjects []SubjectSelector
	// Prefixes are addresses outside the fleet, sorted and distinct.
	Prefixes []netip.Prefix
	// External are the IDs of the ExternalGroups of subjects in Subjects, sorted.
	External []string
	// ExternalClasses are the ClassIDs of the ExternalGroups that a selector with Any stands for, sorted.
	ExternalClasses []string
	// Ports are sorted and never empty, their protocol always set.
	Ports []v1alpha1.Port
	// HTTP limits the rule to requests; empty: every connection.
	HTTP []v1alpha1.HTTPMatch
	// From are the statements it came from, sorted.
	From []Ref
}

// HasPeers tells whether the rule matches anything. A rule without peers must never reach a dataplane.
func (r *Rule) HasPeers() bool {
	return r.Anyone || len(r.Subjects) > 0 || len(r.Prefixes) > 0 || len(r.External) > 0 || len(r.ExternalClasses) > 0
}

// Unit is everything that is pushed for one resource, or for one wildcard of resources. The same Snapshot and instant
// give the same bytes, in whatever order the input came.
type Unit struct {
	// ID is a DNS label of at most 28 characters, made from the resource's name.
	ID string
	// Resource is an exact name, or the wildcard of Wildcard units, narrowed to its class.
	Resource string
	// Class is the ResourceClass.
	Class string
	// Wildcard units hold allows only, for workloads in any mode, and must never close anything.
	Wildcard bool
	// LabelKey and LabelValue select the resource's pods. In Wildcard units LabelValues do, or, if there are none, the
	// presence of LabelKey.
	LabelKey, LabelValue string
	LabelValues          []string
	// Mode is the base mode at the instant of compilation. It is Observe only when ClusterModes says more for a member.
	// A member whose mode is Observe gets no object of the unit. Wildcard units are always in Audit.
	Mode v1alpha1.Mode
	// ClusterModes holds the members whose mode differs from Mode.
	ClusterModes map[string]v1alpha1.Mode
	// Rules in a fixed order; none: nobody may connect, which closes the resource in Enforce.
	Rules []Rule
	// Inherited are the rules of the Wildcard units that cover the resource, for dataplanes without wildcards.
	Inherited []Rule
	// OtherPorts is that of the class, and Deny while an action of the class is unusable.
	OtherPorts v1alpha1.OtherPorts
	// OpenPorts are the ports in none of the class's actions; set only when OtherPorts is Allow.
	OpenPorts []v1alpha1.Port
	// ForeignKeys are the label keys of all other resource classes, sorted: a workload that carries one of them does
	// not get OpenPorts. Set only when OtherPorts is Allow.
	ForeignKeys []string
	Placement   v1alpha1.Placement
	Enforcers   []v1alpha1.EnforcerName
	// Entries is the estimate of policy-map entries that Rules and Inherited need on each of the workloads.
	Entries int
	// Overfull are the members in which the rules do not fit into a workload's policy map although the unit holds no allow of its
	// own any more, sorted; "" stands for every member. Denies are never left out, so some of the rules are not in force there.
	Overfull []string `json:",omitempty"`
	// Refused are the statements in force that cover the resource and are not in Rules, sorted: those of
	// Snapshot.Refusals, the allows that a refused deny takes out of this unit, and those that do not fit.
	Refused []Refusal
	// Warnings are sentences about what will soon be a problem.
	Warnings []string
	// From are the statements in Rules, sorted.
	From []Ref
	// Statements are what Rules came from, and the allows of wildcards, by ref. Nil unless an enforcer of the class needs
	// them: see WithStatements.
	Statements []UnitStatement `json:",omitempty"`
}

// ExternalGroup holds the addresses of one subject's ExternalWorkloads.
type ExternalGroup struct {
	// ID is a DNS label of at most 28 characters, made from the subject's name.
	ID      string
	Subject string
	// Class is the SubjectClass, ClassID a label value that stands for it.
	Class, ClassID string
	// Prefixes are those of the subject alone, without longer ones of other subjects; sorted and disjoint.
	Prefixes []netip.Prefix
	// Contested are those that others have, too: for denies only.
	Contested []netip.Prefix
}
