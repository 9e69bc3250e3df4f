package insight

import (
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// MaxImpactLines bounds each list of an Impact; the totals count what is left out.
const MaxImpactLines = 1000

// ReplayInput is a change, as the policies before and after it.
type ReplayInput struct {
	Before, After *policy.Snapshot
	// Resources that the change is about; none: all.
	Resources []string
	// Fleet tells in which members the resources are placed; times in which one of those was not watched are uncertain.
	Fleet Fleet
	// Since is inclusive, Until exclusive.
	Since, Until time.Time
	// At is the instant at which both are asked; zero: Until. Flows are old, but what is allowed is what is allowed now.
	At time.Time
	// MaxLines bounds each list; 0: MaxImpactLines.
	MaxLines int
}

// Impact is what a change would have done to the connections of the window.
type Impact struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// NewlyAllowed were refused before and are let in after, NewlyDenied the other way round; most connections first.
	NewlyAllowed []ImpactLine `json:"newlyAllowed"`
	NewlyDenied  []ImpactLine `json:"newlyDenied"`
	// Otherwise are those that pass, or fail, before and after, for another reason: a client of a resource in Audit that
	// would lose its grant, for example, which Enforce will refuse.
	Otherwise []ImpactLine `json:"otherwise"`

	Allowed        ImpactTotal `json:"allowed"`
	Denied         ImpactTotal `json:"denied"`
	OtherwiseTotal ImpactTotal `json:"otherwiseTotal"`
	// Unchanged counts connections that are decided alike.
	Unchanged int64 `json:"unchanged"`
	// Uncertain says what is not known: sources that could be several, times that were not watched, flows that were lost.
	Uncertain []Uncertain `json:"uncertain"`
	// Truncated tells that a list has more lines than there was room for.
	Truncated bool `json:"truncated"`
}

// ImpactTotal counts connections, each once, and the clients and resources they are between.
type ImpactTotal struct {
	Connections int64 `json:"connections"`
	Clients     int   `json:"clients"`
	Resources   int   `json:"resources"`
}

// ImpactLine is one client at one port of one resource in one member.
type ImpactLine struct {
	Cluster string `json:"cluster"`
	// Subject and Resource are names; without one, Source or Destination says what was seen.
	Subject     string            `json:"subject,omitempty"`
	Source      string            `json:"source,omitempty"`
	Resource    string            `json:"resource,omitempty"`
	Destination string            `json:"destination,omitempty"`
	Action      string            `json:"action,omitempty"`
	Port        uint16            `json:"port"`
	Protocol    v1alpha1.Protocol `json:"protocol"`
	Count       int64             `json:"count"`
	First       time.Time         `json:"first"`
	Last        time.Time         `json:"last"`
	Before      policy.Verdict    `json:"before"`
	After       policy.Verdict    `json:"after"`
	// Statements decide afterwards, or decided before when none does.
	Statements []policy.Ref `json:"statements,omitempty"`
}

// Uncertain is something that the replay cannot know, with a sentence.
type Uncertain struct {
	Cluster string    `json:"cluster"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Source, Resource and Count are set when it is about connections that were seen.
	Source   string `json:"source,omitempty"`
	Resource string `json:"resource,omitempty"`
	Count    int64  `json:"count,omitempty"`
	Reason   string `json:"reason"`
}
