package notify

import (
	"maps"
	"slices"
	"time"
)

// Bulletin is something that happened to a resource without a ticket: an announcement, a temporary audit, a stop. Who
// did it decides whom it concerns, because only then it is known who was seen there.
type Bulletin struct {
	Event string    `json:"event"` // unique: the same event is told once
	At    time.Time `json:"at"`
	Facts Facts     `json:"facts"`
	// People who are told, each with what of it is his.
	People map[string][]About `json:"people"`
}

// ForBulletin tells everybody concerned but the one who did it. The first message is for receivers that are nobody's own.
func ForBulletin(b Bulletin, people People) []Message {
	if b.Facts.ActorID != "" {
		b.Facts.Actor = people.Name(b.Facts.ActorID)
	}
	all := b.Facts
	all.Told = map[string]Kind{}
	var out []Message
	for _, p := range slices.Sorted(maps.Keys(b.People)) {
		if p == b.Facts.ActorID {
			continue
		}
		f := b.Facts
		if own := b.People[p]; len(own) > 0 {
			f.Items = own
		}
		f.clean()
		all.Told[p] = KindRollout
		out = append(out, Message{Person: p, Event: b.Event, Kind: KindRollout, At: b.At, Facts: f})
	}
	all.clean()
	return append([]Message{{Event: b.Event, Kind: KindRollout, At: b.At, Facts: all}}, out...)
}
