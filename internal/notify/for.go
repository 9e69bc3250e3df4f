package notify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/acp-io/acp/internal/approval"
)

// People answers who somebody is, and who is concerned beside those whom a ticket names.
type People interface {
	// Name by which people know a person.
	Name(person string) string
	// Owners of the item's application, and of its resource or object.
	Owners(it approval.Item) (application, resource []string)
	// Security is the security team.
	Security() []string
	// Delegates may decide for a person now.
	Delegates(person string) []string
}

// For tells what people are told because of a ticket's events from first on, before last: one change of the ticket.
// The ticket is as it is now, so that nobody is asked for what was decided meanwhile. Each person is told one thing, the
// most urgent one, and nobody what he did himself. If anybody is told, the first message is the one for receivers that
// are nobody's own.
func For(t *approval.Ticket, first, last int, people People) []Message {
	x := &telling{ticket: t, people: people, told: map[string]*Message{}, event: fmt.Sprintf("%s/%d", t.ID(), first)}
	last = min(last, len(t.Events))
	for i := max(first, 0); i < last; i++ {
		x.tell(t.Events[i])
	}
	return x.messages()
}

type telling struct {
	ticket *approval.Ticket
	people People
	event  string
	told   map[string]*Message
	now    approval.Event // that is looked at
	main   approval.Event // the last that anybody was told of
}

func (x *telling) tell(e approval.Event) {
	t := x.ticket
	x.now = e
	switch e.Kind {
	case approval.EventSubmitted:
		if !t.BreakGlass {
			x.ask(e)
		}
		x.adopted(e)
	case approval.EventBreakGlass:
		x.breakGlass(e)
	case approval.EventStepApproved:
		x.stepApproved(e)
	case approval.EventStepRejected:
		x.add(t.Requester, KindDecided, e)
		x.settle(e)
	case approval.EventApproved:
		if !t.BreakGlass {
			x.add(t.Requester, KindDecided, e)
		}
	case approval.EventReviewed:
		x.add(t.Requester, KindDecided, e)
		x.settle(e)
	case approval.EventWithdrawn:
		x.withdrawn(e)
	case approval.EventTimedOut:
		x.add(t.Requester, KindDecided, e)
		x.settle(e)
	case approval.EventEscalated:
		x.escalated(e)
	case approval.EventReminded:
		x.ask(e)
	case approval.EventVoided:
		x.voided(e)
	case approval.EventComment:
		x.comment(e)
	case approval.EventExpiresSoon:
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

// items that an event is about.
func (x *telling) items(e approval.Event) []int {
	if e.Item >= 0 && e.Item < len(x.ticket.Items) {
		return []int{e.Item}
	}
	out := make([]int, len(x.ticket.Items))
	for i := range out {
		out[i] = i
	}
	return out
}

// step that waits for somebody, of the chain or the review; nil: none.
func step(it *approval.Item) *approval.Step {
	if i := it.Current(); i >= 0 && it.State == approval.StatePending {
		return &it.Steps[i]
	}
	if it.Reviewing() {
		return it.Review
	}
	return nil
}

// ask those for whom the event's items wait, and who may decide for them.
func (x *telling) ask(e approval.Event) {
	items := x.items(e)
	for _, c := range x.ticket.Concerns() {
		if c.Role != approval.RoleWaits || !slices.Contains(items, c.Item) {
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
				continue // nobody decides his own request, for nobody
			}
			if m := x.add(d, KindNeeded, of); m != nil && m.Facts.For == "" {
				m.Facts.For = x.people.Name(c.Person)
			}
		}
	}
}

func (x *telling) stepApproved(e approval.Event) {
	if e.Actor == "" {
		return // the policy approved it; nobody had been asked
	}
	x.add(x.ticket.Requester, KindDecided, e)
	if s := x.named(e); s != nil && s.State == approval.StepCurrent {
		return // it needs more approvals, from the same people
	}
	x.settle(e)
	asking := e
	asking.Kind, asking.Comment = approval.EventSubmitted, ""
	x.ask(asking)
}

// named is the step that an event names.
func (x *telling) named(e approval.Event) *approval.Step {
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

// settle tells those who had been asked that there is nothing to do for them.
func (x *telling) settle(e approval.Event) {
	s := x.named(e)
	if s == nil {
		return
	}
	e.Step = s.Name
	for _, p := range s.Approvers {
		x.add(p, KindColleague, e)
	}
}

func (x *telling) withdrawn(e approval.Event) {
	for i := range x.ticket.Items {
		it := &x.ticket.Items[i]
		if it.State != approval.StateWithdrawn {
			continue
		}
		// The first step that the item never came to is the one that waited.
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

func (x *telling) escalated(e approval.Event) {
	if s := x.named(e); s != nil {
		for _, p := range s.EscalateTo {
			x.add(p, KindEscalated, e)
		}
	}
	x.ask(e)
}

// voided asks everybody again; who had approved is told why. The votes are gone, the timeline has them.
func (x *telling) voided(e approval.Event) {
	x.add(x.ticket.Requester, KindVoided, e)
	for _, before := range x.ticket.Events {
		if before.Kind == approval.EventStepApproved && before.Item == e.Item && !before.At.After(e.At) {
			x.add(before.Actor, KindVoided, e)
			x.add(before.OnBehalfOf, KindVoided, e)
		}
	}
	asking := e
	asking.Kind = approval.EventSubmitted
	x.ask(asking)
}

// breakGlass asks the reviewers, and tells everybody whom the access concerns.
func (x *telling) breakGlass(e approval.Event) {
	x.ask(e)
	waiting := slices.Collect(maps.Keys(x.told))
	for _, i := range x.items(e) {
		application, resource := x.people.Owners(x.ticket.Items[i])
		for _, p := range slices.Concat(application, resource, x.people.Security()) {
			if !slices.Contains(waiting, p) {
				x.add(p, KindBreakGlass, e)
			}
		}
	}
}

// adopted tells the owners of an application that the resource's side asks that it may stay.
func (x *telling) adopted(e approval.Event) {
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

// comment goes to the requester, to those who decided and to those for whom it waits.
func (x *telling) comment(e approval.Event) {
	x.add(x.ticket.Requester, KindComment, e)
	for _, c := range x.ticket.Concerns() {
		if c.Role != approval.RoleNamed {
			x.add(c.Person, KindComment, e)
		}
	}
}

// owners tells the requester and those who own the application, because access is the application's.
func (x *telling) owners(kind Kind, e approval.Event) {
	x.add(x.ticket.Requester, kind, e)
	for _, i := range x.items(e) {
		application, _ := x.people.Owners(x.ticket.Items[i])
		for _, p := range application {
			x.add(p, kind, e)
		}
	}
}

// add one item's news for a person; nil: he is told something more urgent, or did it himself.
func (x *telling) add(person string, kind Kind, e approval.Event) *Message {
	if person == "" || person == e.Actor {
		return nil
	}
	m, ok := x.told[person]
	if ok && urgency(m.Kind) < urgency(kind) {
		return nil
	}
	if !ok || urgency(m.Kind) > urgency(kind) {
		m = &Message{Person: person, Event: x.event, Kind: kind, At: e.At, Ticket: x.ticket.Number, Facts: x.facts(e)}
		x.told[person] = m
	} else if weight(e.Kind) >= weight(approval.EventKind(m.Facts.Event)) {
		items, of := m.Facts.Items, m.Facts.For
		m.Facts = x.facts(e)
		m.Facts.Items, m.Facts.For = items, of
	}
	for _, i := range x.items(e) {
		a := about(x.ticket.Items[i])
		if !slices.ContainsFunc(m.Facts.Items, func(b About) bool { return a.String() == b.String() }) {
			m.Facts.Items = append(m.Facts.Items, a)
		}
	}
	x.main = x.now
	return m
}

func urgency(k Kind) int { return slices.Index(Kinds(), k) }

// weight says which of two events about one person's items is the news.
func weight(k approval.EventKind) int {
	switch k {
	case approval.EventStepRejected:
		return 2
	case approval.EventApproved:
		return 1
	}
	return 0
}

func (x *telling) facts(e approval.Event) Facts {
	t := x.ticket
	f := Facts{Event: string(e.Kind), TicketKind: string(t.Kind), State: string(t.State()), Requester: x.people.Name(t.Requester),
		RequesterID: t.Requester, ActorID: e.Actor, Step: e.Step}
	if e.Actor != "" {
		f.Actor = x.people.Name(e.Actor)
	}
	if e.OnBehalfOf != "" {
		f.ActorFor = x.people.Name(e.OnBehalfOf)
	}
	switch e.Kind {
	case approval.EventSubmitted, approval.EventBreakGlass, approval.EventEscalated, approval.EventReminded:
		f.Reason = t.Reason
	default:
		f.Comment = e.Comment
	}
	for _, i := range x.items(e) {
		if at := t.Items[i].ExpiresAt; !at.IsZero() && (f.Until.IsZero() || at.Before(f.Until)) {
			f.Until = at
		}
	}
	return f
}

func about(it approval.Item) About {
	if c := it.Change; c != nil {
		return About{Object: c.Kind + "/" + c.Name, From: string(c.FromMode), To: string(c.ToMode)}
	}
	if it.Target != nil && it.Application == "" {
		return About{Object: approval.FormatID(it.Target.Ticket)}
	}
	return About{Application: it.Application, Resource: it.Resource, Actions: it.Actions}
}

func (x *telling) messages() []Message {
	if len(x.told) == 0 {
		return nil
	}
	all := x.facts(x.main)
	all.Told = map[string]Kind{}
	kind := KindComment
	var out []Message
	for _, p := range slices.Sorted(maps.Keys(x.told)) {
		m := x.told[p]
		all.Told[p] = m.Kind
		if urgency(m.Kind) < urgency(kind) {
			kind = m.Kind
		}
		for _, a := range m.Facts.Items {
			if !slices.ContainsFunc(all.Items, func(b About) bool { return a.String() == b.String() }) {
				all.Items = append(all.Items, a)
			}
		}
		m.Facts.clean()
		out = append(out, *m)
	}
	all.clean()
	return append([]Message{{Event: x.event, Kind: kind, At: x.main.At, Ticket: x.ticket.Number, Facts: all}}, out...)
}

// ForDelegation tells both sides that somebody decides for somebody, or does not any more.
func ForDelegation(d approval.Delegation, people People) []Message {
	f := Facts{Event: "begun", Actor: people.Name(d.CreatedBy), Requester: people.Name(d.From), For: people.Name(d.To), Reason: d.Reason, Begin: d.Start, Until: d.End,
		RequesterID: d.From, ActorID: d.CreatedBy}
	actor, at := d.CreatedBy, d.CreatedAt
	if !d.EndedAt.IsZero() {
		f.Event, f.Actor, f.ActorID = "ended", people.Name(d.EndedBy), d.EndedBy
		actor, at = d.EndedBy, d.EndedAt
	}
	f.clean()
	all := f
	all.Told = map[string]Kind{}
	event := fmt.Sprintf("D-%d/%s", d.ID, f.Event)
	var out []Message
	for _, p := range []string{d.From, d.To} {
		if p == actor {
			continue
		}
		all.Told[p] = KindDelegation
		out = append(out, Message{Person: p, Event: event, Kind: KindDelegation, At: at, Facts: f})
	}
	return append([]Message{{Event: event, Kind: KindDelegation, At: at, Facts: all}}, out...)
}
