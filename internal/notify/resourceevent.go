package notify

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// These are the events of resources.
const (
	// EventAnnounced says that a resource will be enforced.
	EventAnnounced = "announced"
	// EventTemporaryAudit says that a resource is in Audit for some time.
	EventTemporaryAudit = "temporary-audit"
	// EventTemporaryAuditEnded says that a person ended a temporary audit.
	EventTemporaryAuditEnded = "temporary-audit-ended"
	// EventFleetDowngrade says that a person began a fleet downgrade: many resources are in Audit for some time.
	EventFleetDowngrade = "downgrade"
	// EventFleetDowngradeEnded says that a person ended a fleet downgrade.
	EventFleetDowngradeEnded = "downgrade-ended"
	// EventRolloutStopped says that the guard stopped a rollout.
	EventRolloutStopped = "stopped"
	// EventWavesHalted says that the waves of a resource were halted automatically.
	EventWavesHalted = "waves-halted"
	// EventClassWavesHalted says that the waves of a change of a class were halted automatically.
	EventClassWavesHalted = "class-waves-halted"
	// EventFlowsUnwatched says that the guard has no flows of a member.
	EventFlowsUnwatched = "flows-unwatched"
	// EventFlowsLost says that flows of a member were lost.
	EventFlowsLost = "flows-lost"
	// EventReviewDue says that the observed clients of a resource should be reviewed again.
	EventReviewDue = "proposal-review-due"
	// EventClientNotice says that the owners of a resource do not want to grant an application the access that was seen.
	EventClientNotice = "client-notice"
)

// These are the events of access reviews.
const (
	// EventReviewOpened says that lines of a review wait for the recipient.
	EventReviewOpened = "review-opened"
	// EventReviewReminded says that lines of a review still wait for the recipient.
	EventReviewReminded = "review-reminded"
	// EventReviewReopened says that a decision of the recipient is void, because the access changed before it was applied.
	EventReviewReopened = "review-reopened"
	// EventReviewAbandoned says that the lines of a review could not be collected.
	EventReviewAbandoned = "review-abandoned"
	// EventReviewClosed says that a review is closed.
	EventReviewClosed = "review-closed"
)

// ResourceEvent reports a change of a resource without a ticket, for example an announcement, a temporary audit, or a stopped rollout. The author
// of the event lists the recipients, because only the rollout has recorded who was observed using the resource.
type ResourceEvent struct {
	Event string    `json:"event"` // unique: a repeated event is notified once
	At    time.Time `json:"at"`
	Facts Facts     `json:"facts"`
	// Kind is the kind of the notification; empty means KindRollout.
	Kind Kind `json:"kind,omitempty"`
	// Counts are the numbers that concern the recipients, if they differ; see Facts.Count.
	Counts map[string]int64 `json:"counts,omitempty"`
	// People are the recipients, each with the items that concern them.
	People map[string][]About `json:"people"`
}

// MessagesForResourceEvent returns a message for each recipient except the actor. The first message has no person; it is for webhooks
// and channels.
func MessagesForResourceEvent(b ResourceEvent, people People) []Message {
	if b.Facts.ActorID != "" {
		b.Facts.Actor = people.Name(b.Facts.ActorID)
	}
	kind := cmp.Or(b.Kind, KindRollout)
	all := b.Facts
	all.Recipients = map[string]Kind{}
	var out []Message
	for _, p := range slices.Sorted(maps.Keys(b.People)) {
		if p == b.Facts.ActorID {
			continue
		}
		f := b.Facts
		if own := b.People[p]; len(own) > 0 {
			f.Items = own
		}
		if n, ok := b.Counts[p]; ok {
			f.Count = n
		}
		f.clean()
		all.Recipients[p] = kind
		out = append(out, Message{Person: p, Event: b.Event, Kind: kind, At: b.At, Facts: f})
	}
	all.clean()
	return append([]Message{{Event: b.Event, Kind: kind, At: b.At, Facts: all}}, out...)
}
