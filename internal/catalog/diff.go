package catalog

import (
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/message"
)

// Stored is an entity as the store has it.
type Stored struct {
	Record
	// Source is the name of the source that the entity comes from. Only that source changes it.
	Source string
	// Gone is when the source stopped naming the entity; it is zero while the source names it. An entity that is gone appears in
	// no list and has no rights, until it returns or a person removes it.
	Gone time.Time
	// Version is the catalog's revision of the last change.
	Version int64
}

// Field is a change of one field of an entity.
type Field struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Change is a change of one entity.
type Change struct {
	Ref    Ref     `json:"ref"`
	Title  string  `json:"title"`
	Fields []Field `json:"fields,omitempty"`
	// Authority reports whether the change affects who may decide, or what has to be decided.
	Authority bool `json:"authority,omitempty"`
	// Dependents lists what depends on an entity that is gone; nil for other changes.
	Dependents *Dependents `json:"leaves,omitempty"`
}

// Dependents lists what depends on an entity.
type Dependents struct {
	Owns   []Ref   `json:"owns,omitempty"`   // entities that name it as an owner
	Leads  []Ref   `json:"leads,omitempty"`  // people and groups that name it as their leader
	Grants []Grant `json:"grants,omitempty"` // access from it or to it
}

// Consequences returns what the removal of the entity affects.
func (d *Dependents) Consequences() []message.Message {
	if d == nil {
		return nil
	}
	var out []message.Message
	if n := len(d.Owns); n > 0 {
		out = append(out, message.CatalogOwnsEntities(n))
	}
	if n := len(d.Leads); n > 0 {
		out = append(out, message.CatalogLeads(n))
	}
	if n := len(d.Grants); n > 0 {
		out = append(out, message.CatalogGrantsInForce(n))
	}
	return out
}

// Grant is a grant in force.
type Grant struct {
	Subject  string `json:"subject"`
	Resource string `json:"resource"`
	Policy   string `json:"policy"`
	SID      string `json:"sid"`
}

// Diff is what a sync would change. Lists are sorted by kind and id.
type Diff struct {
	Source    string    `json:"source"`
	Created   []Change  `json:"created"`
	Updated   []Change  `json:"updated"`
	Gone      []Change  `json:"gone"`
	Returned  []Change  `json:"returned"`
	Unchanged int       `json:"unchanged"`
	Problems  []Problem `json:"problems"`
	// Incomplete reports whether a part of the source could not be read, so that no entity counts as gone.
	Incomplete bool `json:"incomplete,omitempty"`
	// Orphans are the applications and resources that would lose everybody who can decide for them.
	Orphans []Ref `json:"orphans"`
}

// Empty reports whether nothing would change.
func (d *Diff) Empty() bool {
	return len(d.Created)+len(d.Updated)+len(d.Gone)+len(d.Returned) == 0
}

// state is the content of the catalog at one revision.
type state struct {
	revision int64
	stored   map[Ref]Stored
}

func newState(revision int64, in []Stored) *state {
	s := &state{revision: revision, stored: make(map[Ref]Stored, len(in))}
	for _, x := range in {
		s.stored[x.Ref()] = x
	}
	return s
}

// with returns the state after a write.
func (s *state) with(w Write, revision int64) *state {
	out := &state{revision: revision, stored: make(map[Ref]Stored, len(s.stored)+len(w.Put))}
	for ref, x := range s.stored {
		out.stored[ref] = x
	}
	for _, x := range w.Put {
		x.Version = revision
		out.stored[x.Ref()] = x
	}
	for _, ref := range w.Remove {
		delete(out.stored, ref)
	}
	return out
}

// live returns the records that are not gone, in a stable order.
func (s *state) live() []Record {
	out := make([]Record, 0, len(s.stored))
	for _, x := range s.stored {
		if x.Gone.IsZero() {
			out = append(out, x.Record)
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return compareRefs(a.Ref(), b.Ref()) })
	return out
}

// sync compares the content of a source with the entities that the catalog has from the source. Entities of other sources stay
// unchanged: an entity belongs to the source that named it first, until it is gone there.
func (s *state) sync(source string, r SourceContent, now time.Time) (Diff, Write) {
	r.Problems = slices.Clone(r.Problems)
	r.Unique()
	d := Diff{Source: source, Problems: r.Problems}
	incoming, refused := s.admit(source, r.Records, d.Problems)
	d.Problems = append(d.Problems, refused...)

	var w Write
	named := map[Ref]bool{}
	for _, p := range d.Problems {
		named[p.Ref] = true // The entity exists in the source, though it is refused.
		d.Incomplete = d.Incomplete || p.Ref.ID == ""
	}
	for _, rec := range incoming {
		ref := rec.Ref()
		named[ref] = true
		rec.Where = ""
		after := Stored{Record: rec, Source: source}
		before, known := s.stored[ref]
		c := Change{Ref: ref, Title: rec.Title}
		switch {
		case !known:
			d.Created = append(d.Created, c)
		case !before.Gone.IsZero():
			c.Fields, c.Authority = changes(before, after)
			d.Returned = append(d.Returned, c)
		default:
			if c.Fields, c.Authority = changes(before, after); len(c.Fields) == 0 {
				d.Unchanged++
				continue
			}
			d.Updated = append(d.Updated, c)
		}
		w.Put = append(w.Put, after)
	}
	for ref, x := range s.stored {
		if x.Source != source || !x.Gone.IsZero() || named[ref] || d.Incomplete {
			continue
		}
		x.Gone = now
		d.Gone = append(d.Gone, Change{Ref: ref, Title: x.Title, Authority: true})
		w.Put = append(w.Put, x)
	}
	for _, list := range [][]Change{d.Created, d.Updated, d.Gone, d.Returned} {
		slices.SortFunc(list, func(a, b Change) int { return compareRefs(a.Ref, b.Ref) })
	}
	slices.SortFunc(w.Put, func(a, b Stored) int { return compareRefs(a.Ref(), b.Ref()) })
	return d, w
}

// admit refuses the records that contradict what stays in the catalog. A refused record keeps the name that the catalog
// has for it, which may cause another refusal; so the check is repeated until nothing changes.
func (s *state) admit(source string, in []Record, problems []Problem) (out []Record, refused []Problem) {
	incoming, names := map[Ref]bool{}, map[string]Stored{}
	for _, rec := range in {
		incoming[rec.Ref()] = true
	}
	kept := map[Ref]bool{}
	for _, p := range problems {
		kept[p.Ref] = !incoming[p.Ref]
	}
	for ref, x := range s.stored {
		if x.Name != "" && x.Gone.IsZero() && (x.Source != source || kept[ref]) {
			names[x.Name] = x
		}
	}
	for again := true; again; {
		again, out = false, nil
		for _, rec := range in {
			ref := rec.Ref()
			before, known := s.stored[ref]
			known = known && before.Gone.IsZero()
			holder, held := names[rec.Name]
			switch {
			case known && before.Source != source:
				refused = append(refused, problemOf(rec.Where, ref, message.CatalogEntityOfAnotherSource(ref.String(), before.Source)))
			case rec.Name != "" && held:
				refused = append(
					refused,
					problemOf(rec.Where, ref, message.CatalogNameOfAnotherSource(ref.String(), holder.Ref().String(), holder.Source, rec.Name)),
				)
				if known && before.Name != "" {
					names[before.Name], again = before, true
				}
			default:
				out = append(out, rec)
			}
		}
		in = out
	}
	return out, refused
}

// authorityFields are the fields that determine who decides, and about what; approval policies use the environment.
var authorityFields = []string{"source", "name", "environment", "sensitivity", "owners", "groups", "leader", "members", "lead", "parent"}

// fieldEmail is the mail address. It counts as an authority field, too, because decisions outside of the portal and on-call schedules name
// people by it. The ledger, from which nothing can be deleted, says only that it changed.
const fieldEmail = "email"

func changes(before, after Stored) (out []Field, authoritative bool) {
	a, b := fields(before), fields(after)
	for i := range a {
		if a[i].value != b[i].value {
			out = append(out, Field{Name: a[i].name, Before: a[i].value, After: b[i].value})
			authoritative = authoritative || a[i].name == fieldEmail || slices.Contains(authorityFields, a[i].name)
		}
	}
	return out, authoritative
}

type namedValue struct{ name, value string }

func fields(x Stored) []namedValue {
	owners := make([]string, len(x.Owners))
	for i, o := range x.Owners {
		owners[i] = o.String()
	}
	list := func(in []string) string { return strings.Join(in, ", ") }
	return []namedValue{{"source", x.Source}, {"title", x.Title}, {"description", x.Description}, {"name", x.Name}, {"environment", x.Environment},
		{"sensitivity", string(x.Sensitivity)}, {"owners", list(owners)}, {"jobTitle", x.JobTitle}, {fieldEmail, x.Email}, {"leader", x.Leader},
		{"groups", list(x.Groups)}, {"lead", x.Lead}, {"parent", x.Parent}, {"members", list(x.Members)}}
}

// authorityText describes the authority fields of a record, for the ledger.
func authorityText(r Record) string {
	var out []string
	for _, f := range fields(Stored{Record: r}) {
		if f.value != "" && slices.Contains(authorityFields, f.name) {
			out = append(out, f.name+": "+f.value)
		}
	}
	return strings.Join(out, "; ")
}

// dependents finds what depends on each of the entities.
func (s *state) dependents(of []Ref) map[Ref]*Dependents {
	out := make(map[Ref]*Dependents, len(of))
	for _, ref := range of {
		out[ref] = &Dependents{}
	}
	lead := func(kind Kind, id string, by Ref) {
		if l := out[Ref{kind, id}]; id != "" && l != nil {
			l.Leads = append(l.Leads, by)
		}
	}
	for _, r := range s.live() {
		for _, o := range r.Owners {
			kind := KindPerson
			if o.Kind == OwnerGroup {
				kind = KindGroup
			}
			if l := out[Ref{kind, o.ID}]; l != nil {
				l.Owns = append(l.Owns, r.Ref())
			}
		}
		lead(KindPerson, r.Leader, r.Ref())
		lead(KindPerson, r.Lead, r.Ref())
	}
	return out
}
