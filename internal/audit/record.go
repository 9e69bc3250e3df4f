package audit

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Verdict is what the dataplane did with a connection.
type Verdict string

const (
	// VerdictForwarded means that the dataplane let the connection through.
	VerdictForwarded Verdict = "forwarded"
	// VerdictDropped means that the dataplane refused the connection.
	VerdictDropped Verdict = "dropped"
	// VerdictAudit means that the dataplane let the connection through in its own audit mode and would otherwise have dropped it.
	VerdictAudit Verdict = "audit"
	// VerdictUnknown means that the connection was observed without a verdict.
	VerdictUnknown Verdict = "unknown"
)

// Kind classifies an endpoint by what the dataplane reports about it.
type Kind string

const (
	// KindWorkload is a pod of the fleet.
	KindWorkload Kind = "workload"
	// KindOutside is an address that belongs to no workload and no node of the fleet.
	KindOutside Kind = "outside"
	// KindLocalHost is the node on which the other endpoint runs.
	KindLocalHost Kind = "host"
	// KindReserved is any other reserved identity: remote nodes, health checks, ingress, unmanaged pods.
	KindReserved Kind = "reserved"
)

// Endpoint is one end of a connection.
type Endpoint struct {
	Kind Kind
	// Labels are the pod labels, with plain keys; empty for an endpoint that is not a workload.
	Labels map[string]string
	// ServiceAccount identifies a workload whose labels are not known, by the certificate that it presented; empty otherwise.
	ServiceAccount string
	// Identity names an endpoint that is not a workload, for example "remote-node"; empty otherwise.
	Identity  string
	Namespace string
	// Cluster is the member in which the endpoint runs; empty if it is unknown or outside the fleet.
	Cluster string
	Address netip.Addr
	// Port is the transport port; 0 for a protocol without ports.
	Port uint16
}

// Observation is one connection attempt, or one request, as a source of flows reports it.
type Observation struct {
	// Time is when the node observed the event.
	Time time.Time
	// Cluster is the member in which the destination runs, with its name in the control plane.
	Cluster string
	Node    string

	Source      Endpoint
	Destination Endpoint
	// Protocol is the transport protocol. Protocols that the policy model does not have (ICMP) keep their own name.
	Protocol v1alpha1.Protocol
	// Method and Path are set for a request in a connection, both or neither. They are never stored.
	Method, Path string
	Verdict      Verdict
	// Enforcer is the dataplane that reports the verdict; empty means Cilium.
	Enforcer v1alpha1.EnforcerName
	// Count is the number of connections that the event stands for. It exceeds 1 for sources that aggregate.
	Count int64
}

// IsRequest reports whether the observation is a request in a connection, as opposed to the connection itself.
func (o *Observation) IsRequest() bool { return o.Method != "" }

// ProtocolHTTP is the protocol of edges that count requests. Their Action is the action that the requests match. The connections
// of the requests are counted in edges of their own.
const ProtocolHTTP v1alpha1.Protocol = "HTTP"

// Record is an observation with the names of the policy model and the decision of the policies.
type Record struct {
	Observation

	// Subjects and Resources are all names of the two endpoints. A pod may have the labels of several classes.
	Subjects, Resources []string
	Decision            policy.Verdict
	Reason              string // as message.Decode reads it
	Statements          []policy.Ref
}

// Edge is the key of a roll-up: everything about a connection except its time.
type Edge struct {
	Cluster, SourceCluster string
	// Subject and Resource are names of the policy model. If an endpoint has none, Source or Destination describes it instead: by
	// the security-relevant labels of a workload, a reserved identity, or a prefix outside the fleet.
	Subject, Resource   string
	Source, Destination string
	Action              string
	Port                uint16
	Protocol            v1alpha1.Protocol
	Decision            policy.Verdict
	Verdict             Verdict
	// Statement identifies the deciding statement; zero if no statement decided.
	Statement policy.Ref
	// OtherSubjects and OtherResources are the further names of the two endpoints, sorted and separated by one space; usually
	// empty. With them the decision can be repeated.
	OtherSubjects, OtherResources string
}

// FillQuery sets the fields of the query that follow from the edge: the destination cluster, the protocol, the port, and the
// action of a request.
func (e *Edge) FillQuery(q *policy.Query) {
	q.Cluster, q.Protocol, q.Port, q.Action = e.Cluster, e.Protocol, e.Port, ""
	if e.Protocol == ProtocolHTTP {
		q.Protocol, q.Action = v1alpha1.ProtocolTCP, cmp.Or(e.Action, policy.NoAction)
	}
}

// Disagrees reports whether the dataplane's verdict contradicts the decision. An unknown verdict never does.
func (e Edge) Disagrees() bool {
	switch e.Verdict {
	case VerdictForwarded, VerdictAudit:
		return !e.Decision.LetsThrough()
	case VerdictDropped:
		return e.Decision.LetsThrough()
	}
	return false
}

// Rollup is the number of connections of one edge in one minute.
type Rollup struct {
	// Bucket is the start of the minute, in UTC.
	Bucket time.Time
	Edge
	// Count is 0 if the only observation is that earlier connections are still in use.
	Count               int64
	FirstSeen, LastSeen time.Time
}

// BucketWidth is the time resolution of the roll-ups.
const BucketWidth = time.Minute

// LossReason states where flows were lost, or why none could be observed.
type LossReason string

const (
	// LossDataplane means that the node's event buffer overflowed before the agent read it.
	LossDataplane LossReason = "dataplane-buffer"
	// LossQueue means that the agent's queue overflowed.
	LossQueue LossReason = "agent-queue"
	// LossRing means that the ring was overwritten before the collector read it.
	LossRing LossReason = "ring"
	// LossGap means that nothing was received for the time span and the source no longer has its events; the number is unknown.
	LossGap LossReason = "gap"
	// LossStore means that the store was unavailable for so long that the collector dropped counts.
	LossStore LossReason = "store"
	// LossUnreadable means that the source sent an event that could not be decoded, or whose time or names cannot be true.
	LossUnreadable LossReason = "unreadable"
	// LossUnknown means that the source did not report the reason.
	LossUnknown LossReason = "unknown"
)

// Loss is evidence that is missing. Count is 0 if the number of lost flows is unknown.
type Loss struct {
	Cluster, Node string
	Reason        LossReason
	Count         int64
	From, To      time.Time
}
