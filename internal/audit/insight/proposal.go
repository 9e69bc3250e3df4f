package insight

import (
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// State is the meaning of the current policies for a client that was seen.
type State string

const (
	// StateCovered means that an allow lets it in, now or as soon as its resource is in Audit or Enforce, or that no enforcer
	// of the resource refuses its protocol.
	StateCovered State = "covered"
	// StateNew means that no statement covers it, and its resource is not protected yet.
	StateNew State = "new"
	// StateAudited means that it is let in only because of Audit.
	StateAudited State = "audited"
	// StateDenied means that it is refused, or that a deny matches it, which no allow can change.
	StateDenied State = "denied"
)

// FlowEvidence describes the flows of a connection in the window.
type FlowEvidence struct {
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Days is the number of UTC days with traffic, of the DaysObserved on which flows were watched.
	Days         int      `json:"days"`
	DaysObserved int      `json:"daysObserved"`
	Clusters     []string `json:"clusters"`
	// Decisions counts the connections by their decision when they were seen.
	Decisions map[policy.Verdict]int64 `json:"decisions"`
}

// Proposal describes the policy that one resource needs for its present clients.
type Proposal struct {
	Resource string    `json:"resource"`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
	// Lines are the clients with a name, by action and subject.
	Lines []ProposalLine `json:"lines"`
	// Unattributed are sources without a name, which a user has to identify.
	Unattributed []UnattributedLine `json:"unattributed"`
	// UnknownPorts are the ports that no action of the class has, so that no statement can name them.
	UnknownPorts []UnknownPort `json:"unknownPorts"`
	// Policy allows the lines that are new or audited, with one statement for each action. It is nil if there are none.
	Policy *v1alpha1.AccessControlPolicy `json:"policy,omitempty"`
}

// ProposalLine is one client and one action.
type ProposalLine struct {
	Subject string `json:"subject"`
	Action  string `json:"action"`
	// Requests reports whether every action of the port is an HTTP action. Flows do not show which one, so a user has to
	// choose.
	Requests bool         `json:"requests,omitempty"`
	State    State        `json:"state"`
	Evidence FlowEvidence `json:"evidence"`
	// Statements contains the statements because of which the line is covered or denied.
	Statements []policy.Ref `json:"statements,omitempty"`
}

// UnattributedLine is one source without a name: labels of a pod, a reserved identity, or a prefix outside the fleet.
type UnattributedLine struct {
	Source   string       `json:"source"`
	State    State        `json:"state"`
	Ports    []PortSeen   `json:"ports"`
	Evidence FlowEvidence `json:"evidence"`
}

// PortSeen is a port that was connected to. Action is empty if no action has it.
type PortSeen struct {
	Protocol v1alpha1.Protocol `json:"protocol"`
	Port     uint16            `json:"port"`
	Action   string            `json:"action,omitempty"`
	Count    int64             `json:"count"`
}

// UnknownPort is a port that no action of the resource's class has.
type UnknownPort struct {
	Protocol v1alpha1.Protocol `json:"protocol"`
	Port     uint16            `json:"port"`
	// Open reports whether the class lets every source in at such ports.
	Open bool `json:"open"`
	// Clients are the subjects, or the sources without a name, sorted.
	Clients  []string     `json:"clients"`
	Evidence FlowEvidence `json:"evidence"`
}

// ProposeInput is the input of Propose.
type ProposeInput struct {
	Snapshot *policy.Snapshot
	Resource string
	// Since is inclusive, Until exclusive. A zero Until means Now, and a zero Since means DefaultWindow before Until.
	Since, Until time.Time
	// Now is the instant at which the policies are evaluated.
	Now time.Time
	// MinCount leaves out clients with fewer connections in the window, except those with connections that were opened
	// before it and are still in use; 0 means none.
	MinCount int64
}

// RefineInput is a ProposeInput for what is new since a review.
type RefineInput struct {
	ProposeInput
	// Reviewed is the time of the last review: only clients that were first seen later are returned. Earlier flows are
	// known back to Since.
	Reviewed time.Time
}
