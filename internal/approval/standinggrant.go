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

// StandingGrant is an access that is in force or about to be: the first grant, or allow statement, that still stands, and those that extend it. A
// deny is no access.
type StandingGrant struct {
	Target
	Application, ApplicationName string // catalog id and resource name; empty for a statement
	Resource, ResourceName       string
	Scope                        *StatementScope // of a statement; nil for a grant
	Actions                      []string
	Since                        time.Time // since when grants have given the access without a gap
	End                          time.Time // the latest end of its grants; zero if one of them has none
	Requesters                   []string  // of all of its grants, and the people who wrote the requests of programs, sorted
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
	author      string // the person who wrote the request of a program, if it is known
	item        Item   // without what is not needed
	since       time.Time
}

func standingItemOf(t *Ticket, i int) standingItem {
	it := &t.Items[i]
	x := standingItem{of: Target{t.Number, i}, requester: t.Requester, author: it.Author, since: t.granted(i), item: Item{Application: it.Application,
		ApplicationName: it.ApplicationName, Resource: it.Resource, ResourceName: it.ResourceName, Scope: it.Scope, Actions: it.Actions, SID: it.SID,
		ExpiresAt: it.End()}}
	// Earlier.Since counts grants of a part of the actions as well, and says nothing about how long this access has been given.
	if whole := it.Earlier.WholeSince; !whole.IsZero() && whole.Before(x.since) {
		x.since = whole
	}
	if it.Target != nil {
		x.extends = *it.Target
	}
	return x
}

// givesAccess reports whether an item gives, or may soon give, an access that StandingGrant describes.
func (it *Item) givesAccess() bool { return it.State.MayBeOnHost() && !it.Scope.Denies() }

// sameAccess reports whether two items are about the same application and resource, or have the same scope.
func sameAccess(a, b *Item) bool {
	return a.ApplicationName == b.ApplicationName && a.ResourceName == b.ResourceName && a.Scope.equal(b.Scope)
}

// standingKinds are the kinds of tickets that give access.
var standingKinds = []Kind{KindGrant, KindExtend, KindStatement}

// StandingGrants returns every access that stands, ordered by its first grant, the newest first. It reads the tickets in
// pages, so it is no snapshot: compare the Version before acting.
func (s *Service) StandingGrants(ctx context.Context) ([]StandingGrant, error) {
	items := map[Target]standingItem{}
	var order []Target
	page := Filter{Kinds: standingKinds, ItemStates: inForce, Limit: grantsPerPage, OmitEvents: true}
	for {
		list, err := s.Store.List(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			for i := range t.Items {
				if t.Items[i].givesAccess() {
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
		x := items[of]
		before, ok := items[x.extends]
		if !ok || before.of == of || !sameAccess(&before.item, &x.item) {
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
		if t.Items[i].givesAccess() {
			chain = append(chain, standingItemOf(t, i))
		}
	}
	add(t, of.Item)
	if err := s.eachExtension(ctx, of, func(x *Ticket, i int) error {
		if sameAccess(&x.Items[i], &first) {
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
		list, err := s.Store.List(ctx, Filter{Target: &chain[k], Kinds: standingKinds, OmitEvents: true})
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
		ResourceName: root.item.ResourceName, Scope: root.item.Scope, Since: root.since}
	forever := false
	var parts []string
	for _, x := range chain {
		g.Requesters = append(g.Requesters, x.requester)
		if x.author != "" {
			g.Requesters = append(g.Requesters, x.author)
		}
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

// GrantPair names the ends of a grant by their resource names. For a statement, ApplicationName is empty, and ResourceName identifies its scope.
type GrantPair struct{ ApplicationName, ResourceName string }

// PairOf returns the pair of an access. scope is nil for a grant.
func PairOf(applicationName, resourceName string, scope *StatementScope) GrantPair {
	if scope != nil {
		return GrantPair{ResourceName: scope.key()}
	}
	return GrantPair{applicationName, resourceName}
}

// ChangedGrants returns the ends of the grants whose tickets were changed at or after an instant, each once, and the
// versions of these tickets by number. It leaves out tickets that have the version in known.
func (s *Service) ChangedGrants(ctx context.Context, since time.Time, known map[int64]int64) ([]GrantPair, map[int64]int64, error) {
	changed, err := s.Store.ChangedSince(ctx, since)
	if err != nil {
		return nil, nil, err
	}
	versions := make(map[int64]int64, len(changed))
	var numbers []int64
	for _, c := range changed {
		versions[c.Number] = c.Version
		if v, ok := known[c.Number]; !ok || v != c.Version {
			numbers = append(numbers, c.Number)
		}
	}
	seen := map[GrantPair]bool{}
	var out []GrantPair
	for part := range slices.Chunk(numbers, numbersPerList) {
		list, err := s.Store.List(ctx, Filter{Numbers: part, Kinds: standingKinds, OmitEvents: true})
		if err != nil {
			return nil, nil, err
		}
		for _, t := range list {
			for _, it := range t.Items {
				p := PairOf(it.ApplicationName, it.ResourceName, it.Scope)
				if !seen[p] && !it.Scope.Denies() {
					seen[p] = true
					out = append(out, p)
				}
			}
		}
	}
	return out, versions, nil
}

// numbersPerList bounds the parameters of a query.
const numbersPerList = 500
