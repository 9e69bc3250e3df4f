package federation

// SpecChange is a change of what members must have by an object.
type SpecChange struct {
	// Before and After are the specs before and after the change, or nil where the object is not placed.
	Before, After map[string]any
	// Members are the members in which the spec changes in this way.
	Members []string
}

// SpecChanges returns how an object and its successor differ in some members. Members that have no override of their own share one change, so that
// the specs of an object without overrides are compared once for any number of members. before is nil if the object is new.
func SpecChanges(before, after *Object, members []string) []SpecChange {
	type key struct{ before, after string }
	var out []SpecChange
	indexes, seen := map[key]int{}, make(map[string]bool, len(members))
	was, is := before.specSources(), after.specSources()
	for _, c := range members {
		if seen[c] {
			continue
		}
		seen[c] = true
		k := key{was[c], is[c]}
		i, known := indexes[k]
		if !known {
			i = len(out)
			indexes[k] = i
			out = append(out, SpecChange{Before: before.specFrom(k.before), After: after.specFrom(k.after)})
		}
		out[i].Members = append(out[i].Members, c)
	}
	return out
}

const (
	// templateSource is the source of the spec of members without an override.
	templateSource = "template"
	// overrideSource is followed by the member's name.
	overrideSource = "override/"
)

// specSources returns where the spec of each member comes from in which the object is placed.
func (o *Object) specSources() map[string]string {
	if o == nil {
		return nil
	}
	out := make(map[string]string, len(o.Placement))
	for _, c := range o.Placement {
		if out[c] = templateSource; o.Overrides[c].Spec != nil {
			out[c] = overrideSource + c
		}
	}
	return out
}

// specFrom returns the spec from a source of specSources, or nil for none.
func (o *Object) specFrom(source string) map[string]any {
	switch source {
	case "":
		return nil
	case templateSource:
		return o.TemplateSpec
	}
	return o.Overrides[source[len(overrideSource):]].Spec
}
