package insight

import (
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// MaxImpactLines bounds each list of an Impact; the totals include what is left out.
const MaxImpactLines = 1000

// ReplayInput is a change, as the policies before and after it.
type ReplayInput struct {
	Before, After *policy.Snapshot
	// Resources are the resources that the change concerns; none means all.
	Resources []string
	// Fleet returns the members in which the resources are placed. Times in which one of them was not watched are
	// uncertain.
	Fleet Fleet
	// Since is inclusive, Until exclusive.
	Since, Until time.Time
	// At is the instant of both decisions; zero means Until. The flows are old, but the current permissions count.
	At time.Time
	// MaxLines bounds each list; 0 means MaxImpactLines.
	MaxLines int
}

// Impact is the effect that a change would have had on the connections of the window.
type Impact struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// NewlyAllowed were refused before and are allowed after; NewlyDenied the reverse. They are ordered by the number
	// of connections, descending.
	NewlyAllowed []ImpactLine `json:"newlyAllowed"`
	NewlyDenied  []ImpactLine `json:"newlyDenied"`
	// ReasonChanged are connections that pass, or fail, both before and after, for another reason: for example a client of
	// a resource in Audit that would lose its grant, which Enforce will refuse.
	ReasonChanged []ImpactLine `json:"otherwise"`

	Allowed            ImpactTotal `json:"allowed"`
	Denied             ImpactTotal `json:"denied"`
	ReasonChangedTotal ImpactTotal `json:"otherwiseTotal"`
	// Unchanged counts connections with the same decision.
	Unchanged int64 `json:"unchanged"`
	// Uncertain lists what is not known: ambiguous sources, times that were not watched, flows that were lost.
	Uncertain []Uncertain `json:"uncertain"`
	// Truncated reports whether a list has more lines than fit.
	Truncated bool `json:"truncated"`
}

// ImpactTotal counts connections, each once, and their clients and resources.
type ImpactTotal struct {
	Connections int64 `json:"connections"`
	Clients     int   `json:"clients"`
	Resources   int   `json:"resources"`
}

// ImpactLine is one client at one port of one resource in one member.
type ImpactLine struct {
	Cluster string `json:"cluster"`
	// Subject and Resource are names. Without a name, Source or Destination describes what was seen.
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
	// Statements determine the decision after the change, or before it if none does after.
	Statements []policy.Ref `json:"statements,omitempty"`
}

// Uncertain is a fact that the replay cannot know, with the reason.
type Uncertain struct {
	Cluster string    `json:"cluster"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Source, Resource and Count are set if it is about connections that were seen.
	Source   string          `json:"source,omitempty"`
	Resource string          `json:"resource,omitempty"`
	Count    int64           `json:"count,omitempty"`
	Reason   message.Message `json:"reason"`
}
