package enforcer

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/acp-io/acp/internal/policy"
)

// Version is the rendering of one version of a unit, with the members that have it.
type Version struct {
	Rendering
	In []string
}

// Versions are the objects of a unit of which members have one of several versions, as while the change of a class reaches them in waves.
type Versions struct {
	Rendering
	// Members contains, by object, the members that have it, sorted. Objects that are not listed are in every member.
	Members map[string][]string
}

// Combine returns the objects of a unit that is placed in some members: those of the present version, and in the members of another
// version its objects. A member must not have several other versions.
func Combine(present Rendering, members []string, others []Version) Versions {
	out := Versions{Rendering: present, Members: map[string][]string{}}
	for i := range present.Objects {
		if o := &present.Objects[i]; o.Only != nil {
			out.Members[o.Object.Name] = o.among(members)
		}
	}
	out.Objects, out.RefusedIn = slices.Clone(present.Objects), maps.Clone(present.RefusedIn)
	if out.RefusedIn == nil {
		out.RefusedIn = map[string][]policy.Refusal{}
	}
	for i := range others {
		other := &others[i]
		for _, c := range other.In {
			out.RefusedIn[c] = other.RefusedBy(c)
		}
		for k := range present.Objects {
			name := present.Objects[k].Object.Name
			having := other.having(name)
			if _, listed := out.Members[name]; !listed {
				if len(having) == len(other.In) {
					continue
				}
				out.Members[name] = slices.Clone(members)
			}
			out.Members[name] = slices.DeleteFunc(out.Members[name], func(c string) bool { return slices.Contains(other.In, c) && !slices.Contains(having, c) })
		}
		for k := range other.Objects {
			out.add(&other.Objects[k], other.having(other.Objects[k].Object.Name))
		}
	}
	return out
}

// having returns the members of a version that have an object.
func (v *Version) having(name string) []string {
	i := v.index(name)
	if i < 0 {
		return nil
	}
	return v.Objects[i].among(v.In)
}

// among returns those of some members that have the object.
func (r *Rendered) among(members []string) []string {
	return slices.DeleteFunc(slices.Clone(members), func(c string) bool { return !r.IsIn(c) })
}

// index returns the index of the object with a name, or -1.
func (r *Rendering) index(name string) int {
	return slices.IndexFunc(r.Objects, func(o Rendered) bool { return o.Object.Name == name })
}

// add gives some members their version of an object.
func (v *Versions) add(r *Rendered, in []string) {
	name := r.Object.Name
	i := v.index(name)
	if i < 0 { // the present version does not have it
		i = len(v.Objects)
		v.Objects, v.Members[name] = append(v.Objects, Rendered{Object: r.Object, Revision: r.Revision}), []string{}
	}
	if listed, ok := v.Members[name]; ok {
		v.Members[name] = union(listed, in)
	}
	o := &v.Objects[i]
	o.Overrides, o.Revisions, o.Interim = maps.Clone(o.Overrides), maps.Clone(o.Revisions), maps.Clone(o.Interim)
	for _, c := range in {
		delete(o.Interim, c)
		if held, ok := r.Interim[c]; ok {
			if o.Interim == nil {
				o.Interim = map[string]InterimSpec{}
			}
			o.Interim[c] = held
		}
		spec, has := r.Overrides[c]
		if !has {
			spec = r.Object.Spec
		}
		delete(o.Overrides, c)
		delete(o.Revisions, c)
		if r.RevisionIn(c) == o.Revision {
			continue
		}
		if o.Overrides == nil {
			o.Overrides = map[string]map[string]any{}
		}
		if o.Revisions == nil {
			o.Revisions = map[string]string{}
		}
		o.Overrides[c], o.Revisions[c] = spec, r.RevisionIn(c)
	}
}

func union(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

// Size returns the size of the largest object with the specs of all members, in bytes of JSON.
func (r *Rendering) Size() int {
	largest := 0
	for i := range r.Objects {
		n := 0
		for _, spec := range append(slices.Collect(maps.Values(r.Objects[i].Overrides)), r.Objects[i].Object.Spec) {
			text, err := json.Marshal(spec)
			if err == nil { // a spec that was rendered is JSON
				n += len(text)
			}
		}
		largest = max(largest, n)
	}
	return largest
}
