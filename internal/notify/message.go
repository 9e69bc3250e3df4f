// Package notify defines the notifications about tickets, delegations and the rollout of resources: the recipients of an event
// (MessagesForTicket), the texts, the time and channel (Preferences), and the processing of the outbox (Router, Dispatcher). It
// does not change tickets, and a failing channel does not delay them. The senders are in packages below it; notify/gormstore is
// the only gorm code for it.
package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// Kind is the reason for a notification. People choose channels and times by kind.
type Kind string

// The kinds follow, most urgent first: of one change a person gets the most urgent kind that applies.
const (
	// KindBreakGlass says that access has begun by break-glass, before it was approved.
	KindBreakGlass Kind = "break-glass"
	// KindVoided says that a request now grants more than was shown, so that earlier approvals are void.
	KindVoided Kind = "voided"
	// KindEscalated says that a decision was not made in time, and that the recipient may now make it, too.
	KindEscalated Kind = "escalated"
	// KindNeeded says that a step waits for the recipient's decision.
	KindNeeded Kind = "approval-needed"
	// KindUndecided says that nobody decides a request: its approvers did not answer the last reminder yet, or nobody can decide it,
	// because the on-call schedule of its step does not exist any more.
	KindUndecided Kind = "undecided"
	// KindFailed says that an approved change could not be applied.
	KindFailed Kind = "failed"
	// KindRollout says that a resource will be enforced, is temporarily in Audit, or has clients that someone has to look at.
	KindRollout Kind = "rollout"
	// KindAccessReview says that an access review waits for the recipient, or that it is closed.
	KindAccessReview Kind = "access-review"
	// KindDecided says that the recipient's request was decided, or rejected by a timeout.
	KindDecided Kind = "decided"
	// KindEffective says that the recipient's request is effective in all members.
	KindEffective Kind = "effective"
	// KindRevoked says that access has ended, by revocation or expiry.
	KindRevoked Kind = "revoked"
	// KindExpires says that access ends soon.
	KindExpires Kind = "expires-soon"
	// KindColleague says that the recipient's decision is no longer needed.
	KindColleague Kind = "decided-by-colleague"
	// KindComment says that a comment was added to the ticket.
	KindComment Kind = "comment"
	// KindDelegation says that a delegation began or ended.
	KindDelegation Kind = "delegation"
)

// Kinds returns all kinds, most urgent first.
func Kinds() []Kind {
	return []Kind{
		KindBreakGlass,
		KindVoided,
		KindEscalated,
		KindNeeded,
		KindUndecided,
		KindFailed,
		KindRollout,
		KindAccessReview,
		KindDecided,
		KindEffective,
		KindRevoked,
		KindExpires,
		KindColleague,
		KindComment,
		KindDelegation,
	}
}

// Message is one notification of one person. It is rendered when it is displayed or sent, in the language that the person uses at
// that time.
type Message struct {
	Person string // person ID; empty for messages to webhooks and channels
	Event  string // identifies the change; with the person and the channel it is unique
	Kind   Kind
	At     time.Time
	Ticket int64 // 0 if it is not about a ticket
	Facts  Facts
}

// Facts are the data from which a message is rendered. They contain texts of users and names of people and things, and no
// secrets.
type Facts struct {
	Event      string `json:"event"` // the event, for example step-approved
	TicketKind string `json:"ticketKind,omitempty"`
	State      string `json:"state,omitempty"` // the ticket's state after the change
	Actor      string `json:"actor,omitempty"` // display name, as are ActorFor, Requester and For
	ActorFor   string `json:"actorFor,omitempty"`
	Requester  string `json:"requester,omitempty"`
	For        string `json:"for,omitempty"` // the person for whom the recipient decides
	Step       string `json:"step,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Comment    string `json:"comment,omitempty"`
	// Message is the reason why the portal made the change, if no person did.
	Message message.Message `json:"message,omitzero"`
	Items   []About         `json:"items,omitempty"` // at most MaxItems of the items concerned
	More    int             `json:"more,omitempty"`  // number of further items
	Until   time.Time       `json:"until,omitzero"`
	Begin   time.Time       `json:"begin,omitzero"`
	Count   int64           `json:"count,omitempty"`   // number of refused connections
	Cluster string          `json:"cluster,omitempty"` // member in which they were refused
	// Page is the path of the portal's page with the details; empty for the page of the ticket or of the delegations.
	Page string `json:"page,omitempty"`
	// ActorID and RequesterID are person IDs, for receivers that are programs.
	ActorID     string `json:"actorId,omitempty"`
	RequesterID string `json:"requesterId,omitempty"`
	// Answer is set if the recipient can decide the ticket in the message.
	Answer *approval.Answerable `json:"answer,omitempty"`
	// Recipients are the people who get a message about the change, with its kind. They are set only in messages without a
	// person.
	Recipients map[string]Kind `json:"told,omitempty"`
}

// About describes one item of a ticket.
type About struct {
	Application string `json:"application,omitempty"`
	Resource    string `json:"resource,omitempty"`
	// ApplicationTitle and ResourceTitle are texts for people that replace Application and Resource, where these are not ids of the catalog.
	ApplicationTitle string   `json:"applicationTitle,omitempty"`
	ResourceTitle    string   `json:"resourceTitle,omitempty"`
	Actions          []string `json:"actions,omitempty"`
	Object           string   `json:"object,omitempty"` // of a change, in the form Kind/name
	From             string   `json:"from,omitempty"`   // From and To are modes
	To               string   `json:"to,omitempty"`
}

// MaxItems and maxText bound a message; the ticket has the complete data.
const (
	// MaxItems is the maximum number of items in a message.
	MaxItems = 10
	maxText  = 500 // of a reason or a comment, in characters
)

// namesInAbout is the number of names of which Names returns the text.
const namesInAbout = 3

// Names returns the first of several names, and the number of the others, for About.
func Names(names []string) string {
	if more := len(names) - namesInAbout; more > 0 {
		return strings.Join(names[:namesInAbout], ", ") + fmt.Sprintf(" +%d", more)
	}
	return strings.Join(names, ", ")
}

func (a About) String() string {
	switch {
	case a.Object != "" && a.To != "" && a.From != "":
		return fmt.Sprintf("%s: %s → %s", a.Object, a.From, a.To)
	case a.Object != "":
		return a.Object
	case a.Application == "":
		return a.Resource
	}
	s := cmp.Or(a.ApplicationTitle, a.Application) + " → " + cmp.Or(a.ResourceTitle, a.Resource)
	if len(a.Actions) > 0 {
		s += " (" + strings.Join(a.Actions, ", ") + ")"
	}
	return s
}

// Line converts text to a single line, so that users' text cannot begin a new header, field or line. It replaces white space by
// single spaces, and removes characters that are not printable or that change the direction of writing.
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

// cut shortens text to n characters.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// clean makes the facts safe for every channel: single-line texts of bounded length, and at most MaxItems items.
func (f *Facts) clean() {
	for _, s := range []*string{&f.Actor, &f.ActorFor, &f.Requester, &f.For, &f.Step, &f.Reason, &f.Comment} {
		*s = cut(Line(*s), maxText)
	}
	if len(f.Items) > MaxItems {
		f.More, f.Items = f.More+len(f.Items)-MaxItems, slices.Clone(f.Items[:MaxItems])
	}
}
