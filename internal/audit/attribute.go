package audit

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Evaluator is what attribution asks of the policies; *policy.Snapshot is one.
type Evaluator interface {
	SubjectsOf(labels map[string]string) []string
	ResourcesOf(labels map[string]string) []string
	SubjectOfAddress(a netip.Addr) (string, bool)
	ActionsOn(resource string, proto v1alpha1.Protocol, port uint16) []string
	// DecideEffective decides as the members do, without the statements that are refused.
	DecideEffective(q *policy.Query) policy.Effective
	// RequestsOn names the actions on the port that a request is of, those of requests first, and reports whether the port has any
	// action of requests.
	RequestsOn(resource string, proto v1alpha1.Protocol, port uint16, method, path string) (names []string, judged bool)
	// NextChange is the first instant later than after at which the same question may get another answer; false: never.
	NextChange(after time.Time) (time.Time, bool)
	// LastChange is the last such instant that is not later than at; false: there is none.
	LastChange(at time.Time) (time.Time, bool)
}

var _ Evaluator = (*policy.Snapshot)(nil)

// Epoch is one state of the policies, in force from Since until the next one; zero: since before anybody asks.
type Epoch struct {
	Evaluator
	Since time.Time
}

// ownNodeReason explains the one source that no policy refuses.
const ownNodeReason = "the destination's own node is always let in"

// Attribute finds the names of both ends and decides the connection as the members do by the policies, at the time of the
// event. Where a refusal changes the answer, the reason names it.
func Attribute(e Evaluator, o Observation) Record {
	r := Record{Observation: o}
	q := policy.Query{Cluster: o.Cluster, Protocol: o.Protocol, Port: o.Destination.Port, Method: o.Method, Path: o.Path, At: o.Time}
	switch o.Source.Kind {
	case KindWorkload:
		r.Subjects = e.SubjectsOf(o.Source.Labels)
		q.Subjects = r.Subjects
	case KindOutside:
		// The evaluator finds the subject of an address itself, because denies and allows of the same prefix differ.
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
		d = policy.Effective{Decision: policy.Decision{Verdict: policy.Allowed, Reason: ownNodeReason}}
		d.Written = d.Decision
	}
	r.Word, r.Reason, r.Statements = d.Verdict, explained(&d), d.Statements
	return r
}

// decided is the decision as the members have it, with its reason explained.
func decided(e Evaluator, q *policy.Query) policy.Decision {
	d := e.DecideEffective(q)
	d.Reason = explained(&d)
	return d.Decision
}

// explained is the reason, which names what makes the decision another one than the statements mean.
func explained(d *policy.Effective) string {
	if d.Differs() || len(d.Waiting) > 0 {
		return d.Explain()
	}
	return d.Reason
}

// Edges returns what the record counts for: one edge for each pair of a subject and a resource, so that the view of
// each name is complete. Nearly always that is one.
func (r Record) Edges(e Evaluator) []Edge {
	base := Edge{
		Cluster: r.Cluster, SourceCluster: r.Source.Cluster, Port: r.Destination.Port, Protocol: r.Protocol,
		Decision: r.Word, Verdict: r.Verdict,
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

// actionOn names the action of a resource that the record counts for; empty: none. Of several that a request is of, it is the
// first by which alone it would be decided as it was.
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
	q := policy.Query{Cluster: r.Cluster, Protocol: r.Protocol, Port: r.Destination.Port, Subjects: r.Subjects, Resources: []string{resource}, At: r.Time}
	if r.Source.Kind == KindOutside {
		q.Source, q.Subjects = r.Source.Address, nil
	}
	for _, name := range actions {
		if q.Action = name; e.DecideEffective(&q).Verdict == r.Word {
			return name
		}
	}
	return actions[0]
}

// Disagrees reports whether the dataplane did something else than the policies say, see Edge.
func (r Record) Disagrees() bool { return Edge{Decision: r.Word, Verdict: r.Verdict}.Disagrees() }

// others joins the names but the one at index i. Names have no spaces.
func others(names []string, i int) string {
	if len(names) < 2 {
		return ""
	}
	list := slices.Delete(slices.Clone(names), i, i+1)
	slices.Sort(list)
	return strings.Join(list, " ")
}

// Prefixes by which addresses outside the fleet are counted: single ones would let anyone who scans fill the store.
const (
	outsideBits4 = 24
	outsideBits6 = 64
)

// maxDescription bounds the text of an end without a name, in bytes.
const maxDescription = 512

// describe names an end that has no name in the policy model.
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
