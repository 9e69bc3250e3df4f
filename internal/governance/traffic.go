package governance

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Ends are the client and the server of a link of the traffic map. An end without a name has the description of the flow store instead.
type Ends struct {
	Subject, Source       string
	Resource, Destination string
}

// TrafficLink combines what was seen between two ends with what is granted between them.
type TrafficLink struct {
	Ends
	// Seen contains the connections by decision. A decision with the count 0 was seen only as a connection that stays open. It is empty
	// if nothing was seen.
	Seen map[policy.Verdict]int64
	// LastSeen is the time of the last connection, and LastUsed that of the last one that was let in; zero if there is none.
	LastSeen, LastUsed time.Time
	// Disagrees reports whether the dataplane did not treat a connection as the policies say.
	Disagrees bool
	// Grant is an allow statement that covers both ends, or nil.
	Grant *Edge

	// decided are the statements that allowed connections.
	decided map[policy.Ref]bool
}

// Total returns the number of connections with any decision.
func (l *TrafficLink) Total() int64 {
	var n int64
	for _, count := range l.Seen {
		n += count
	}
	return n
}

// refused reports whether a connection was not let in, or would not be in Enforce.
func (l *TrafficLink) refused() bool {
	for decision := range l.Seen {
		if !decision.LetsThrough() || decision == policy.Audited {
			return true
		}
	}
	return false
}

// fit is higher the better a statement explains the link: one that allowed a connection, then one about exactly these ends.
func (l *TrafficLink) fit(e *Edge) int {
	n := 0
	if l.decided[e.Ref] {
		n += 2
	}
	if !e.Broad() {
		n++
	}
	return n
}

// MaxTrafficLinks bounds the links that a Traffic keeps in memory.
const MaxTrafficLinks = 100_000

// Traffic collects the links of the traffic map.
type Traffic struct {
	grants grantIndex
	links  map[Ends]*TrafficLink
	cut    bool
}

// NewTraffic returns a Traffic without connections. The edges are the allow statements; they are not changed.
func NewTraffic(edges []Edge, at time.Time) *Traffic {
	return &Traffic{grants: indexGrants(edges, at), links: map[Ends]*TrafficLink{}}
}

// Add adds the connections of one edge of the flow store.
func (t *Traffic) Add(x audit.Total) {
	ends := Ends{Subject: x.Subject, Resource: x.Resource}
	if ends.Subject == "" {
		ends.Source = x.Source
	}
	if ends.Resource == "" {
		ends.Destination = x.Destination
	}
	l, ok := t.links[ends]
	if !ok {
		if len(t.links) >= MaxTrafficLinks {
			t.cut = true
			return
		}
		l = &TrafficLink{Ends: ends, Seen: map[policy.Verdict]int64{}, decided: map[policy.Ref]bool{}}
		t.links[ends] = l
	}
	l.Seen[x.Decision] += x.Count
	l.Disagrees = l.Disagrees || x.Disagrees()
	if x.LastSeen.After(l.LastSeen) {
		l.LastSeen = x.LastSeen
	}
	if x.Decision.LetsThrough() && x.LastSeen.After(l.LastUsed) {
		l.LastUsed = x.LastSeen
	}
	if x.Decision == policy.Allowed && x.Statement.Policy != "" {
		l.decided[x.Statement] = true
	}
}

// Links returns what was seen, and the allow statements without a connection for which visible returns true. Refused and audited links
// come first, then those with the most connections, then unused statements. A statement about more than one client or server has no link
// of its own while it is used, because the links that it allows are there. cut reports whether there were more links than could be kept.
func (t *Traffic) Links(visible func(*Edge) bool) (links []TrafficLink, cut bool) {
	used := map[*Edge]bool{}
	links = make([]TrafficLink, 0, len(t.links))
	for _, l := range t.links {
		for _, e := range t.grants.covering(l) {
			if l.Grant == nil || l.fit(e) > l.fit(l.Grant) {
				l.Grant = e
			}
			used[e] = used[e] || !l.LastUsed.IsZero()
		}
		links = append(links, *l)
	}
	for _, e := range t.grants.all {
		ends := Ends{Subject: e.Subject, Resource: e.Resource}
		if used[e] || t.links[ends] != nil || !visible(e) {
			continue
		}
		if n := len(links); n > 0 && links[n-1].Ends == ends && len(links[n-1].Seen) == 0 {
			continue // another statement about the same ends; the edges are ordered by them
		}
		links = append(links, TrafficLink{Ends: ends, Grant: e})
	}
	slices.SortFunc(links, func(a, b TrafficLink) int {
		return cmp.Or(
			descending(a.refused(), b.refused()),
			cmp.Compare(b.Total(), a.Total()),
			descending(len(a.Seen) > 0, len(b.Seen) > 0),
			strings.Compare(a.Subject, b.Subject),
			strings.Compare(a.Resource, b.Resource),
			strings.Compare(a.Source, b.Source),
			strings.Compare(a.Destination, b.Destination),
		)
	})
	return links, t.cut
}

// descending compares two flags, the set one first.
func descending(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// grantIndex finds the allow statements that cover two names, without comparing each pair with each statement.
type grantIndex struct {
	all        []*Edge
	exact      map[Ends][]*Edge
	bySubject  map[string][]*Edge // exact subjects, resources that end in a wildcard
	byResource map[string][]*Edge // exact resources, subjects that cover several names
	broad      []*Edge            // several names on both sides
}

func indexGrants(edges []Edge, at time.Time) grantIndex {
	x := grantIndex{exact: map[Ends][]*Edge{}, bySubject: map[string][]*Edge{}, byResource: map[string][]*Edge{}}
	for i := range edges {
		e := &edges[i]
		if e.Effect != policy.Allow || e.NotBefore.After(at) {
			continue
		}
		x.all = append(x.all, e)
		several := e.SubjectKind == Anyone || e.SubjectKind == CIDR || e.SubjectKind == Wildcard
		switch {
		case !e.Wildcard && !several:
			ends := Ends{Subject: e.Subject, Resource: e.Resource}
			x.exact[ends] = append(x.exact[ends], e)
		case !several:
			x.bySubject[e.Subject] = append(x.bySubject[e.Subject], e)
		case !e.Wildcard:
			x.byResource[e.Resource] = append(x.byResource[e.Resource], e)
		default:
			x.broad = append(x.broad, e)
		}
	}
	return x
}

// covering returns the statements that cover both ends of a link. Whether an address is within a range is not known of a description, so
// a range covers a link if its statement allowed a connection of it.
func (x grantIndex) covering(l *TrafficLink) []*Edge {
	var out []*Edge
	if l.Resource == "" {
		return nil
	}
	if l.Subject != "" {
		out = append(out, x.exact[Ends{Subject: l.Subject, Resource: l.Resource}]...)
		for _, e := range x.bySubject[l.Subject] {
			if Covers(e.Resource, l.Resource) {
				out = append(out, e)
			}
		}
	}
	for _, e := range slices.Concat(x.byResource[l.Resource], x.broad) {
		if Covers(e.Resource, l.Resource) && (covers(e, l.Subject) || l.decided[e.Ref]) {
			out = append(out, e)
		}
	}
	return out
}

// covers reports whether the subject of an edge covers a name, which is empty for an end without one.
func covers(e *Edge, name string) bool {
	return e.SubjectKind == Anyone || e.SubjectKind != CIDR && name != "" && Covers(e.Subject, name)
}
