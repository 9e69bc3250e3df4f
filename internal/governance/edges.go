package governance

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// Kind classifies an end of an edge.
type Kind string

const (
	// Application is an exact name that a subject class covers.
	Application Kind = "application"
	// Resource is the exact name of a resource.
	Resource Kind = "resource"
	// CIDR is a range of addresses outside the fleet.
	CIDR Kind = "cidr"
	// Anyone is every source.
	Anyone Kind = "anyone"
	// Wildcard is every name that begins with a prefix.
	Wildcard Kind = "wildcard"
	// Other is an exact name that no class covers.
	Other Kind = "other"
)

// anyone is the subject that matches every source.
const anyone = "*"

// MaxEdges bounds the pairs that are evaluated. One statement may name 256 subjects and 256 resources, so a few of them
// can contain millions of pairs.
const MaxEdges = 200_000

// Edge is the part of one statement about one subject and one resource, as written.
type Edge struct {
	policy.Grant
	SubjectKind Kind
	// Class is the class of the resource, or empty if no class covers it.
	Class string
	// Mode is the current mode of the resource, or empty for a wildcard.
	Mode v1alpha1.Mode
}

// Key orders edges by subject, resource and statement, and is unique.
func (e *Edge) Key() string {
	return strings.Join([]string{e.Subject, e.Resource, e.Ref.Policy, e.Ref.SID}, "\x00")
}

// Edges returns the edges for which keep returns true, ordered. cut reports whether there were more than MaxEdges to
// evaluate. Expired statements are left out.
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
		return cmp.Or(
			cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Ref.Policy, b.Ref.Policy),
			cmp.Compare(a.Ref.SID, b.Ref.SID),
		)
	})
	return edges, cut
}

// describer caches what it found out about names, because most names are in many edges.
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

// KindOfSubject returns the kind of a statement's subject.
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

// Broad reports whether an edge covers more than one client and one server.
func (e *Edge) Broad() bool {
	return e.Wildcard || e.SubjectKind == Anyone || e.SubjectKind == CIDR || e.SubjectKind == Wildcard
}

// Covers reports whether a subject or a resource as written covers an exact name.
func Covers(written, name string) bool {
	if written == anyone {
		return true
	}
	if stem, wild := strings.CutSuffix(written, "*"); wild {
		return strings.HasPrefix(name, stem)
	}
	return written == name
}
