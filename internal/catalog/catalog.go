// Package catalog contains the portal's data about people, groups, applications and resources: who owns what, and who
// leads whom. The data comes from sources; a sync is a difference that can be previewed before it is applied; lookups
// are answered from an immutable view. The package must not depend on tickets or the host cluster. SQL is in gormstore
// below it, and HTTP is above it.
package catalog

import (
	"slices"
	"strings"
)

// Groups whose members have a role that does not come from ownership.
const (
	// GroupSecurity is the group of security administrators.
	GroupSecurity = "security"
	// GroupAuditors is the group of auditors, who may read everything and change nothing.
	GroupAuditors = "auditors"
)

// Sensitivity is the sensitivity of a resource.
type Sensitivity string

const (
	// SensitivityLow is the lowest sensitivity.
	SensitivityLow Sensitivity = "low"
	// SensitivityMedium is the sensitivity between the two others.
	SensitivityMedium Sensitivity = "medium"
	// SensitivityHigh adds a step of the security team to the built-in chain.
	SensitivityHigh Sensitivity = "high"
)

// OwnerKind is the kind of an Owner.
type OwnerKind string

const (
	// OwnerPerson is the kind of an owner that is one person.
	OwnerPerson OwnerKind = "person"
	// OwnerGroup is the kind of an owner that is a group, each member of which acts as an owner.
	OwnerGroup OwnerKind = "group"
)

// Owner is a person or a group that owns an entity.
type Owner struct {
	Kind OwnerKind `json:"kind"`
	ID   string    `json:"id"`
}

// String returns the owner in Backstage's notation.
func (o Owner) String() string {
	if o.Kind == OwnerPerson {
		return "user:" + o.ID
	}
	return string(o.Kind) + ":" + o.ID
}

// Person is a User entity. Groups are sorted. Leader is the explicit leader, and empty if the leader follows from the
// groups.
type Person struct {
	ID, DisplayName, Title, Email string
	Leader                        string
	Groups                        []string
}

// Group is a Group entity. Members are the sorted ids of people, whether the group or the person names the membership.
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

// Catalog is one consistent, immutable view of all entities. The zero value is empty. It is safe for concurrent use.
type Catalog struct {
	people       map[string]*Person
	groups       map[string]*Group
	applications map[string]*Entity
	resources    map[string]*Entity
	names        map[string]*Entity

	directLeaders                       map[string]bool // people who are the direct leader of another person
	sortedApplications, sortedResources []Entity
	listedPeople                        []Listed[Person]
	listedGroups                        []Listed[Group]
	ownedBy                             map[Owner]owned
	// sortedNames returns the names of all applications and resources, sorted. It is computed when it is needed for the first time, because most
	// catalogs are replaced before.
	sortedNames func() []string
}

// owned has positions in sortedApplications and sortedResources.
type owned struct{ applications, resources []int }

// Person returns the person with an id.
func (c *Catalog) Person(id string) (Person, bool) { return get(c.people, id) }

// Group returns the group with an id.
func (c *Catalog) Group(id string) (Group, bool) { return get(c.groups, id) }

// Application returns the application with an id.
func (c *Catalog) Application(id string) (Entity, bool) { return get(c.applications, id) }

// Resource returns the resource with an id.
func (c *Catalog) Resource(id string) (Entity, bool) { return get(c.resources, id) }

// ByName returns the application or resource with an ACP resource name.
func (c *Catalog) ByName(name string) (Entity, bool) { return get(c.names, name) }

// Applications returns all applications, sorted by id.
func (c *Catalog) Applications() []Entity { return slices.Clone(c.sortedApplications) }

// Resources returns all resources, sorted by id.
func (c *Catalog) Resources() []Entity { return slices.Clone(c.sortedResources) }

// Empty reports whether the catalog has neither people, nor applications, nor resources.
func (c *Catalog) Empty() bool { return len(c.people)+len(c.applications)+len(c.resources) == 0 }

// Members returns the members of a group that the catalog has as people, sorted.
func (c *Catalog) Members(group string) []string {
	g, ok := c.groups[group]
	if !ok {
		return nil
	}
	return slices.Clone(g.Members)
}

// InGroup reports whether a person is a member of a group.
func (c *Catalog) InGroup(person, group string) bool {
	g, ok := c.groups[group]
	return ok && slices.Contains(g.Members, person)
}

// Owns reports whether a person is one of an entity's owners, or a member of one.
func (c *Catalog) Owns(person string, e Entity) bool {
	return slices.ContainsFunc(e.Owners, func(o Owner) bool {
		return o.Kind == OwnerPerson && o.ID == person || o.Kind == OwnerGroup && c.InGroup(person, o.ID)
	})
}

// identities are the owners that a person acts for: the person and the person's groups.
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

// Owned returns the applications and the resources that a person owns, directly or as a member of a group, sorted by
// id.
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

// OwnerPeople returns the people who can act for an entity's owners, sorted. Owners who left are not among them.
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

// OwnerName returns the display name of an owner, or the id if the catalog does not have the owner.
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

// Leader returns the leader of a person: the explicit one, else the lead of one of the person's groups (in the order of
// their ids), else the lead of a parent group. Nobody leads themselves, and a cycle of groups ends the search.
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

// Leaders returns the leaders above a person, nearest first, without the person. A cycle ends the list.
func (c *Catalog) Leaders(person string) []string {
	var out []string
	for at, ok := c.Leader(person); ok && at != person && !slices.Contains(out, at); at, ok = c.Leader(at) {
		out = append(out, at)
	}
	return out
}

// Leads reports whether a person is the direct leader of another person.
func (c *Catalog) Leads(person string) bool { return c.directLeaders[person] }

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
