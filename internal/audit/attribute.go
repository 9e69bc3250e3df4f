package audit

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Evaluator is the interface to the policies that attribution needs. *policy.Snapshot implements it.
type Evaluator interface {
	SubjectsOf(labels map[string]string) []string
	SubjectsOfServiceAccount(account string) []string
	ResourcesOf(labels map[string]string) []string
	// EnforcersOf returns the enforcers that the classes of the resources name, sorted.
	EnforcersOf(resources []string) []v1alpha1.EnforcerName
	// EffectiveMode returns the mode of a resource in a member at an instant.
	EffectiveMode(resource, cluster string, at time.Time) v1alpha1.Mode
	SubjectOfAddress(a netip.Addr) (string, bool)
	ActionsOn(resource string, proto v1alpha1.Protocol, port uint16) []string
	// DecideEffective returns the decision that the members enforce, without refused statements.
	DecideEffective(q *policy.Query) policy.Effective
	// RequestsOn returns the actions on the port that match the request, request actions first, and reports whether the port has
	// any request action.
	RequestsOn(resource string, proto v1alpha1.Protocol, port uint16, method, path string) (names []string, judged bool)
	// NextChange returns the first instant after the given one at which the answer to a query may change; false if there is none.
	NextChange(after time.Time) (time.Time, bool)
	// LastChange returns the last such instant that is not later than at; false if there is none.
	LastChange(at time.Time) (time.Time, bool)
}

var _ Evaluator = (*policy.Snapshot)(nil)

// Epoch is one state of the policies, in force from Since until the next epoch begins. A zero Since means since the beginning.
type Epoch struct {
	Evaluator
	Since time.Time
}

// Attribute determines the names of both ends and the decision that the members enforce, by the policies at the time of the
// observation. If a refused statement changes the decision, the reason mentions it.
//
// A connection that Cilium forwards and another enforcer refuses has VerdictUnknown, because Cilium does not see the verdict of that
// enforcer. Istio's verdict is final: a connection that Cilium refuses does not reach Istio.
func Attribute(e Evaluator, o Observation) Record {
	r := Record{Observation: o}
	q := policy.Query{Cluster: o.Cluster, Protocol: o.Protocol, Port: o.Destination.Port, Method: o.Method, Path: o.Path, At: o.Time}
	switch o.Source.Kind {
	case KindWorkload:
		if r.Subjects = e.SubjectsOf(o.Source.Labels); o.Source.ServiceAccount != "" {
			r.Subjects = e.SubjectsOfServiceAccount(o.Source.ServiceAccount)
		}
		q.Subjects, q.Identified = r.Subjects, true
	case KindOutside:
		// The evaluator looks the address up itself, because denies and allows of the same prefix differ.
		q.Source = o.Source.Address
		if name, ok := e.SubjectOfAddress(o.Source.Address); ok {
			r.Subjects = []string{name}
		}
	}
	if o.Destination.Kind == KindWorkload {
		r.Resources = e.ResourcesOf(o.Destination.Labels)
		q.Resources = r.Resources
	}
	d := e.DecideEffective(&q)
	if o.Source.Kind == KindLocalHost && d.Verdict != policy.Allowed && d.Verdict != policy.Unmanaged {
		d = policy.Effective{Decision: policy.Decision{Verdict: policy.Allowed, Reason: policy.ReasonOwnNode}}
		d.Cilium, d.Written = d.Verdict, d.Decision
	}
	r.Decision, r.Reason, r.Statements = d.Verdict, explained(&d), d.Statements
	r.setVerdict(d.Cilium)
	return r
}

// setVerdict replaces a verdict of Cilium's if Cilium lets the connection through by its own verdict, and the decision refuses it.
func (r *Record) setVerdict(cilium policy.Verdict) {
	if r.Enforcer != v1alpha1.EnforcerIstio && cilium.LetsThrough() && !r.Decision.LetsThrough() && r.Verdict != VerdictDropped {
		r.Verdict = VerdictUnknown
	}
}

// explained returns the decision's reason as it is stored, including what makes the decision differ from the statements
// as written. Nearly always it is a code alone, which needs no allocation.
func explained(d *policy.Effective) string {
	if d.Differs() || len(d.Waiting) > 0 {
		return d.Explain().Encode()
	}
	return d.Reason.Code()
}

// Edges returns the edges in which the record is counted: one for each pair of a subject and a resource, so that the view of each
// name is complete. Nearly always there is exactly one.
func (r Record) Edges(e Evaluator) []Edge {
	base := Edge{
		Cluster: r.Cluster, SourceCluster: r.Source.Cluster, Port: r.Destination.Port, Protocol: r.Protocol,
		Decision: r.Decision, Verdict: r.Verdict,
	}
	if r.IsRequest() {
		base.Protocol = ProtocolHTTP
	}
	if len(r.Statements) > 0 {
		base.Statement = r.Statements[0]
	}
	subjects, resources := r.Subjects, r.Resources
	if len(subjects) == 0 {
		base.Source = r.Source.describe()
		subjects = []string{""}
	}
	if len(resources) == 0 {
		base.Destination = r.Destination.describe()
		resources = []string{""}
	}
	edges := make([]Edge, 0, len(subjects)*len(resources))
	for i, resource := range resources {
		edge := base
		edge.Resource, edge.OtherResources = resource, others(resources, i)
		if resource != "" {
			edge.Action = r.actionOn(e, resource)
		}
		for j, subject := range subjects {
			edge.Subject, edge.OtherSubjects = subject, others(subjects, j)
			edges = append(edges, edge)
		}
	}
	return edges
}

// actionOn returns the action of the resource under which the record is counted; "" if there is none. If a request matches
// several actions, it is the first that alone yields the same decision.
func (r Record) actionOn(e Evaluator, resource string) string {
	if !r.IsRequest() {
		if actions := e.ActionsOn(resource, r.Protocol, r.Destination.Port); len(actions) > 0 {
			return actions[0]
		}
		return ""
	}
	actions, _ := e.RequestsOn(resource, r.Protocol, r.Destination.Port, r.Method, r.Path)
	if len(actions) == 0 {
		return ""
	}
	q := policy.Query{
		Cluster:    r.Cluster,
		Protocol:   r.Protocol,
		Port:       r.Destination.Port,
		Subjects:   r.Subjects,
		Resources:  []string{resource},
		At:         r.Time,
		Identified: r.Source.Kind == KindWorkload,
	}
	if r.Source.Kind == KindOutside {
		q.Source, q.Subjects = r.Source.Address, nil
	}
	for _, name := range actions {
		if q.Action = name; e.DecideEffective(&q).Verdict == r.Decision {
			return name
		}
	}
	return actions[0]
}

// Disagrees reports whether the dataplane's verdict contradicts the policies, see Edge.Disagrees.
func (r Record) Disagrees() bool { return Edge{Decision: r.Decision, Verdict: r.Verdict}.Disagrees() }

// others joins all names but the one at index i. Names contain no spaces.
func others(names []string, i int) string {
	if len(names) < 2 {
		return ""
	}
	list := slices.Delete(slices.Clone(names), i, i+1)
	slices.Sort(list)
	return strings.Join(list, " ")
}

// outsideBits4 and outsideBits6 are the lengths of the prefixes by which addresses outside the fleet are counted. Counting single
// addresses would let a scan fill the store.
const (
	outsideBits4 = 24
	outsideBits6 = 64
)

// maxDescription bounds the description of an endpoint without a name, in bytes.
const maxDescription = 512

// describe returns a description of an endpoint that has no name in the policy model.
func (e Endpoint) describe() string {
	switch e.Kind {
	case KindWorkload:
		pairs := make([]string, 0, len(e.Labels)+1)
		for k, v := range e.Labels {
			if !strings.HasPrefix(k, "io.cilium.") && !strings.HasPrefix(k, "io.kubernetes.") {
				pairs = append(pairs, k+"="+v)
			}
		}
		slices.Sort(pairs)
		if e.ServiceAccount != "" {
			pairs = slices.Insert(pairs, 0, "serviceaccount="+e.ServiceAccount)
		}
		if e.Namespace != "" {
			pairs = slices.Insert(pairs, 0, "namespace="+e.Namespace)
		}
		return cut(strings.Join(pairs, ","))
	case KindOutside:
		a := e.Address.Unmap()
		bits := outsideBits4
		if a.Is6() {
			bits = outsideBits6
		}
		if p, err := a.Prefix(bits); err == nil {
			return p.String()
		}
		return "outside"
	case KindLocalHost:
		return "reserved:host"
	default:
		return cut("reserved:" + e.Identity)
	}
}

func cut(s string) string {
	if len(s) <= maxDescription {
		return s
	}
	return strings.ToValidUTF8(s[:maxDescription-len("…")], "") + "…"
}
