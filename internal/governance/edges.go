package governance

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Kind is what an end of an edge stands for.
type Kind string

const (
	Application Kind = "application" // an exact name that a subject class covers
	Resource    Kind = "resource"    // an exact name
	CIDR        Kind = "cidr"        // addresses outside the fleet
	Anyone      Kind = "anyone"
	Wildcard    Kind = "wildcard" // every name with a beginning
	Other       Kind = "other"    // an exact name that no class covers
)

// anyone is the subject that everybody matches.
const anyone = "*"

// MaxEdges bounds what is looked at. One statement may name 256 subjects and 256 resources, so a few of them can hold
// millions of pairs.
const MaxEdges = 200_000

// Edge is what one statement says of one subject and one resource, as written.
type Edge struct {
	policy.Grant
	SubjectKind Kind
	// Class of the resource; empty: none covers it.
	Class string
	// Mode of the resource now; empty: a wildcard.
	Mode v1alpha1.Mode
}

// Key orders edges by subject, resource and statement, and is different for different ones.
func (e *Edge) Key() string {
	return strings.Join([]string{e.Subject, e.Resource, e.Ref.Policy, e.Ref.SID}, "\x00")
}

// Edges are those that keep wants, ordered; cut tells that there were more than MaxEdges to look at. Statements that
// have expired are left out.
func Edges(s *policy.Snapshot, at time.Time, keep func(*Edge) bool) (edges []Edge, cut bool) {
	describe := describer{s: s, at: at, resources: map[string]seen{}, subjects: map[string]Kind{}}
	n := 0
	for g := range s.Grants(at) {
		if n++; n > MaxEdges {
			cut = true
			break
		}
		if e := describe.edge(g); keep(&e) {
			edges = append(edges, e)
		}
	}
	slices.SortFunc(edges, func(a, b Edge) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Ref.Policy, b.Ref.Policy), cmp.Compare(a.Ref.SID, b.Ref.SID))
	})
	return edges, cut
}

// describer remembers what it found out about names, because most are in many edges.
type describer struct {
	s         *policy.Snapshot
	at        time.Time
	resources map[string]seen
	subjects  map[string]Kind
}

type seen struct {
	class string
	mode  v1alpha1.Mode
}

func (d *describer) edge(g policy.Grant) Edge {
	r, ok := d.resources[g.Resource]
	if !ok {
		if c, covered := d.s.ResourceClassOf(strings.TrimSuffix(g.Resource, "*")); covered {
			r.class = c.Name
		}
		if !g.Wildcard {
			r.mode = d.s.EffectiveMode(g.Resource, "", d.at)
		}
		d.resources[g.Resource] = r
	}
	kind, ok := d.subjects[g.Subject]
	if !ok {
		kind = KindOfSubject(d.s, g.Subject)
		d.subjects[g.Subject] = kind
	}
	return Edge{Grant: g, SubjectKind: kind, Class: r.class, Mode: r.mode}
}

// KindOfSubject of a statement.
func KindOfSubject(s *policy.Snapshot, subject string) Kind {
	if subject == anyone {
		return Anyone
	}
	if n, err := policy.ParseName(subject); err == nil && n.IsPrefix() {
		return CIDR
	}
	if strings.HasSuffix(subject, "*") {
		return Wildcard
	}
	if _, ok := s.SubjectClassOf(subject); ok {
		return Application
	}
	return Other
}

// Broad tells whether an edge is about more than one client and one server.
func (e *Edge) Broad() bool {
	return e.Wildcard || e.SubjectKind == Anyone || e.SubjectKind == CIDR || e.SubjectKind == Wildcard
}

// Covers tells whether a subject or a resource as written stands for an exact name.
func Covers(written, name string) bool {
	if written == anyone {
		return true
	}
	if stem, wild := strings.CutSuffix(written, "*"); wild {
		return strings.HasPrefix(name, stem)
	}
	return written == name
}
