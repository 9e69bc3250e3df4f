package insight

import (
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// UnusedInput says where to look for grants that nobody uses.
type UnusedInput struct {
	Snapshot *policy.Snapshot
	// Resources: only statements about one of them, by name or by a wildcard; none: all.
	Resources []string
	// Policy: only its statements; empty: all.
	Policy string
	// Fleet tells in which members the resources are placed, which all have to have been watched.
	Fleet Fleet
	// QuietFor is how long there must have been no traffic; 0: DefaultQuietFor.
	QuietFor time.Duration
	Now      time.Time
	// Since is how far back the last use is looked for; zero: as far as the store goes.
	Since time.Time
	// Granted tells when a statement came into force, if that is known. A younger one than QuietFor is not unused. Nil:
	// its notBefore and the age of its policy have to do.
	Granted func(policy.Ref) (time.Time, bool)
}

// UnusedStatement is an allow without traffic: its removal is proposed.
type UnusedStatement struct {
	Ref       policy.Ref         `json:"ref"`
	Statement v1alpha1.Statement `json:"statement"`
	// LastUsed is nil when no use is known.
	LastUsed *time.Time `json:"lastUsed,omitempty"`
	// DaysObserved are those of the quiet time in which flows were watched.
	DaysObserved int `json:"daysObserved"`
	// Why is a sentence for people.
	Why string `json:"why"`
}

// EvidenceInput says what is to be scored.
type EvidenceInput struct {
	Snapshot *policy.Snapshot
	Resource string
	Now      time.Time
	// Window is the past that is looked at; 0: DefaultWindow.
	Window time.Duration
	// Threshold is the score that is enough; 0: DefaultThreshold.
	Threshold int
	// Fleet tells in which members the resources are placed. A placement that is not known scores nothing.
	Fleet Fleet
	// Placement, when set, is that of a change of the resources' class: where it places them counts beside where they are.
	Placement *v1alpha1.Placement
	// Watch is what Watched returned for the same window, of all members; nil: it is read from the store.
	Watch *Watch
}

// Score says how far the flows of a resource can be relied upon.
type Score struct {
	// Value is 0 to 100.
	Value     int `json:"value"`
	Threshold int `json:"threshold"`
	// Enough: the value reaches the threshold, and no part is without any point.
	Enough bool   `json:"enough"`
	Parts  []Part `json:"parts"`
	// Clients are the names that were seen, Uncovered those of them that no statement allows in full, Unattributed the
	// sources without a name that none does.
	Clients      int `json:"clients"`
	Uncovered    int `json:"uncovered"`
	Unattributed int `json:"unattributed"`
}

// Missing are the sentences of the parts that are not full.
func (s *Score) Missing() (out []string) {
	for _, p := range s.Parts {
		if p.Missing != "" {
			out = append(out, p.Missing)
		}
	}
	return out
}

// PartName says what a part of the score is about.
type PartName string

const (
	// PartObserved: how much of the window was watched, in the worst member.
	PartObserved PartName = "observed"
	// PartWeekly: how much of each weekday was watched at least once.
	PartWeekly PartName = "weekly"
	// PartLoss: how few flows were lost.
	PartLoss PartName = "loss"
	// PartNewcomers: how few clients that nothing allows came only in the later half of the window.
	PartNewcomers PartName = "newcomers"
	// PartUnattributed: how few connections come from sources without a name that nothing allows.
	PartUnattributed PartName = "unattributed"
	// PartLongLived: how few clients were seen only in the midst of a connection, without a verdict.
	PartLongLived PartName = "long-lived"
)

// Part of a score.
type Part struct {
	Name   PartName `json:"name"`
	Points int      `json:"points"`
	Of     int      `json:"of"`
	// Missing says what is missing and what to do; empty when it is full.
	Missing string `json:"missing,omitempty"`
}
