// Package auditlog writes the audit log for other systems: one JSON line for every connection that is counted, to a stream, a file
// or a webhook. It never blocks its caller: lines that find no room in the queue are dropped and counted. It imports
// internal/audit, and neither sources of flows nor stores.
package auditlog

import (
	"net/netip"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Record is one line. Fields may be added; none changes its meaning.
type Record struct {
	// Time at the node that saw the connection, UTC.
	Time time.Time `json:"time"`
	// Subject and Resource are names of the policy model, empty when an end has none.
	Subject  string `json:"subject"`
	Action   string `json:"action"`
	Resource string `json:"resource"`
	// Effect is "allow", "deny", "audit" (let through, though it would be denied) or "none" (no policy is about it).
	Effect string `json:"effect"`
	// Decision of the policies and Verdict of the dataplane, in the words of the flow explorer.
	Decision policy.Verdict `json:"decision"`
	Verdict  audit.Verdict  `json:"verdict"`
	// Policy and Statement decided; left out when no statement did.
	Policy    string `json:"policy,omitempty"`
	Statement string `json:"statement,omitempty"`
	// Cluster is that of the destination.
	Cluster            string            `json:"cluster"`
	SourceCluster      string            `json:"sourceCluster,omitempty"`
	Node               string            `json:"node"`
	SourceAddress      netip.Addr        `json:"sourceAddress"`
	SourcePort         uint16            `json:"sourcePort"`
	DestinationAddress netip.Addr        `json:"destinationAddress"`
	DestinationPort    uint16            `json:"destinationPort"`
	Protocol           v1alpha1.Protocol `json:"protocol"`
	// Source and Destination say what an end without a name is: its labels, a reserved identity, a prefix.
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	// OtherSubjects and OtherResources are further names of the ends, joined by spaces.
	OtherSubjects  string `json:"otherSubjects,omitempty"`
	OtherResources string `json:"otherResources,omitempty"`
	// Count is how many connections the event stands for.
	Count  int64  `json:"count"`
	Reason string `json:"reason"`
}

var effects = map[policy.Verdict]string{
	policy.Allowed: "allow", policy.Denied: "deny", policy.DefaultDenied: "deny", policy.Audited: "audit", policy.Unmanaged: "none",
}

// RecordOf puts a flow into the words of the audit log.
func RecordOf(f *audit.Flow) Record {
	return Record{
		Time: f.Time.UTC(), Subject: f.Subject, Action: f.Action, Resource: f.Resource, Effect: effects[f.Decision], Decision: f.Decision, Verdict: f.Verdict,
		Policy: f.Statement.Policy, Statement: f.Statement.SID, Cluster: f.Cluster, SourceCluster: f.SourceCluster, Node: f.Node,
		SourceAddress: f.SourceAddress, SourcePort: f.SourcePort, DestinationAddress: f.DestinationAddress, DestinationPort: f.Port, Protocol: f.Protocol,
		Source: f.Source, Destination: f.Destination, OtherSubjects: f.OtherSubjects, OtherResources: f.OtherResources, Count: f.Count, Reason: f.Reason,
	}
}
