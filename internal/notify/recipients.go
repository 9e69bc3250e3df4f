package notify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/acp-io/acp/internal/approval"
)

// People provides names, and the people whom a ticket concerns beyond those that it names.
type People interface {
	// Name returns the display name of a person.
	Name(person string) string
	// Title returns the title of the application or resource with a resource name, or the name itself if the catalog does not have it.
	Title(name string) string
	// Owners returns the owners of the item's application, and of its resource or object.
	Owners(it approval.Item) (application, resource []string)
	// Security returns the members of the security team.
	Security() []string
	// Delegates returns the people who currently may decide for the person.
	Delegates(person string) []string
	// Answerable returns what a message shows of a ticket that can be decided in the message; false if it cannot.
	Answerable(t *approval.Ticket) (approval.Answerable, bool)
	// OnCall returns the source of who is on call; it may be nil.
	OnCall() approval.OnCall
}

// MessagesForTicket returns the messages about one change of a ticket: its events from first (inclusive) to last (exclusive). It
// uses the ticket's current state, so that no one is requested to decide what has been decided meanwhile. Each person gets one
// message, of the most urgent kind, and none about their own actions. If there is any message, the first one has no person; it is
// for webhooks and channels.
func MessagesForTicket(t *approval.Ticket, first, last int, people People) []Message {
	x := &messageBuilder{ticket: t, people: people, messages: map[string]*Message{}, event: fmt.Sprintf("%s/%d", t.ID(), first)}
	last = min(last, len(t.Events))
	for i := max(first, 0); i < last; i++ {
		x.process(t.Events[i])
	}
	return x.result()
}

type messageBuilder struct {
	ticket   *approval.Ticket
	people   People
	event    string
	messages map[string]*Message
	current  approval.Event // the event that is being processed
	last     approval.Event // the last event that concerned anybody
}

func (x *messageBuilder) process(e approval.Event) {
	t := x.ticket
	x.current = e
	switch e.Kind {
	case approval.EventSubmitted:
		if !t.BreakGlass {
			x.askApprovers(e)
		}
		x.adopted(e)
		x.holderUpdate(e)
	case approval.EventBreakGlass:
		x.breakGlass(e)
	case approval.EventStepApproved:
		x.stepApproved(e)
	case approval.EventStepRejected:
		x.add(t.Requester, KindDecided, e)
		x.notifyColleagues(e)
	case approval.EventApproved:
		if !t.BreakGlass {
			x.add(t.Requester, KindDecided, e)
		}
	case approval.EventReviewed:
		x.add(t.Requester, KindDecided, e)
		x.notifyColleagues(e)
	case approval.EventWithdrawn:
		x.withdrawn(e)
	case approval.EventTimedOut:
		x.add(t.Requester, KindDecided, e)
		x.notifyColleagues(e)
	case approval.EventEscalated:
		x.escalated(e)
	case approval.EventReminded:
		x.askApprovers(e)
	case approval.EventLastReminder:
		x.askApprovers(e)
		x.undecided(e)
	case approval.EventScheduleMissing:
		x.undecided(e)
	case approval.EventVoided:
		x.voided(e)
	case approval.EventComment:
		x.comment(e)
	case approval.EventExpiresSoon, approval.EventShortened:
		x.owners(KindExpires, e)
	case approval.EventEffective:
		x.add(t.Requester, KindEffective, e)
	case approval.EventFailed:
		x.owners(KindFailed, e)
	case approval.EventRevokeRequested, approval.EventExpired:
		x.owners(KindRevoked, e)
	case approval.EventRevoked:
		x.add(t.Requester, KindRevoked, e)
	}
}

// items returns the indexes of the items that the event is about.
func (x *messageBuilder) items(e approval.Event) []int {
	if e.Item >= 0 && e.Item < len(x.ticket.Items) {
		return []int{e.Item}
	}
	out := make([]int, len(x.ticket.Items))
	for i := range out {
		out[i] = i
	}
	return out
}

// step returns the step of the approval chain or review that waits for a decision; nil if there is none.
func step(it *approval.Item) *approval.Step {
	if i := it.Current(); i >= 0 && it.State == approval.StatePending {
		return &it.Steps[i]
	}
	if it.Reviewing() {
		return it.Review
	}
	return nil
}

// askApprovers adds messages for those whose decision the event's items wait for, and for their delegates.
func (x *messageBuilder) askApprovers(e approval.Event) {
	items := x.items(e)
	limited := map[int][]string{} // by item, who may decide a step that is limited to people on call
	for _, i := range items {
		it := &x.ticket.Items[i]
		if s := step(it); s != nil && !s.OnCall.IsZero() {
			// While nobody can decide, every approver is notified that the step waits.
			limited[i] = it.Eligible(s, x.people.OnCall()).People
		}
	}
	for _, c := range x.ticket.Concerns() {
		if c.Role != approval.RoleWaits || !slices.Contains(items, c.Item) {
			continue
		}
		if may := limited[c.Item]; len(may) > 0 && !slices.Contains(may, c.Person) {
			continue
		}
		of := e
		of.Item = c.Item
		if s := step(&x.ticket.Items[c.Item]); s != nil {
			of.Step = s.Name
		}
		x.add(c.Person, KindNeeded, of)
		for _, d := range x.people.Delegates(c.Person) {
			if d == x.ticket.Requester {
				continue // requesters cannot decide their own request, also not as delegates
			}
			if m := x.add(d, KindNeeded, of); m != nil && m.Facts.For == "" {
				m.Facts.For = x.people.Name(c.Person)
			}
		}
	}
}

func (x *messageBuilder) stepApproved(e approval.Event) {
	if e.Actor == "" {
		return // the policy approved the step, so no approver was notified
	}
	x.add(x.ticket.Requester, KindDecided, e)
	if s := x.namedStep(e); s != nil && s.State == approval.StepCurrent {
		return // the step needs further approvals from the same people
	}
	x.notifyColleagues(e)
	asking := e
	asking.Kind, asking.Comment = approval.EventSubmitted, ""
	x.askApprovers(asking)
}

// namedStep returns the step that the event names.
func (x *messageBuilder) namedStep(e approval.Event) *approval.Step {
	if e.Item < 0 || e.Item >= len(x.ticket.Items) {
		return nil
	}
	it := &x.ticket.Items[e.Item]
	if e.Kind == approval.EventReviewed {
		return it.Review
	}
	i := slices.IndexFunc(it.Steps, func(s approval.Step) bool { return s.Name == e.Step })
	if i < 0 {
		return nil
	}
	return &it.Steps[i]
}

// notifyColleagues informs the other approvers of a decided step that nothing is left to do for them.
func (x *messageBuilder) notifyColleagues(e approval.Event) {
	s := x.namedStep(e)
	if s == nil {
		return
	}
	e.Step = s.Name
	for _, p := range s.Approvers {
		x.add(p, KindColleague, e)
	}
}

func (x *messageBuilder) withdrawn(e approval.Event) {
	for i := range x.ticket.Items {
		it := &x.ticket.Items[i]
		if it.State != approval.StateWithdrawn {
			continue
		}
		// The first skipped step is the one that was waiting.
		k := slices.IndexFunc(it.Steps, func(s approval.Step) bool { return s.State == approval.StepSkipped })
		if k < 0 {
			continue
		}
		of := e
		of.Item, of.Step = i, it.Steps[k].Name
		for _, p := range it.Steps[k].Approvers {
			x.add(p, KindColleague, of)
		}
	}
}

func (x *messageBuilder) escalated(e approval.Event) {
	if s := x.namedStep(e); s != nil {
		for _, p := range s.EscalateTo {
			x.add(p, KindEscalated, e)
		}
	}
	x.askApprovers(e)
}

// eventReviewUndecided is the event of messages to people that nobody has reviewed break-glass access.
const eventReviewUndecided = "review-undecided"

// undecided informs the requester that nobody decides a step, and the security team if nobody can, or if the step is a review of
// break-glass access. If somebody has decided in the meantime, nobody is informed.
func (x *messageBuilder) undecided(e approval.Event) {
	if e.Item < 0 || e.Item >= len(x.ticket.Items) {
		return
	}
	it := &x.ticket.Items[e.Item]
	if s := step(it); s == nil || s.Name != e.Step {
		return
	}
	recipients := []string{x.ticket.Requester}
	if it.Reviewing() {
		e.Kind = eventReviewUndecided
	}
	if it.Reviewing() || e.Kind == approval.EventScheduleMissing {
		recipients = append(recipients, x.people.Security()...)
	}
	for _, p := range recipients {
		x.add(p, KindUndecided, e)
	}
}

// voided notifies all approvers, and informs those who had approved. Their votes are deleted, so they are read from the events.
func (x *messageBuilder) voided(e approval.Event) {
	x.add(x.ticket.Requester, KindVoided, e)
	for _, before := range x.ticket.Events {
		if before.Kind == approval.EventStepApproved && before.Item == e.Item && !before.At.After(e.At) {
			x.add(before.Actor, KindVoided, e)
			x.add(before.OnBehalfOf, KindVoided, e)
		}
	}
	asking := e
	asking.Kind = approval.EventSubmitted
	x.askApprovers(asking)
}

// breakGlass notifies the reviewers, the owners and the security team.
func (x *messageBuilder) breakGlass(e approval.Event) {
	x.askApprovers(e)
	waiting := slices.Collect(maps.Keys(x.messages))
	for _, i := range x.items(e) {
		application, resource := x.people.Owners(x.ticket.Items[i])
		for _, p := range slices.Concat(application, resource, x.people.Security()) {
			if !slices.Contains(waiting, p) {
				x.add(p, KindBreakGlass, e)
			}
		}
	}
}

// adopted informs the owners of an application for which the owner of a resource requests that existing access may stay.
func (x *messageBuilder) adopted(e approval.Event) {
	for _, i := range x.items(e) {
		if !x.ticket.Items[i].Adopt {
			continue
		}
		of := e
		of.Item = i
		application, _ := x.people.Owners(x.ticket.Items[i])
		for _, p := range application {
			x.add(p, KindRollout, of)
		}
	}
}

// eventHolderUpdate is the event of messages to owners of an application that is given a version of an access package.
const eventHolderUpdate = "given"

// holderUpdate informs the owners of an application that is given a version of an access package, which it holds.
func (x *messageBuilder) holderUpdate(e approval.Event) {
	for _, i := range x.items(e) {
		if p := x.ticket.Items[i].Package; p == nil || !p.HolderUpdate {
			continue
		}
		of := e
		of.Item, of.Kind = i, eventHolderUpdate
		application, _ := x.people.Owners(x.ticket.Items[i])
		for _, p := range application {
			x.add(p, KindRollout, of)
		}
	}
}

// comment informs the requester, those who decided, and those whose decision is pending.
func (x *messageBuilder) comment(e approval.Event) {
	x.add(x.ticket.Requester, KindComment, e)
	for _, c := range x.ticket.Concerns() {
		if c.Role != approval.RoleNamed {
			x.add(c.Person, KindComment, e)
		}
	}
}

// owners informs the requester and the owners of the application, to which the access belongs.
func (x *messageBuilder) owners(kind Kind, e approval.Event) {
	x.add(x.ticket.Requester, kind, e)
	for _, i := range x.items(e) {
		application, _ := x.people.Owners(x.ticket.Items[i])
		for _, p := range application {
			x.add(p, kind, e)
		}
	}
}

// add adds one item of an event to the person's message. It returns nil if the person caused the event or already has a more
// urgent message.
func (x *messageBuilder) add(person string, kind Kind, e approval.Event) *Message {
	if person == "" || person == e.Actor {
		return nil
	}
	m, ok := x.messages[person]
	if ok && urgency(m.Kind) < urgency(kind) {
		return nil
	}
	if !ok || urgency(m.Kind) > urgency(kind) {
		m = &Message{Person: person, Event: x.event, Kind: kind, At: e.At, Ticket: x.ticket.Number, Facts: x.facts(e)}
		x.messages[person] = m
	} else if weight(e.Kind) >= weight(approval.EventKind(m.Facts.Event)) {
		items, of := m.Facts.Items, m.Facts.For
		m.Facts = x.facts(e)
		m.Facts.Items, m.Facts.For = items, of
	}
	for _, i := range x.items(e) {
		a := about(x.ticket.Items[i], x.people)
		if !slices.ContainsFunc(m.Facts.Items, func(b About) bool { return a.String() == b.String() }) {
			m.Facts.Items = append(m.Facts.Items, a)
		}
	}
	x.last = x.current
	return m
}

func urgency(k Kind) int { return slices.Index(Kinds(), k) }

// weight decides which of two events about a person's items determines the message; the heavier one does.
func weight(k approval.EventKind) int {
	switch k {
	case approval.EventStepRejected:
		return 2
	case approval.EventApproved:
		return 1
	}
	return 0
}

func (x *messageBuilder) result() []Message {
	if len(x.messages) == 0 {
		return nil
	}
	all := x.facts(x.last)
	all.Recipients = map[string]Kind{}
	kind := KindComment
	var out []Message
	answer, answerable := x.people.Answerable(x.ticket)
	for _, p := range slices.Sorted(maps.Keys(x.messages)) {
		m := x.messages[p]
		all.Recipients[p] = m.Kind
		if urgency(m.Kind) < urgency(kind) {
			kind = m.Kind
		}
		for _, a := range m.Facts.Items {
			if !slices.ContainsFunc(all.Items, func(b About) bool { return a.String() == b.String() }) {
				all.Items = append(all.Items, a)
			}
		}
		if answerable && (m.Kind == KindNeeded || m.Kind == KindEscalated) {
			m.Facts.Answer, all.Answer = &answer, &answer
		}
		m.Facts.clean()
		out = append(out, *m)
	}
	all.clean()
	return append([]Message{{Event: x.event, Kind: kind, At: x.last.At, Ticket: x.ticket.Number, Facts: all}}, out...)
}
