// Package auditlog writes the audit log for other systems: one JSON line for every counted connection, to a stream, a file or a
// webhook. It never blocks its caller: lines that do not fit into the queue are dropped and counted. It imports internal/audit,
// and neither sources of flows nor stores.
package auditlog

import (
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Record is one line of the audit log. Later versions may add fields; the meaning of a field never changes.
type Record struct {
	// Time is when the node observed the connection, in UTC.
	Time time.Time `json:"time"`
	// Subject and Resource are names of the policy model. Each is empty if the endpoint has no such name.
	Subject  string `json:"subject"`
	Action   string `json:"action"`
	Resource string `json:"resource"`
	// Effect is "allow", "deny", "audit" (let through in audit mode, although enforcement would deny it) or "none" (no policy
	// applies).
	Effect string `json:"effect"`
	// Decision is the decision of the policies and Verdict that of the dataplane, with the values that the flow explorer shows.
	Decision policy.Verdict `json:"decision"`
	Verdict  audit.Verdict  `json:"verdict"`
	// Policy and Statement identify the statement that determined the decision. They are omitted if none did.
	Policy    string `json:"policy,omitempty"`
	Statement string `json:"statement,omitempty"`
	// Cluster is the member in which the destination runs.
	Cluster            string            `json:"cluster"`
	SourceCluster      string            `json:"sourceCluster,omitempty"`
	Node               string            `json:"node"`
	SourceAddress      netip.Addr        `json:"sourceAddress"`
	SourcePort         uint16            `json:"sourcePort"`
	DestinationAddress netip.Addr        `json:"destinationAddress"`
	DestinationPort    uint16            `json:"destinationPort"`
	Protocol           v1alpha1.Protocol `json:"protocol"`
	// Source and Destination describe an endpoint that has no name in the policy model: its labels, a reserved identity, or an
	// address prefix.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	// OtherSubjects and OtherResources are further names of the endpoints, separated by spaces.
	OtherSubjects  string `json:"otherSubjects,omitempty"`
	OtherResources string `json:"otherResources,omitempty"`
	// Count is the number of connections that the event stands for.
	Count  int64  `json:"count"`
	Reason string `json:"reason"`
}

var effects = map[policy.Verdict]string{
	policy.Allowed: "allow", policy.Denied: "deny", policy.DefaultDenied: "deny", policy.Audited: "audit", policy.Unmanaged: "none",
}

// RecordOf converts a flow to a line of the audit log.
func RecordOf(f *audit.Flow) Record {
	return Record{
		Time:               f.Time.UTC(),
		Subject:            f.Subject,
		Action:             f.Action,
		Resource:           f.Resource,
		Effect:             effects[f.Decision],
		Decision:           f.Decision,
		Verdict:            f.Verdict,
		Policy:             f.Statement.Policy,
		Statement:          f.Statement.SID,
		Cluster:            f.Cluster,
		SourceCluster:      f.SourceCluster,
		Node:               f.Node,
		SourceAddress:      f.SourceAddress,
		SourcePort:         f.SourcePort,
		DestinationAddress: f.DestinationAddress,
		DestinationPort:    f.Port,
		Protocol:           f.Protocol,
		Source:             f.Source,
		Destination:        f.Destination,
		OtherSubjects:      f.OtherSubjects,
		OtherResources:     f.OtherResources,
		Count:              f.Count,
		Reason:             message.Decode(f.Reason).Text,
	}
}
