// Package accessreview contains recertification campaigns: which accesses are reviewed, by whom, with what evidence, what
// was decided, and what became of each. A campaign is prepared by the Worker, decided by people through the Service, and
// closed by the Worker when every line has an outcome. Grants are changed only by the approval service; a decision is bound
// to the version of the grant that was shown. The package must not depend on HTTP, SQL or a Kubernetes client.
package accessreview

import (
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// State is the state of a campaign.
type State string

const (
	// StatePreparing means that the lines are being collected.
	StatePreparing State = "preparing"
	// StateOpen means that lines can be decided, or that decisions are being applied.
	StateOpen State = "open"
	// StateClosed means that every line has an outcome.
	StateClosed State = "closed"
)

// Silence is what happens to an access that nobody decided by the deadline.
type Silence string

const (
	// SilenceShorten ends the access after a grace period.
	SilenceShorten Silence = "shorten"
	// SilenceRevoke ends the access at the deadline.
	SilenceRevoke Silence = "revoke"
	// SilenceKeep changes nothing.
	SilenceKeep Silence = "keep"
)

// Valid reports whether the silence is one of the constants.
func (s Silence) Valid() bool { return s == SilenceShorten || s == SilenceRevoke || s == SilenceKeep }

// Scope selects the accesses of a campaign. An empty field does not restrict; several values of one field are alternatives. A statement is selected if
// one of the resources that it covers is.
type Scope struct {
	// Classes are names of resource classes.
	Classes []string `json:"classes,omitempty"`
	// Teams are ids of groups that own the application or the resource.
	Teams         []string              `json:"teams,omitempty"`
	Sensitivities []catalog.Sensitivity `json:"sensitivities,omitempty"`
	// OlderThan is the least time since the access was approved first.
	OlderThan time.Duration `json:"olderThan,omitempty"`
}

// Limits of a campaign. api/openapi.yaml has the same.
const (
	MaxName       = 120
	MaxScope      = 50
	MaxRules      = 10
	MinLength     = time.Hour
	MaxLength     = 180 * 24 * time.Hour
	MinGrace      = 24 * time.Hour
	MaxGrace      = 180 * 24 * time.Hour
	MaxOlderThan  = 10 * approval.MaxDuration
	MinWindow     = minQuiet // a shorter one proves no lack of use
	MaxWindow     = 365
	DefaultWindow = 90
)

// bounds limits what one campaign stores.
type bounds struct {
	lines       int
	assignments int // pairs of a line and one of its reviewers
}

var defaultBounds = bounds{lines: 200_000, assignments: 1_000_000}

// Campaign is one review of many accesses.
type Campaign struct {
	ID        int64     `json:"-"`
	State     State     `json:"-"`
	Version   int64     `json:"-"` // increases with every stored change
	CreatedAt time.Time `json:"-"`

	Name      string        `json:"name"`
	CreatedBy string        `json:"createdBy"`
	Scope     Scope         `json:"scope"`
	Rules     []Rule        `json:"rules"`
	Silence   Silence       `json:"silence"`
	Grace     time.Duration `json:"grace,omitempty"` // only of SilenceShorten
	// Deadline is when the decisions are due.
	Deadline time.Time `json:"deadline"`
	// WindowDays is the number of days of flows that the evidence covers.
	WindowDays int `json:"windowDays"`
	// RemindEvery is the interval of reminders; NextReminder is zero if there are no more.
	RemindEvery  time.Duration `json:"remindEvery,omitempty"`
	NextReminder time.Time     `json:"nextReminder,omitzero"`

	// Build identifies the attempt to collect the lines that may add some.
	Build string `json:"build,omitempty"`
	// Unreadable reports whether the flows could not be read at the last attempt, and UnreadableSince is the first such attempt.
	Unreadable      bool      `json:"unreadable,omitempty"`
	UnreadableSince time.Time `json:"unreadableSince,omitzero"`
	OpenedAt        time.Time `json:"openedAt,omitzero"`
	ClosedAt        time.Time `json:"closedAt,omitzero"`
	// EndedBy is who ended the campaign before its deadline, with the reason.
	EndedBy   string    `json:"endedBy,omitempty"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	EndReason string    `json:"endReason,omitempty"`
	// EndMessage is why the portal ended the campaign before its deadline, if no person did.
	EndMessage message.Message `json:"endMessage,omitzero"`
	// Swept is the instant up to which changes of grants were compared with the lines.
	Swept time.Time `json:"swept,omitzero"`
	// Final are the counts of a closed campaign.
	Final *Counts `json:"final,omitempty"`
}

// FormatID returns the name of a campaign for people, for example R-3.
func FormatID(id int64) string { return "R-" + strconv.FormatInt(id, 10) }

// ParseID returns the number of the name of a campaign.
func ParseID(id string) (int64, bool) {
	digits, ok := strings.CutPrefix(id, "R-")
	if !ok || len(digits) > 12 {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0 && FormatID(n) == id
}

// Deciding reports whether people can decide lines at an instant.
func (c *Campaign) Deciding(now time.Time) bool {
	return c.State == StateOpen && now.Before(c.Deadline) && c.EndedAt.IsZero()
}

// Counts are the numbers of lines by what is known of them.
type Counts struct {
	Total     int `json:"total"`
	Open      int `json:"open"`
	Applying  int `json:"applying"` // decided, and not applied yet
	Kept      int `json:"kept"`
	Shortened int `json:"shortened"`
	Revoked   int `json:"revoked"`
	Ended     int `json:"ended"` // ended without a decision of the review
	Skipped   int `json:"skipped"`
	Silent    int `json:"silent"` // of all: those that nobody decided
	// The recommendations of the open lines.
	RecommendKeep, RecommendShorten, RecommendRevoke, RecommendNone int
}
