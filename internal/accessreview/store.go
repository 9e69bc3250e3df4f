package accessreview

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/notify"
)

// ErrNotBuilding means that another attempt collects the lines of a campaign, or that they are collected already.
var ErrNotBuilding = errors.New("the lines of the campaign are not collected by this attempt")

// ErrNotFound means that there is no such campaign or line.
var ErrNotFound = errors.New("no such campaign or line")

// News are the records that are stored in the transaction of a change.
type News struct {
	Entries       []ledger.Entry
	Notifications []notify.ResourceEvent
}

// Store stores campaigns with their lines. Every method is one transaction: all of it is durable on return, or none. An
// error of a change is returned unchanged, and nothing is stored. Times have microseconds, in UTC. Several replicas may use
// one store. Implementations pass the suite of package reviewtest.
type Store interface {
	// Create numbers and stores a new campaign with its ledger entry, which news makes.
	Create(ctx context.Context, c Campaign, news func(Campaign) News) (Campaign, error)
	// Campaign returns one campaign, or ErrNotFound.
	Campaign(ctx context.Context, id int64) (Campaign, error)
	// Campaigns returns campaigns, newest first.
	Campaigns(ctx context.Context, f CampaignFilter) ([]Campaign, error)
	// Change loads a campaign, applies a change, and stores it with its news. Changes of one campaign, and those of its lines,
	// are serialized.
	Change(ctx context.Context, id int64, change func(*Campaign) (News, error)) (Campaign, error)

	// Rebuild removes the lines of a campaign that is being prepared, and makes build the attempt that may add some.
	Rebuild(ctx context.Context, id int64, build string) error
	// AddLines adds lines with their numbers. It returns ErrNotBuilding if the campaign is not being prepared by the attempt.
	AddLines(ctx context.Context, id int64, build string, lines []Line) error
	// ChangeLines loads lines, applies a change to each and stores those that it changed, with their news. The change
	// gets the campaign as it is in the same transaction. Errors are returned by the number of the line, and leave the line as
	// it was; a number without a line has ErrNotFound.
	ChangeLines(
		ctx context.Context,
		id int64,
		numbers []int,
		change func(Campaign, *Line) (changed bool, n News, err error),
	) ([]Line, map[int]error, error)
	// Lines returns lines, ordered by campaign, the newest first, and number, unless the filter says otherwise.
	Lines(ctx context.Context, f LineFilter) ([]Line, error)
	// Count counts the lines of campaigns; those that one of the people reviews, each once, if there are any people.
	Count(ctx context.Context, people []string, campaigns ...int64) (map[int64]Counts, error)
	// Waiting returns the number of open lines of a campaign by reviewer.
	Waiting(ctx context.Context, id int64) (map[string]int, error)
	// Reviews reports whether one of the people is a reviewer of a line of the campaign.
	Reviews(ctx context.Context, id int64, people []string) (bool, error)

	// Lead reports whether the holder holds the lease of the worker until now+ttl. It acquires the lease if it is free or
	// expired.
	Lead(ctx context.Context, holder string, now time.Time, ttl time.Duration) (bool, error)
}

// CampaignFilter selects campaigns; zero fields select all.
type CampaignFilter struct {
	States    []State
	Reviewers []string // one of them reviews a line
	Before    int64    // only ids below; 0 begins with the newest
	Limit     int      // 0 means all
}

// LineFilter selects lines; zero fields select all.
type LineFilter struct {
	Campaign        int64
	Reviewers       []string // one of them reviews the line
	States          []LineState
	Outcomes        []Outcome
	Recommendations []Decision
	// Text is a part of the name or the title of the application or the resource, in any case. Of a statement with many names, not all are found.
	Text string
	// Pair selects the lines of one application and one resource, or of one scope of a statement; see Line.Pair.
	Pair approval.GrantPair
	// Descending reverses the order of the numbers within the campaign, which has to be given.
	Descending bool
	// After continues after a line in the order.
	After Position
	Limit int // 0 means all
}

// Position is the position of a line in a list.
type Position struct {
	Campaign int64
	Number   int
}
