package accessreview

import (
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
)

// Events of campaigns in notifications.
const (
	eventOpened   = notify.EventReviewOpened
	eventReminded = notify.EventReviewReminded
	eventClosed   = notify.EventReviewClosed
	// eventReopened says that a decision became void, because the grant changed before it was applied.
	eventReopened = notify.EventReviewReopened
	// eventAbandoned says that the lines of a campaign could not be collected.
	eventAbandoned = notify.EventReviewAbandoned
)

// notification returns the notification of people about a campaign, each with their number of lines.
func notification(c *Campaign, event string, now time.Time, counts map[string]int64) notify.ResourceEvent {
	people := map[string][]notify.About{}
	for p := range counts {
		people[p] = nil
	}
	return notify.ResourceEvent{Event: fmt.Sprintf("%s/%s/%d", FormatID(c.ID), event, now.UnixNano()), At: now, Kind: notify.KindAccessReview,
		People: people, Counts: counts, Facts: notify.Facts{Event: event, Comment: c.Name, Until: c.Deadline, Page: "reviews/" + FormatID(c.ID),
			Items: []notify.About{{Object: c.Name}}}}
}

// reopening returns the notification of the person whose decision about a line became void, and of the person for whom they
// decided.
func reopening(c *Campaign, l *Line, now time.Time) notify.ResourceEvent {
	people := map[string]int64{l.DecidedBy: 1}
	if l.OnBehalfOf != "" {
		people[l.OnBehalfOf] = 1
	}
	n := notification(c, eventReopened, now, people)
	n.Event = fmt.Sprintf("%s/%s/%d", l.Ref(), eventReopened, now.UnixNano())
	subjects, resources := l.Ends()
	n.Facts.Message = message.ReviewReopened(notify.Names(subjects), notify.Names(resources))
	n.Facts.Items = []notify.About{{Application: notify.Names(subjects), Resource: notify.Names(resources), Actions: l.Actions}}
	return n
}

func notifications(c *Campaign, event string, now time.Time, counts map[string]int64) []notify.ResourceEvent {
	return []notify.ResourceEvent{notification(c, event, now, counts)}
}
