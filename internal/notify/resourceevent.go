package notify

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// ResourceEvent reports a change of a resource without a ticket: an announcement, a temporary audit, or a stopped rollout. The author
// of the event lists the recipients, because only the rollout knows who was observed using the resource.
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
