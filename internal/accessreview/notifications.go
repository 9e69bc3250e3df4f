package accessreview

import (
	"fmt"
	"time"

	"github.com/acp-io/acp/internal/notify"
)

// Events of campaigns in notifications.
const (
	eventOpened   = notify.EventReviewOpened
	eventReminded = notify.EventReviewReminded
	eventClosed   = notify.EventReviewClosed
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

func notifications(c *Campaign, event string, now time.Time, counts map[string]int64) []notify.ResourceEvent {
	return []notify.ResourceEvent{notification(c, event, now, counts)}
}
