package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// StandingGrant is an access that is in force or about to be: the first grant that still stands, and the grants that extend
// it.
type StandingGrant struct {
	Target
	Application, ApplicationName string // catalog id and resource name
	Resource, ResourceName       string
	Actions                      []string
	Since                        time.Time // when the access was approved first
	End                          time.Time // the latest end of its grants; zero if one of them has none
	Requesters                   []string  // of all of its grants, sorted
	SIDs                         []string  // of all of its grants, sorted
	// Version identifies the grants with their ends, so that a decision about the access can be bound to what was shown.
	Version string
}

// grantsPerPage is the number of tickets that StandingGrants reads at once.
const grantsPerPage = 1000

// inForce are the states of grants that give, or may soon give, access.
var inForce = []State{StateApproved, StateApplying, StateEffective, StateFailed}

type standingItem struct {
	of, extends Target
	requester   string
	item        Item // without what is not needed
	since       time.Time
}

func standingItemOf(t *Ticket, i int) standingItem {
	it := &t.Items[i]
	x := standingItem{of: Target{t.Number, i}, requester: t.Requester, since: t.granted(i), item: Item{Application: it.Application,
		ApplicationName: it.ApplicationName, Resource: it.Resource, ResourceName: it.ResourceName, Actions: it.Actions, SID: it.SID,
		ExpiresAt: it.End()}}
	if !it.Earlier.Since.IsZero() && it.Earlier.Since.Before(x.since) {
		x.since = it.Earlier.Since
	}
	if it.Target != nil {
		x.extends = *it.Target
	}
	return x
}

// StandingGrants returns every access that stands, ordered by its first grant, the newest first. It reads the tickets in
// pages, so it is no snapshot: compare the Version before acting.
func (s *Service) StandingGrants(ctx context.Context) ([]StandingGrant, error) {
	items := map[Target]standingItem{}
	var order []Target
	page := Filter{Kinds: []Kind{KindGrant, KindExtend}, ItemStates: inForce, Limit: grantsPerPage, OmitEvents: true}
	for {
		list, err := s.Store.List(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			for i := range t.Items {
				if t.Items[i].State.MayBeOnHost() {
					x := standingItemOf(t, i)
					items[x.of] = x
					order = append(order, x.of)
				}
			}
		}
		if len(list) < grantsPerPage {
			break
		}
		page.After.Number = list[len(list)-1].Number
	}
	chains := map[Target][]standingItem{}
	for _, of := range order {
		chains[rootOf(items, of)] = append(chains[rootOf(items, of)], items[of])
	}
	out := make([]StandingGrant, 0, len(chains))
	for _, of := range order {
		if chain, ok := chains[of]; ok {
			out = append(out, standingGrant(items[of], chain))
		}
	}
	return out, nil
}

// rootOf returns the first grant that stands of those that a grant extends.
func rootOf(items map[Target]standingItem, of Target) Target {
	for range mostExtensions {
		before, ok := items[items[of].extends]
		if !ok || before.of == of || before.item.ApplicationName != items[of].item.ApplicationName ||
			before.item.ResourceName != items[of].item.ResourceName {
			break
		}
		of = before.of
	}
	return of
}

// StandingGrant returns the access that began with a grant, and whether it stands. If the first grant has ended, it is that
// of its extensions.
func (s *Service) StandingGrant(ctx context.Context, of Target) (StandingGrant, bool, error) {
	t, err := s.Store.Get(ctx, of.Ticket)
	if err != nil {
		return StandingGrant{}, false, err
	}
	if of.Item < 0 || of.Item >= len(t.Items) || !t.Kind.Access() {
		return StandingGrant{}, false, nil
	}
	first := t.Items[of.Item]
	var chain []standingItem
	add := func(t *Ticket, i int) {
		if t.Items[i].State.MayBeOnHost() {
			chain = append(chain, standingItemOf(t, i))
		}
	}
	add(t, of.Item)
	if err := s.eachExtension(ctx, of, func(x *Ticket, i int) error {
		if x.Items[i].ApplicationName == first.ApplicationName && x.Items[i].ResourceName == first.ResourceName {
			add(x, i)
		}
		return nil
	}); err != nil || len(chain) == 0 {
		return StandingGrant{}, false, err
	}
	return standingGrant(chain[0], chain), true, nil
}

// eachExtension calls f for the grants that extend one, directly or indirectly, the earlier ones first.
func (s *Service) eachExtension(ctx context.Context, of Target, f func(*Ticket, int) error) error {
	chain := []Target{of}
	for k := 0; k < len(chain) && k < mostExtensions; k++ {
		list, err := s.Store.List(ctx, Filter{Target: &chain[k], Kinds: []Kind{KindGrant, KindExtend}, OmitEvents: true})
		if err != nil {
			return err
		}
		for _, t := range list {
			for i, it := range t.Items {
				next := Target{t.Number, i}
				if it.Target == nil || *it.Target != chain[k] || slices.Contains(chain, next) {
					continue
				}
				chain = append(chain, next)
				if err := f(t, i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func standingGrant(root standingItem, chain []standingItem) StandingGrant {
	g := StandingGrant{Target: root.of, Application: root.item.Application, ApplicationName: root.item.ApplicationName, Resource: root.item.Resource,
		ResourceName: root.item.ResourceName, Since: root.since}
	forever := false
	var parts []string
	for _, x := range chain {
		g.Requesters = append(g.Requesters, x.requester)
		g.SIDs = append(g.SIDs, x.item.SID)
		g.Actions = append(g.Actions, x.item.Actions...)
		end := x.item.ExpiresAt
		parts = append(parts, fmt.Sprintf("%s %d %s", x.item.SID, end.Unix(), strings.Join(x.item.Actions, ",")))
		if end.IsZero() {
			forever = true
		} else if end.After(g.End) {
			g.End = end
		}
	}
	if forever {
		g.End = time.Time{}
	}
	for _, list := range []*[]string{&g.Requesters, &g.SIDs, &g.Actions, &parts} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	g.Version = hex.EncodeToString(sum[:12])
	return g
}

// Verdict is the decision of a review about an access. Review identifies the line of the review; it makes the execution
// idempotent, and is in the tickets' timelines and in the ledger.
type Verdict struct {
	Person, OnBehalfOf string // empty if nobody decided
	Review             string // for example R-3/12
	Why                Event  // only Comment or Message
	Until              time.Time
}

func (v Verdict) event() Event {
	e := Event{Actor: v.Person, OnBehalfOf: v.OnBehalfOf, Step: v.Review, Comment: v.Why.Comment}
	if v.Person == "" {
		e.Comment, e.Message = "", v.Why.Message
	}
	return e
}

// RevokeReviewed revokes an access with all of its extensions, the last one first. It does nothing for what has ended, and
// nothing if it was executed before.
func (s *Service) RevokeReviewed(ctx context.Context, of Target, v Verdict) error {
	return s.eachOfAccess(ctx, of, EventRevokeRequested, v.Review, func(t *Ticket, i int) error {
		t.revoke(i, v.event(), s.Now())
		return nil
	})
}

// ShortenReviewed gives an access an end at v.Until, unless it ends before that. It does nothing for what has ended, and
// nothing if it was executed before, so that an extension that was approved since keeps its end.
func (s *Service) ShortenReviewed(ctx context.Context, of Target, v Verdict) error {
	return s.eachOfAccess(ctx, of, EventShortened, v.Review, func(t *Ticket, i int) error {
		_, err := t.Shorten(i, v.Until, v.event(), s.Now())
		return err
	})
}

// eachOfAccess applies a transition of a review, which records a kind of event, to every grant of an access that stands,
// extensions first. The first grant is changed last, so its timeline contains whether all of them were changed before.
func (s *Service) eachOfAccess(ctx context.Context, of Target, kind EventKind, review string, f func(*Ticket, int) error) error {
	first, err := s.Store.Get(ctx, of.Ticket)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(first.Events, func(e Event) bool { return e.Item == of.Item && e.Kind == kind && e.Step == review }) {
		return nil
	}
	chain := []Target{of}
	if err := s.eachExtension(ctx, of, func(t *Ticket, i int) error {
		chain = append(chain, Target{t.Number, i})
		return nil
	}); err != nil {
		return err
	}
	for _, x := range slices.Backward(chain) {
		if _, err := s.Apply(ctx, x.Ticket, func(t *Ticket) error {
			if x.Item >= len(t.Items) || !t.Kind.Access() || !t.Items[x.Item].State.MayBeOnHost() {
				return nil
			}
			return f(t, x.Item)
		}); err != nil {
			return err
		}
	}
	return nil
}

// EndedBy reports which line of a review ended or shortened a grant last; empty if none did.
func (t *Ticket) EndedBy(i int) string {
	for _, e := range slices.Backward(t.Events) {
		if e.Item == i && (e.Kind == EventRevokeRequested || e.Kind == EventShortened) && e.Step != "" {
			return e.Step
		}
	}
	return ""
}

// GrantPair names the ends of a grant by their resource names.
type GrantPair struct{ ApplicationName, ResourceName string }

// ChangedGrants returns the ends of the grants whose tickets were changed at or after an instant, each once.
func (s *Service) ChangedGrants(ctx context.Context, since time.Time) ([]GrantPair, error) {
	changed, err := s.Store.ChangedSince(ctx, since)
	if err != nil {
		return nil, err
	}
	numbers := make([]int64, len(changed))
	for i, c := range changed {
		numbers[i] = c.Number
	}
	seen := map[GrantPair]bool{}
	var out []GrantPair
	for part := range slices.Chunk(numbers, numbersPerList) {
		list, err := s.Store.List(ctx, Filter{Numbers: part, Kinds: []Kind{KindGrant, KindExtend}, OmitEvents: true})
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			for _, it := range t.Items {
				p := GrantPair{it.ApplicationName, it.ResourceName}
				if !seen[p] {
					seen[p] = true
					out = append(out, p)
				}
			}
		}
	}
	return out, nil
}

// numbersPerList bounds the parameters of a query.
const numbersPerList = 500
