package audit

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Verdict is what the dataplane itself did with a connection.
type Verdict string

const (
	VerdictForwarded Verdict = "forwarded"
	VerdictDropped   Verdict = "dropped"
	// VerdictAudit: let through by a dataplane that runs the endpoint in its own audit mode and would have dropped it.
	VerdictAudit Verdict = "audit"
	// VerdictUnknown: seen, but without a verdict.
	VerdictUnknown Verdict = "unknown"
)

// Kind of an endpoint, as far as the dataplane knows it.
type Kind string

const (
	// KindWorkload is a pod of the fleet.
	KindWorkload Kind = "workload"
	// KindOutside is an address that belongs to no workload and no node of the fleet.
	KindOutside Kind = "outside"
	// KindLocalHost is the node that the other end runs on.
	KindLocalHost Kind = "host"
	// KindReserved is any other reserved identity: remote nodes, health checks, ingress, unmanaged.
	KindReserved Kind = "reserved"
)

// Endpoint is one end of a connection.
type Endpoint struct {
	Kind Kind
	// Labels are pod labels with plain keys; empty when the endpoint is not a workload.
	Labels map[string]string
	// Identity names an endpoint that is not a workload, for example "remote-node"; empty otherwise.
	Identity  string
	Namespace string
	// Cluster is the member that the endpoint runs in; empty when it is not known or outside the fleet.
	Cluster string
	Address netip.Addr
	// Port is the transport port; 0 when the protocol has none.
	Port uint16
}

// Observation is one connection attempt as a source of flows reports it.
type Observation struct {
	// Time of the event at the node that saw it.
	Time time.Time
	// Cluster is the member that the destination runs in, under the name that the control plane has for it.
	Cluster string
	Node    string

	Source      Endpoint
	Destination Endpoint
	// Protocol of the connection. Protocols that the policy model does not know (ICMP) keep their own name.
	Protocol v1alpha1.Protocol
	// Method and Path are those of a request in a connection, both or neither. They are never stored.
	Method, Path string
	Verdict      Verdict
	// Count is how many connections the event stands for; sources that aggregate report more than one.
	Count int64
}

// IsRequest reports whether it is a request in a connection, and not the connection itself.
func (o *Observation) IsRequest() bool { return o.Method != "" }

// ProtocolHTTP is the protocol of edges that count requests. Their Action is the one that the requests are of; their connections
// are counted apart.
const ProtocolHTTP v1alpha1.Protocol = "HTTP"

// Record is one connection in the words of the policy model.
type Record struct {
	Observation

	// Subjects and Resources are every name that the two ends carry; a pod may have the labels of several classes.
	Subjects, Resources []string
	Word                policy.Verdict
	Reason              string
	Statements          []policy.Ref
}

// Edge is what a roll-up counts: everything about a connection but when it happened.
type Edge struct {
	Cluster, SourceCluster string
	// Subject and Resource are names of the policy model; when there is none, Source or Destination says what was seen
	// instead: the security-relevant labels of a workload, a reserved identity, or a prefix outside the fleet.
	Subject, Resource   string
	Source, Destination string
	Action              string
	Port                uint16
	Protocol            v1alpha1.Protocol
	Decision            policy.Verdict
	Verdict             Verdict
	// Statement that decided; zero when none did.
	Statement policy.Ref
	// OtherSubjects and OtherResources are the other names that the two ends carry, sorted, joined by one space; usually
	// empty. With them a pair can be decided again as it was decided.
	OtherSubjects, OtherResources string
}

// Ask puts into a query what the edge tells of a connection, or of a request: where it went, and by which action.
func (e *Edge) Ask(q *policy.Query) {
	q.Cluster, q.Protocol, q.Port, q.Action = e.Cluster, e.Protocol, e.Port, ""
	if e.Protocol == ProtocolHTTP {
		q.Protocol, q.Action = v1alpha1.ProtocolTCP, cmp.Or(e.Action, policy.NoAction)
	}
}

// Disagrees reports whether the dataplane did something else than the policies say. An unknown verdict is no disagreement.
func (e Edge) Disagrees() bool {
	switch e.Verdict {
	case VerdictForwarded, VerdictAudit:
		return !e.Decision.LetsThrough()
	case VerdictDropped:
		return e.Decision.LetsThrough()
	}
	return false
}

// Rollup counts the connections of one edge in one minute.
type Rollup struct {
	// Bucket is the start of the minute, UTC.
	Bucket time.Time
	Edge
	// Count is 0 where connections that were counted before are only seen to be still in use.
	Count               int64
	FirstSeen, LastSeen time.Time
}

// BucketWidth is the time resolution of the roll-ups.
const BucketWidth = time.Minute

// LossReason says where flows got lost, or why none could be seen.
type LossReason string

const (
	// LossDataplane: the node's event buffer overflowed before the agent read it.
	LossDataplane LossReason = "dataplane-buffer"
	// LossQueue: the agent's queue overflowed.
	LossQueue LossReason = "agent-queue"
	// LossRing: the ring was overwritten before the collector read it.
	LossRing LossReason = "ring"
	// LossGap: nothing was received for the span, and the source no longer holds it; how much is not known.
	LossGap LossReason = "gap"
	// LossStore: the store could not be written for so long that the collector had to drop what it had counted.
	LossStore LossReason = "store"
	// LossUnreadable: the source sent an event that could not be understood.
	LossUnreadable LossReason = "unreadable"
	// LossUnknown: the source did not say where.
	LossUnknown LossReason = "unknown"
)

// Loss is evidence that is missing. Count is 0 where nobody knows how much was lost.
type Loss struct {
	Cluster, Node string
	Reason        LossReason
	Count         int64
	From, To      time.Time
}
