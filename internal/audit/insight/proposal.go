package insight

import (
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// State says what the policies of today mean for a client that was seen.
type State string

const (
	// StateCovered: an allow lets it in, now or as soon as its resource is in Audit or Enforce.
	StateCovered State = "covered"
	// StateNew: nothing is said about it, and its resource is not looked after yet.
	StateNew State = "new"
	// StateAudited: it is let in only because of Audit.
	StateAudited State = "audited"
	// StateDenied: it is refused, or a deny names it, which no allow can change.
	StateDenied State = "denied"
)

// Seen is what was seen of something in the window: the evidence for it.
type Seen struct {
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Days are the UTC days with traffic, of the DaysObserved on which flows were watched at all.
	Days         int      `json:"days"`
	DaysObserved int      `json:"daysObserved"`
	Clusters     []string `json:"clusters"`
	// Decisions counts the connections by what was decided when they were seen.
	Decisions map[policy.Verdict]int64 `json:"decisions"`
}

// Proposal is what a policy of one resource would have to say to let in whom it serves.
type Proposal struct {
	Resource string    `json:"resource"`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until"`
	// Lines are the clients with a name, by action and subject.
	Lines []ProposalLine `json:"lines"`
	// Unattributed are sources without a name, which need the word of somebody who knows them.
	Unattributed []UnattributedLine `json:"unattributed"`
	// UnknownPorts are those that no action of the class has: no statement can be about them.
	UnknownPorts []UnknownPort `json:"unknownPorts"`
	// Policy allows the lines that are new or audited: one statement for each action. Nil when there is none.
	Policy *v1alpha1.AccessControlPolicy `json:"policy,omitempty"`
}

// ProposalLine is one client and one action.
type ProposalLine struct {
	Subject string `json:"subject"`
	Action  string `json:"action"`
	// Requests tells that every action of the port is of some requests only: flows do not show which, so somebody has to
	// choose.
	Requests bool  `json:"requests,omitempty"`
	State    State `json:"state"`
	Evidence Seen  `json:"evidence"`
	// Statements that make it covered or denied.
	Statements []policy.Ref `json:"statements,omitempty"`
}

// UnattributedLine is one source without a name: labels of a pod, a reserved identity, or a prefix outside the fleet.
type UnattributedLine struct {
	Source   string     `json:"source"`
	State    State      `json:"state"`
	Ports    []PortSeen `json:"ports"`
	Evidence Seen       `json:"evidence"`
}

// PortSeen is a port that was connected to. Action is empty when no action has it.
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
	// Open tells that the class lets everyone in at such ports.
	Open bool `json:"open"`
	// Clients are the subjects, or the sources without a name, sorted.
	Clients  []string `json:"clients"`
	Evidence Seen     `json:"evidence"`
}

// ProposeInput says what to propose for.
type ProposeInput struct {
	Snapshot *policy.Snapshot
	Resource string
	// Since is inclusive, Until exclusive; a zero Until is Now, a zero Since a DefaultWindow before Until.
	Since, Until time.Time
	// Now is the instant at which the policies are asked.
	Now time.Time
	// MinCount leaves out clients with fewer connections in the window, but not those that still use one of before it; 0: none.
	MinCount int64
}

// RefineInput is a ProposeInput for what came since a review.
type RefineInput struct {
	ProposeInput
	// Reviewed is when somebody last looked: only clients that were first seen later are told. What came before it is
	// known as far back as Since.
	Reviewed time.Time
}
