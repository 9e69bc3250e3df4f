// Package catalog owns what the portal knows of people, groups, applications and resources: who owns what, who leads
// whom. Sources say it, a sync is a difference that can be seen before it counts, and lookups are answered from an
// immutable view. It may not touch tickets or the host cluster; SQL is below it, in gormstore, and HTTP above.
package catalog

import (
	"slices"
	"strings"
)

// Groups whose members have a role that is not derived from ownership.
const (
	GroupSecurity = "security"
	GroupAuditors = "auditors"
)

// Sensitivity of a resource.
type Sensitivity string

const (
	SensitivityLow    Sensitivity = "low"
	SensitivityMedium Sensitivity = "medium"
	SensitivityHigh   Sensitivity = "high"
)

// OwnerKind says what an Owner refers to.
type OwnerKind string

const (
	OwnerPerson OwnerKind = "person"
	OwnerGroup  OwnerKind = "group"
)

// Owner is a person or a group that owns an entity.
type Owner struct {
	Kind OwnerKind `json:"kind"`
	ID   string    `json:"id"`
}

// String is the owner as Backstage writes it.
func (o Owner) String() string {
	if o.Kind == OwnerPerson {
		return "user:" + o.ID
	}
	return string(o.Kind) + ":" + o.ID
}

// Person is a User entity. Groups are sorted; Leader is the explicit one, empty when the groups decide.
type Person struct {
	ID, DisplayName, Title, Email string
	Leader                        string
	Groups                        []string
}

// Group is a Group entity. Members are sorted person ids, from both sides of the membership.
type Group struct {
	ID, Title, Lead, Parent string
	Members                 []string
}

// Entity is an application (Component) or a resource (Resource).
type Entity struct {
	ID          string
	Name        string // the ACP resource name
	Title       string
	Description string
	Environment string
	Owners      []Owner
	Sensitivity Sensitivity
}

// Catalog is one consistent, immutable reading. The zero value is empty. Safe for concurrent use.
type Catalog struct {
	people       map[string]*Person
	groups       map[string]*Group
	applications map[string]*Entity
	resources    map[string]*Entity
	names        map[string]*Entity

	led                                 map[string]bool // people who are somebody's direct leader
	sortedApplications, sortedResources []Entity
	listedPeople                        []Listed[Person]
	listedGroups                        []Listed[Group]
	ownedBy                             map[Owner]owned
}

// owned are places in sortedApplications and sortedResources.
type owned struct{ applications, resources []int }

// Person by id.
func (c *Catalog) Person(id string) (Person, bool) { return get(c.people, id) }

// Group by id.
func (c *Catalog) Group(id string) (Group, bool) { return get(c.groups, id) }

// Application by id.
func (c *Catalog) Application(id string) (Entity, bool) { return get(c.applications, id) }

// Resource by id.
func (c *Catalog) Resource(id string) (Entity, bool) { return get(c.resources, id) }

// ByName finds the application or resource that carries an ACP resource name.
func (c *Catalog) ByName(name string) (Entity, bool) { return get(c.names, name) }

// Applications sorted by id.
func (c *Catalog) Applications() []Entity { return slices.Clone(c.sortedApplications) }

// Resources sorted by id.
func (c *Catalog) Resources() []Entity { return slices.Clone(c.sortedResources) }

// Empty tells that nothing was read.
func (c *Catalog) Empty() bool { return len(c.people)+len(c.applications)+len(c.resources) == 0 }

// Members of a group that the catalog knows as people, sorted.
func (c *Catalog) Members(group string) []string {
	g, ok := c.groups[group]
	if !ok {
		return nil
	}
	return slices.Clone(g.Members)
}

// InGroup tells whether a person is a member of a group.
func (c *Catalog) InGroup(person, group string) bool {
	g, ok := c.groups[group]
	return ok && slices.Contains(g.Members, person)
}

// Owns tells whether a person is, or is a member of, one of an entity's owners.
func (c *Catalog) Owns(person string, e Entity) bool {
	return slices.ContainsFunc(e.Owners, func(o Owner) bool {
		return o.Kind == OwnerPerson && o.ID == person || o.Kind == OwnerGroup && c.InGroup(person, o.ID)
	})
}

// identities are the owners that a person stands for: himself and the groups that he is in.
type identities map[Owner]bool

func (c *Catalog) identities(person string) identities {
	out := identities{}
	if p, ok := c.people[person]; ok {
		out[Owner{OwnerPerson, person}] = true
		for _, g := range p.Groups {
			if _, ok := c.groups[g]; ok {
				out[Owner{OwnerGroup, g}] = true
			}
		}
	}
	return out
}

func (x identities) owns(e Entity) bool {
	return slices.ContainsFunc(e.Owners, func(o Owner) bool { return x[o] })
}

// Owned are the applications and the resources that a person owns, himself or as a member of a group, sorted by id.
func (c *Catalog) Owned(person string) (applications, resources []Entity) {
	var a, r []int
	for o := range c.identities(person) {
		a, r = append(a, c.ownedBy[o].applications...), append(r, c.ownedBy[o].resources...)
	}
	return places(c.sortedApplications, a), places(c.sortedResources, r)
}

func places(all []Entity, at []int) []Entity {
	slices.Sort(at)
	out := make([]Entity, 0, len(at))
	for _, i := range slices.Compact(at) {
		out = append(out, all[i])
	}
	return out
}

// OwnerPeople are the people who can act for an entity's owners, sorted; owners that left are not among them.
func (c *Catalog) OwnerPeople(e Entity) []string {
	var out []string
	for _, o := range e.Owners {
		if o.Kind == OwnerGroup {
			out = append(out, c.Members(o.ID)...)
			continue
		}
		if _, ok := c.people[o.ID]; ok {
			out = append(out, o.ID)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// OwnerName is what people call an owner: its title, or its id when the catalog does not know it.
func (c *Catalog) OwnerName(o Owner) string {
	if o.Kind == OwnerGroup {
		if g, ok := c.groups[o.ID]; ok {
			return g.Title
		}
	} else if p, ok := c.people[o.ID]; ok {
		return p.DisplayName
	}
	return o.ID
}

// Leader of a person: the explicit one, else the lead of one of his groups (in the order of their ids), else the
// lead of a parent group. A person never leads himself, and circles of groups end the search.
func (c *Catalog) Leader(person string) (string, bool) {
	p, ok := c.people[person]
	if !ok {
		return "", false
	}
	if p.Leader != "" && p.Leader != person {
		_, known := c.people[p.Leader]
		return p.Leader, known
	}
	seen := map[string]bool{}
	for level := slices.Clone(p.Groups); len(level) > 0; {
		var parents []string
		for _, id := range level {
			g, ok := c.groups[id]
			if !ok || seen[id] {
				continue
			}
			seen[id] = true
			if _, known := c.people[g.Lead]; known && g.Lead != person {
				return g.Lead, true
			}
			if g.Parent != "" {
				parents = append(parents, g.Parent)
			}
		}
		level = parents
	}
	return "", false
}

// Leaders above a person, nearest first, without the person; a circle ends the list.
func (c *Catalog) Leaders(person string) []string {
	var out []string
	for at, ok := c.Leader(person); ok && at != person && !slices.Contains(out, at); at, ok = c.Leader(at) {
		out = append(out, at)
	}
	return out
}

// Leads tells whether somebody's direct leader is this person.
func (c *Catalog) Leads(person string) bool { return c.led[person] }

func get[T any](m map[string]*T, id string) (T, bool) {
	if v, ok := m[id]; ok {
		return *v, true
	}
	var zero T
	return zero, false
}

func sorted(m map[string]*Entity) []Entity {
	out := make([]Entity, 0, len(m))
	for _, e := range m {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Entity) int { return strings.Compare(a.ID, b.ID) })
	return out
}
