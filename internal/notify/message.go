// Package notify owns what people are told about tickets, delegations and the rollout of resources: who is told what (For), in which words, and
// when (Preferences); and how the outbox is worked off (Router, Courier). It decides nothing about tickets, and a
// channel that is dead delays none. Senders are in the packages below it; notify/gormstore is the only gorm code for it.
package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Kind is why somebody is told something; people choose by it.
type Kind string

// Kinds, the most urgent first: of one change a person is told the first that concerns him.
const (
	KindBreakGlass Kind = "break-glass"          // access is open before anybody approved it
	KindVoided     Kind = "voided"               // the request grew: the approvals so far are void
	KindEscalated  Kind = "escalated"            // nobody decided in time; now it waits for him, too
	KindNeeded     Kind = "approval-needed"      // a step waits for his decision, or still does
	KindFailed     Kind = "failed"               // what was approved is not in force
	KindRollout    Kind = "rollout"              // a resource is being closed, or was opened for a time
	KindDecided    Kind = "decided"              // his request was decided, or denied by time
	KindEffective  Kind = "effective"            // what he asked for is in force everywhere
	KindRevoked    Kind = "revoked"              // access has ended: revoked or expired
	KindExpires    Kind = "expires-soon"         // access ends soon
	KindColleague  Kind = "decided-by-colleague" // it does not wait for him any more
	KindComment    Kind = "comment"              // somebody wrote on the ticket
	KindDelegation Kind = "delegation"           // somebody decides for somebody
)

// Kinds in the order of their urgency.
func Kinds() []Kind {
	return []Kind{KindBreakGlass, KindVoided, KindEscalated, KindNeeded, KindFailed, KindRollout, KindDecided, KindEffective, KindRevoked, KindExpires,
		KindColleague, KindComment, KindDelegation}
}

// Message is one thing that one person is told. Its words are found when it is shown or sent, in the language that the
// person has then.
type Message struct {
	Person string // person id; empty: for receivers that are nobody's own
	Event  string // the same change has the same event; with the person and the channel it is unique
	Kind   Kind
	At     time.Time
	Ticket int64 // 0: about no ticket
	Facts  Facts
}

// Facts are what the words are made of. They hold what people wrote and the names of people and things, nothing that
// opens anything.
type Facts struct {
	Event      string    `json:"event"` // what happened, for example step-approved
	TicketKind string    `json:"ticketKind,omitempty"`
	State      string    `json:"state,omitempty"` // the ticket's, after the change
	Actor      string    `json:"actor,omitempty"` // names as people know them
	ActorFor   string    `json:"actorFor,omitempty"`
	Requester  string    `json:"requester,omitempty"`
	For        string    `json:"for,omitempty"` // for whom the person who is told decides
	Step       string    `json:"step,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Comment    string    `json:"comment,omitempty"`
	Items      []About   `json:"items,omitempty"` // at most MaxItems of those concerned
	More       int       `json:"more,omitempty"`  // how many further ones
	Until      time.Time `json:"until,omitzero"`
	Begin      time.Time `json:"begin,omitzero"`
	Count      int64     `json:"count,omitempty"`   // of refused connections
	Cluster    string    `json:"cluster,omitempty"` // where they were
	// Page of the portal that has the rest, below its address; empty: the ticket's or the delegations'.
	Page string `json:"page,omitempty"`
	// The people's ids, for receivers that are programs.
	ActorID     string `json:"actorId,omitempty"`
	RequesterID string `json:"requesterId,omitempty"`
	// Told are the people who are told, and why; only in messages to no person.
	Told map[string]Kind `json:"told,omitempty"`
}

// About is one item of a ticket.
type About struct {
	Application string   `json:"application,omitempty"`
	Resource    string   `json:"resource,omitempty"`
	Actions     []string `json:"actions,omitempty"`
	Object      string   `json:"object,omitempty"` // of a change: Kind/name
	From        string   `json:"from,omitempty"`   // modes
	To          string   `json:"to,omitempty"`
}

// Limits of a message: it is news, and the ticket has the rest.
const (
	MaxItems = 10
	maxText  = 500 // of a reason or a comment, in characters
)

func (a About) String() string {
	switch {
	case a.Object != "" && a.To != "" && a.From != "":
		return fmt.Sprintf("%s: %s → %s", a.Object, a.From, a.To)
	case a.Object != "":
		return a.Object
	case a.Application == "":
		return a.Resource
	}
	s := a.Application + " → " + a.Resource
	if len(a.Actions) > 0 {
		s += " (" + strings.Join(a.Actions, ", ") + ")"
	}
	return s
}

// Line makes text fit one line: what people wrote must not begin a new header, field or line. Characters that are not
// printed, or that turn the direction of writing around, become spaces or go.
func Line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// cut shortens text to a number of characters.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// clean prepares facts for every channel at once.
func (f *Facts) clean() {
	for _, s := range []*string{&f.Actor, &f.ActorFor, &f.Requester, &f.For, &f.Step, &f.Reason, &f.Comment} {
		*s = cut(Line(*s), maxText)
	}
	if len(f.Items) > MaxItems {
		f.More, f.Items = f.More+len(f.Items)-MaxItems, slices.Clone(f.Items[:MaxItems])
	}
}
