package notify

import (
	"fmt"

	"github.com/acp-io/acp/internal/approval"
)

// MessagesForDelegation returns messages to both sides of a delegation that has begun or ended, except the actor. The first
// message has no person.
func MessagesForDelegation(d approval.Delegation, people People) []Message {
	f := Facts{
		Event:       "begun",
		Actor:       people.Name(d.CreatedBy),
		Requester:   people.Name(d.From),
		For:         people.Name(d.To),
		Reason:      d.Reason,
		Begin:       d.Start,
		Until:       d.End,
		RequesterID: d.From,
		ActorID:     d.CreatedBy,
	}
	actor, at := d.CreatedBy, d.CreatedAt
	if !d.EndedAt.IsZero() {
		f.Event, f.Actor, f.ActorID = "ended", people.Name(d.EndedBy), d.EndedBy
		actor, at = d.EndedBy, d.EndedAt
	}
	f.clean()
	all := f
	all.Recipients = map[string]Kind{}
	event := fmt.Sprintf("D-%d/%s", d.ID, f.Event)
	var out []Message
	for _, p := range []string{d.From, d.To} {
		if p == actor {
			continue
		}
		all.Recipients[p] = KindDelegation
		out = append(out, Message{Person: p, Event: event, Kind: KindDelegation, At: at, Facts: f})
	}
	return append([]Message{{Event: event, Kind: KindDelegation, At: at, Facts: all}}, out...)
}
