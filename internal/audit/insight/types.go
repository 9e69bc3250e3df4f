package insight

import (
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// UnusedInput is the input of Unused.
type UnusedInput struct {
	Snapshot *policy.Snapshot
	// Resources restricts the search to statements about one of them, by name or by a wildcard; none means all.
	Resources []string
	// Policy restricts the search to its statements; empty means all.
	Policy string
	// Fleet determines in which members the resources are placed, all of which must have been watched.
	Fleet Fleet
	// QuietFor is the required time without traffic; 0 means DefaultQuietFor.
	QuietFor time.Duration
	Now      time.Time
	// Since is how far back the last use is searched; zero means the whole store.
	Since time.Time
	// Granted returns when a statement came into force, if that is known. A statement younger than QuietFor is not
	// unused. If Granted is nil, its notBefore and the age of its policy are used.
	Granted func(policy.Ref) (time.Time, bool)
}

// UnusedStatement is an allow without traffic, whose removal is proposed.
type UnusedStatement struct {
	Ref       policy.Ref         `json:"ref"`
	Statement v1alpha1.Statement `json:"statement"`
	// LastUsed is nil if no use is known.
	LastUsed *time.Time `json:"lastUsed,omitempty"`
	// DaysObserved is the number of days of the quiet time on which flows were watched.
	DaysObserved int `json:"daysObserved"`
	// Reason says why the removal is proposed.
	Reason message.Message `json:"reason"`
}

// EvidenceInput is the input of Evidence.
type EvidenceInput struct {
	Snapshot *policy.Snapshot
	Resource string
	Now      time.Time
	// Window is the period that is evaluated; 0 means DefaultWindow.
	Window time.Duration
	// Threshold is the required score; 0 means DefaultThreshold.
	Threshold int
	// Fleet determines in which members the resources are placed. A placement that is not known scores nothing.
	Fleet Fleet
	// Placement, if set, is the placement of a change of the resources' class: members that it adds are evaluated, too.
	Placement *v1alpha1.Placement
	// Watch is the result of Watched for the same window and all members; if it is nil, it is read from the store.
	Watch *Watch
}

// Score is the reliability of the flows of a resource.
type Score struct {
	// Value is 0 to 100.
	Value     int `json:"value"`
	Threshold int `json:"threshold"`
	// Enough reports whether the value reaches the threshold and no part has zero points.
	Enough bool   `json:"enough"`
	Parts  []Part `json:"parts"`
	// Clients is the number of names that were seen, Uncovered the number of those that statements do not allow
	// completely, and Unattributed the number of sources without a name that no statement allows.
	Clients      int `json:"clients"`
	Uncovered    int `json:"uncovered"`
	Unattributed int `json:"unattributed"`
}

// Missing returns what the parts lack that are not full.
func (s *Score) Missing() (out []message.Message) {
	for _, p := range s.Parts {
		if !p.Missing.IsZero() {
			out = append(out, p.Missing)
		}
	}
	return out
}

// PartName identifies a part of the score.
type PartName string

const (
	// PartObserved rates how much of the window was watched, in the worst member.
	PartObserved PartName = "observed"
	// PartWeekly rates how much of each weekday was watched at least once.
	PartWeekly PartName = "weekly"
	// PartLoss rates how few flows were lost.
	PartLoss PartName = "loss"
	// PartNewcomers rates how few clients without an allow appeared only in the later half of the window.
	PartNewcomers PartName = "newcomers"
	// PartUnattributed rates how few connections come from sources without a name and without an allow.
	PartUnattributed PartName = "unattributed"
	// PartLongLived rates how few clients were seen only within a connection, without a verdict.
	PartLongLived PartName = "long-lived"
)

// Part is one part of a score.
type Part struct {
	Name   PartName `json:"name"`
	Points int      `json:"points"`
	Of     int      `json:"of"`
	// Missing says what is missing and what to do; zero if the part is full.
	Missing message.Message `json:"missing,omitzero"`
}
