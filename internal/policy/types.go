package policy

import (
	"cmp"
	"net/netip"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// Ref identifies a statement.
type Ref struct {
	Policy string `json:"policy"`
	SID    string `json:"sid"`
}

// String returns "<policy>/<sid>".
func (r Ref) String() string { return r.Policy + "/" + r.SID }

// Compare orders refs by policy, then by sid. It returns a negative number, 0, or a positive one, as cmp.Compare.
func (r Ref) Compare(o Ref) int {
	if c := strings.Compare(r.Policy, o.Policy); c != 0 {
		return c
	}
	return strings.Compare(r.SID, o.SID)
}

// Effect is the effect of a statement.
type Effect = v1alpha1.Effect

const (
	// Allow is the effect of a statement that grants actions.
	Allow = v1alpha1.EffectAllow
	// Deny is the effect of a statement that refuses actions. It takes precedence over Allow.
	Deny = v1alpha1.EffectDeny
)

// Verdict is the outcome of a decision. The API, the CLI, the flow store and the UI use the same values.
type Verdict string

const (
	// Allowed means that an allow that counts matched, or that the class opens the ports that no action names.
	Allowed Verdict = "allowed"
	// Denied means that a deny that counts matched.
	Denied Verdict = "denied"
	// DefaultDenied means that no statement matched, and that at least one resource is in Enforce.
	DefaultDenied Verdict = "default-denied"
	// Audited means that the connection is let through, but would be denied or default-denied if its resources in Audit
	// were in Enforce.
	Audited Verdict = "audited"
	// Unmanaged means that the connection is let through, and that no resource is in Audit or Enforce.
	Unmanaged Verdict = "unmanaged"
)

// LetsThrough reports whether the connection is let through now.
func (v Verdict) LetsThrough() bool { return v != Denied && v != DefaultDenied }

// Input is everything that a Snapshot is built from. The Snapshot keeps pointers into it and does not change it; the
// objects must not be changed afterwards.
type Input struct {
	Policies        []*v1alpha1.AccessControlPolicy
	ResourceClasses []*v1alpha1.ResourceClass
	SubjectClasses  []*v1alpha1.SubjectClass
	Resources       []*v1alpha1.ProtectedResource
	Workloads       []*v1alpha1.ExternalWorkload
	// KnownNames are exact names of applications and resources seen in the members' identities. A prefix such as
	// app/team-* stands for the known names that it covers: those in KnownNames, the names of Resources and the
	// subjects of Workloads.
	KnownNames []string
	// Unsupported lists what cannot be pushed to the members. Statements that need it are refused.
	Unsupported Unsupported
	// NamesUnknown reports whether KnownNames are not the names in the members, for example in a program that does not
	// read them. Decisions about what the members have then treat a prefix as every name that it covers.
	NamesUnknown bool `json:",omitempty"`
	// Members is the number of clusters in the fleet. It is used for estimates only: a subject has one identity in each
	// cluster. The larger of Members, len(Clusters) and 1 is used.
	Members int
	// Clusters are the members of the fleet, or nil if they are not known. In a member where a class is not placed, its
	// resources are treated as in Observe, and wildcards do not apply to them. The reported limits of the members'
	// dataplanes determine how much fits into a unit, and which statements a member cannot express.
	Clusters []Cluster `json:",omitempty"`
	// Translators determine what the enforcers other than Cilium leave out of units. Decisions about what the members
	// have treat a class without a translator like one that Cilium enforces.
	Translators map[v1alpha1.EnforcerName]Translator `json:"-"`
}

// Unsupported names the features that the distributor of the policies lacks.
type Unsupported struct {
	// Groups reports whether groups of external workloads are not pushed.
	Groups bool
	// Names reports whether the names that a prefix stands for are not known.
	Names bool
}

// Query describes one connection, or one request.
type Query struct {
	// Subjects are the source's names as returned by SubjectsOf. The list is empty for nodes, host-network pods and
	// other sources that only the subject "*" matches.
	Subjects []string
	// Resources are the destination's names as returned by ResourcesOf.
	Resources []string
	// Source is the address of a source outside the fleet. It must be the zero value for pods and nodes, whose
	// addresses no address range matches. The subject of the address's ExternalWorkload is looked up and need not be in
	// Subjects.
	Source netip.Addr
	// Identified reports whether the dataplane of Cluster saw the source with the labels of Subjects, so that the source
	// has an identity there. Otherwise a subject whose pods are known only in other cluster meshes has none.
	Identified bool
	// Cluster is the destination's member cluster. If it is "", the base modes of the resources apply.
	Cluster string
	// Protocol is any text, for example "ICMP"; actions use only the protocols of the API.
	Protocol v1alpha1.Protocol
	Port     uint16
	// Method and Path describe a request; "" means not known.
	Method, Path string
	// Action names the action that the request belongs to, in place of Method and Path. NoAction means that it belongs
	// to none, and "" that it is not known.
	Action string
	At     time.Time
}

// NoAction is the value of Query.Action for a request that no HTTP action matches. It is not a valid action name.
const NoAction = "-"

// Decision is the answer to a Query.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Reason explains the verdict. It depends only on the case.
	Reason DecisionReason `json:"reason"`
	// Statements are the statements that determined the verdict, sorted; empty if none did.
	Statements []Ref `json:"statements,omitempty"`
}

// Grant describes what one statement allows or denies between one subject and one resource, as written.
type Grant struct {
	Ref      Ref
	Effect   Effect
	Subject  string
	Resource string
	// Actions are the names of the statement's actions that the resource's class has, sorted. For a wildcard resource
	// that no class covers they are listed as written.
	Actions []string
	// NotBefore and NotAfter are zero if the statement has no such bound.
	NotBefore, NotAfter time.Time
	// Hours are nil if the statement counts at any hour. They must not be changed.
	Hours *v1alpha1.WeeklyHours
	// Counting reports whether the statement counts at the queried instant, in the base mode of the resource.
	Counting bool
	// Wildcard reports whether Resource is a wildcard.
	Wildcard bool
}

// Refusal describes a statement that is not pushed to any member, or that is left out of one resource's unit.
type Refusal struct {
	Ref Ref
	// Reason is one of the Refused constants of the API.
	Reason string
	// Message names the part that was refused and says what to do.
	Message message.Message
	// Resource is the resource whose unit lacks the statement; "" means every unit.
	Resource string
}

func compareRefusals(a, b Refusal) int {
	return cmp.Or(a.Ref.Compare(b.Ref), cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Message.Text, b.Message.Text))
}

// Problem describes an invalid object that is not a policy.
type Problem struct {
	// Kind and Name identify the object.
	Kind, Name string
	// Reason is one of the API's reasons for the condition Accepted.
	Reason  string
	Message message.Message
	// LeftOut reports whether the object is ignored by decisions and compilation. Otherwise the message is a warning.
	LeftOut bool
}

func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message.Text, b.Message.Text))
}

// SubjectSelector selects pods by one label.
type SubjectSelector struct {
	LabelKey string
	// Values are sorted. They are empty only if Any is set.
	Values []string
	// Any selects every pod that has the label, whatever its value.
	Any bool
}

// Rule allows or denies its peers the ports of one or several actions. It has at least one kind of peer, because a rule
// without peers would match every source. A source matches if any kind of peer matches it.
type Rule struct {
	Effect Effect
	// Anyone matches every source: pods, nodes and addresses outside the fleet. If it is set, the other peers are
	// empty.
	Anyone bool
	// Subjects are sorted by label key.
	Subjects []SubjectSelector
	// Prefixes are addresses outside the fleet, sorted and distinct.
	Prefixes []netip.Prefix
	// External are the IDs of the ExternalGroups of the subjects in Subjects, sorted.
	External []string
	// ExternalClasses are the ClassIDs of the ExternalGroups that a selector with Any includes, sorted.
	ExternalClasses []string
	// Ports are sorted and never empty. Their protocol is always set.
	Ports []v1alpha1.Port
	// HTTP limits the rule to matching requests. If it is empty, the rule applies to every connection.
	HTTP []v1alpha1.HTTPMatch
	// From are the statements that the rule was compiled from, sorted.
	From []Ref
}

// HasPeers reports whether the rule matches anything. A rule without peers must never reach a dataplane.
func (r *Rule) HasPeers() bool {
	return r.Anyone || len(r.Subjects) > 0 || len(r.Prefixes) > 0 || len(r.External) > 0 || len(r.ExternalClasses) > 0
}

// Unit is everything that is pushed for one resource, or for one wildcard of resources. The same Snapshot and instant
// give the same bytes, regardless of the order of the input.
type Unit struct {
	// ID is a DNS label of at most 28 characters, derived from the resource's name.
	ID string
	// Resource is an exact name, or the wildcard of a wildcard unit, narrowed to its class.
	Resource string
	// Class is the name of the ResourceClass.
	Class string
	// Wildcard reports whether the unit belongs to a wildcard. Such units contain allows only, apply to workloads in any
	// mode, and must never close anything.
	Wildcard bool
	// LabelKey and LabelValue select the resource's pods. A wildcard unit uses LabelValues instead or, if these are
	// empty, the presence of LabelKey.
	LabelKey, LabelValue string
	LabelValues          []string
	// Mode is the base mode at the instant of compilation. It is Observe only if ClusterModes has a stricter mode for a
	// member. A member whose mode is Observe gets no object of the unit. Wildcard units are always in Audit.
	Mode v1alpha1.Mode
	// ClusterModes contains the members whose mode differs from Mode.
	ClusterModes map[string]v1alpha1.Mode
	// Rules are in a fixed order. An empty list closes the resource in Enforce: no source may connect.
	Rules []Rule
	// Inherited are the rules of the wildcard units that cover the resource, for dataplanes without wildcards.
	Inherited []Rule
	// OtherPorts is the setting of the class. It is Deny while an action of the class is unusable, and with OtherPortsRefusal.
	OtherPorts v1alpha1.OtherPorts
	// OtherPortsRefusal is the reason why no other port is open although the class opens them: a refused deny may have meant any of
	// them. It is in Refused, too.
	OtherPortsRefusal *Refusal `json:",omitempty"`
	// OpenPorts are the ports that no action of the class names; set only if OtherPorts is Allow.
	OpenPorts []v1alpha1.Port
	// ForeignKeys are the label keys of all other resource classes, sorted. A workload with one of these labels does
	// not get OpenPorts. Set only if OtherPorts is Allow.
	ForeignKeys []string
	Placement   v1alpha1.Placement
	Enforcers   []v1alpha1.EnforcerName
	// Entries is the estimated number of policy-map entries that Rules and Inherited need on each workload.
	Entries int
	// Overfull are the members in which the rules do not fit into a workload's policy map even without any allow of the
	// unit, sorted; "" stands for every member. Denies are never left out, so some rules are not in force there.
	Overfull []string `json:",omitempty"`
	// Refused are the statements in force that cover the resource but are not in Rules, sorted: the statements in
	// Snapshot.Refusals, the allows that are left out because of a refused deny, and the allows that do not fit.
	Refused []Refusal
	// Warnings are sentences about limits that will soon be reached.
	Warnings []message.Message
	// From are the statements in Rules, sorted.
	From []Ref
	// Statements are the statements that Rules came from, and the allows of wildcards, by ref. The field is nil unless
	// an enforcer of the class needs it; see WithStatements.
	Statements []UnitStatement `json:",omitempty"`
}

// ExternalGroup contains the addresses of the ExternalWorkloads of one subject.
type ExternalGroup struct {
	// ID is a DNS label of at most 28 characters, derived from the subject's name.
	ID      string
	Subject string
	// Class is the name of the SubjectClass, and ClassID a label value that identifies it.
	Class, ClassID string
	// Prefixes are the addresses of this subject alone, without longer prefixes of other subjects; sorted and disjoint.
	Prefixes []netip.Prefix
	// Contested are prefixes that other subjects claim, too. They count for denies only.
	Contested []netip.Prefix
}
