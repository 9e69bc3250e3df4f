package accessreview

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/notify"
)

// LineState is the state of a line.
type LineState string

const (
	// LineOpen means that the line waits for a decision.
	LineOpen LineState = "open"
	// LineDecided means that the line is decided, and that the grant is not compared with it yet.
	LineDecided LineState = "decided"
	// LineApplying means that the grant was as shown, and that the decision is being applied to it.
	LineApplying LineState = "applying"
	// LineDone means that the line has an outcome.
	LineDone LineState = "done"
)

// Decision is what a reviewer, or the silence of all, says about an access; also a recommendation.
type Decision string

const (
	// Keep leaves the access as it is.
	Keep Decision = "keep"
	// Shorten gives the access an earlier end.
	Shorten Decision = "shorten"
	// Revoke ends the access.
	Revoke Decision = "revoke"
	// None is the recommendation if too little is known.
	None Decision = "none"
)

// Valid reports whether a reviewer can make the decision.
func (d Decision) Valid() bool { return d == Keep || d == Shorten || d == Revoke }

// Outcome is what became of an access.
type Outcome string

const (
	// OutcomeKept means that the access was confirmed.
	OutcomeKept Outcome = "kept"
	// OutcomeShortened means that the access got an earlier end.
	OutcomeShortened Outcome = "shortened"
	// OutcomeRevoked means that the review ended the access.
	OutcomeRevoked Outcome = "revoked"
	// OutcomeEnded means that the access ended otherwise: it expired, or was revoked outside of the review.
	OutcomeEnded Outcome = "ended"
	// OutcomeSkipped means that the campaign was ended before the line was decided.
	OutcomeSkipped Outcome = "skipped"
)

// Line is one access in a campaign: a grant, or a statement that a ticket granted. Names and evidence are those of the time at which it was collected;
// the grant is updated while the line is open.
type Line struct {
	Campaign int64     `json:"-"`
	Number   int       `json:"-"`
	Version  int64     `json:"-"` // increases with every stored change
	State    LineState `json:"-"`
	Outcome  Outcome   `json:"-"`

	Target                       approval.Target `json:"target"`
	Application, ApplicationName string          // catalog id and resource name; empty for a statement
	Resource, ResourceName       string          // as above
	// Scope is the scope of a statement; nil for a grant.
	Scope *approval.StatementScope `json:"scope,omitempty"`
	// Class is the class of the resource; of a statement, the classes of its resources, separated by ", ".
	Class string `json:"class"`
	// Sensitivity is that of the resource; of a statement, the highest of the resources that it covers, or empty if it covers none.
	Sensitivity catalog.Sensitivity `json:"sensitivity,omitempty"`
	Actions     []string            `json:"actions"`
	Since       time.Time           `json:"since"`
	End         time.Time           `json:"end,omitzero"` // zero if the access has no end
	Requesters  []string            `json:"requesters"`
	SIDs        []string            `json:"sids"`  // of the statements
	Grant       string              `json:"grant"` // the version of the grant; see approval.StandingGrant
	// Changed is when the grant was changed since the line was collected.
	Changed time.Time `json:"changed,omitzero"`

	Rule           Rule     `json:"rule"` // the rule that named the reviewers
	Reviewers      []string `json:"reviewers"`
	Evidence       Evidence `json:"evidence"`
	Recommendation Decision `json:"recommendation"`

	Decision              Decision  `json:"decision,omitempty"`
	DecidedBy, OnBehalfOf string    `json:",omitempty"` // empty if nobody decided
	DecidedAt             time.Time `json:"decidedAt,omitzero"`
	Comment               string    `json:"comment,omitempty"`
	Until                 time.Time `json:"until,omitzero"` // of Shorten
	// Silent reports whether the decision is that of the campaign, because nobody decided.
	Silent    bool      `json:"silent,omitempty"`
	OutcomeAt time.Time `json:"outcomeAt,omitzero"`
}

// Ref returns the name of the line in tickets and the ledger, for example R-3/12.
func (l *Line) Ref() string { return fmt.Sprintf("%s/%d", FormatID(l.Campaign), l.Number) }

// ParseRef returns the campaign and the number of the name of a line.
func ParseRef(ref string) (campaign int64, line int, ok bool) {
	id, number, found := strings.Cut(ref, "/")
	campaign, ok = ParseID(id)
	line, err := strconv.Atoi(number)
	return campaign, line, found && ok && err == nil && line > 0
}

// Pair identifies the access of the line among those of other lines; see approval.PairOf.
func (l *Line) Pair() approval.GrantPair {
	return approval.PairOf(l.ApplicationName, l.ResourceName, l.Scope)
}

// Ends returns the names of the application and of the resource; of a statement, the names of its subjects and of its resources.
func (l *Line) Ends() (subjects, resources []string) {
	if l.Scope != nil {
		return l.Scope.Subjects, l.Scope.Resources
	}
	return []string{l.ApplicationName}, []string{l.ResourceName}
}

// decidable reports whether the line can be decided: it is open, or was kept, which can be changed until the deadline.
func (l *Line) decidable() bool {
	return l.State == LineOpen || l.State == LineDone && l.Outcome == OutcomeKept && !l.Silent
}

// behind reports whether the line differs from its grant in a way that follow changes.
func (l *Line) behind(g approval.StandingGrant, stands bool) bool {
	return (l.State == LineOpen || l.State == LineDecided) && (!stands || g.Version != l.Grant)
}

// follow brings the line up to date with its grant: an ended grant ends the line, and a changed one is to be decided
// again, unless the decision is being applied already. It reports whether the line changed. The decision that a changed
// grant makes void is recorded, and its author is notified.
func (l *Line) follow(c *Campaign, g approval.StandingGrant, stands bool, now time.Time) (bool, News) {
	if !l.behind(g, stands) {
		return false, News{}
	}
	if !stands {
		l.done(OutcomeEnded, now)
		return true, outcomeNews(l, now)
	}
	l.Grant, l.End, l.Actions, l.Requesters, l.SIDs, l.Changed = g.Version, g.End, g.Actions, g.Requesters, g.SIDs, now
	if l.State != LineDecided || l.Silent {
		return true, News{}
	}
	reopened := l.entry(now, "", "review.reopened")
	reopened.Details["decidedBy"] = l.DecidedBy
	news := News{Entries: []ledger.Entry{reopened}, Notifications: []notify.ResourceEvent{reopening(c, l, now)}}
	l.reopen()
	return true, news
}

// reopen removes the decision of the line.
func (l *Line) reopen() {
	l.State, l.Decision, l.DecidedBy, l.OnBehalfOf, l.DecidedAt, l.Comment, l.Until = LineOpen, "", "", "", time.Time{}, "", time.Time{}
	l.Silent = false
}

func (l *Line) done(o Outcome, now time.Time) {
	l.State, l.Outcome, l.OutcomeAt = LineDone, o, now
}

// entry returns a ledger entry about the line.
func (l *Line) entry(at time.Time, actor, action string) ledger.Entry {
	d := map[string]string{"line": strconv.Itoa(l.Number), "target": approval.SID(l.Target.Ticket, l.Target.Item), "grant": l.Grant,
		"recommendation": string(l.Recommendation)}
	if l.Scope != nil {
		d["subjects"], d["resources"] = strings.Join(l.Scope.Subjects, ", "), strings.Join(l.Scope.Resources, ", ")
	} else {
		d["application"], d["resource"] = l.ApplicationName, l.ResourceName
	}
	ledger.SetMessage(d, "evidence", l.Evidence.text())
	for k, v := range map[string]string{"decision": string(l.Decision), "outcome": string(l.Outcome), "onBehalfOf": l.OnBehalfOf, "comment": l.Comment,
		"rule": string(l.Rule)} {
		if v != "" {
			d[k] = v
		}
	}
	if !l.Until.IsZero() {
		d["until"] = l.Until.UTC().Format(time.RFC3339)
	}
	if l.Silent {
		d["silent"] = "true"
	}
	return ledger.Entry{At: at, Actor: actor, Action: action, Object: FormatID(l.Campaign), Details: d}
}
