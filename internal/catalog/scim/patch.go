package scim

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/elimity-com/scim"
	scimerrors "github.com/elimity-com/scim/errors"
	"github.com/scim2/filter-parser/v2"
)

// apply makes the change of one operation of a patch. The library has checked paths and values with the schema.
func apply(to attributes, o scim.PatchOperation) error {
	if o.Path == nil {
		values, ok := o.Value.(map[string]any)
		if !ok {
			return scimerrors.ScimErrorInvalidSyntax
		}
		return applyEach(to, values, o.Op)
	}
	target := map[string]any(to)
	if uri := o.Path.AttributePath.URI(); strings.EqualFold(uri, enterprise) {
		target = child(target, enterprise)
	}
	name := o.Path.AttributePath.AttributeName
	if o.Path.ValueExpression != nil {
		return applyToSelected(target, name, o)
	}
	if sub := o.Path.AttributePath.SubAttributeName(); sub != "" {
		target, name = child(target, name), sub
	}
	merge(target, name, o.Value, o.Op)
	return nil
}

// applyEach makes the change of an operation without a path: each name is that of an attribute, of an extension, or a path, such as
// "name.givenName", which Entra ID sends.
func applyEach(to attributes, values map[string]any, op string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if strings.EqualFold(name, enterprise) {
			merge(to, enterprise, values[name], op)
			continue
		}
		path, err := filter.ParsePath([]byte(name))
		if err != nil {
			return scimerrors.ScimErrorInvalidPath
		}
		if err := apply(to, scim.PatchOperation{Op: op, Path: &path, Value: values[name]}); err != nil {
			return err
		}
	}
	return nil
}

// child returns the complex attribute with a name, which is created if it is absent.
func child(in map[string]any, name string) map[string]any {
	name = key(in, name)
	out, ok := in[name].(map[string]any)
	if !ok {
		out = map[string]any{}
		in[name] = out
	}
	return out
}

// merge adds, replaces or removes a value of an attribute.
func merge(in map[string]any, name string, value any, op string) {
	name = key(in, name)
	present, many := in[name].([]any)
	values, list := value.([]any)
	switch {
	case op == scim.PatchOperationRemove && many && list:
		removed := newValueSet(values)
		if present = slices.DeleteFunc(present, removed.has); len(present) == 0 {
			delete(in, name)
			return
		}
		in[name] = present
	case op == scim.PatchOperationRemove:
		delete(in, name)
	case op == scim.PatchOperationAdd && list:
		known := newValueSet(present)
		for _, v := range values {
			if !known.has(v) {
				present = append(present, v)
				known.add(v)
			}
		}
		in[name] = present
	default:
		values, isComplex := value.(map[string]any)
		if _, has := in[name].(map[string]any); isComplex && has {
			for sub, v := range values {
				merge(child(in, name), sub, v, op)
			}
			return
		}
		in[name] = value
	}
}

// mostCompared bounds the values without a text in a valueSet.
const mostCompared = 100

// valueSet finds values of a multi-valued attribute. A value is found by its text in constant time, because a patch can have very many. Values
// without one, which no attribute of the catalog has, are compared with the first mostCompared only.
type valueSet struct {
	texts  map[string]bool
	others []any
}

func newValueSet(list []any) *valueSet {
	s := &valueSet{texts: make(map[string]bool, len(list))}
	for _, v := range list {
		s.add(v)
	}
	return s
}

func (s *valueSet) add(v any) {
	if text, ok := valueText(v); ok {
		s.texts[text] = true
	} else if len(s.others) < mostCompared {
		s.others = append(s.others, v)
	}
}

// has reports whether the set has a value. Values with the sub-attribute "value" are equal if that is.
func (s *valueSet) has(v any) bool {
	if text, ok := valueText(v); ok {
		return s.texts[text]
	}
	return slices.ContainsFunc(s.others, func(x any) bool { return reflect.DeepEqual(x, v) })
}

// valueText returns the text by which a value is compared; false if there is none.
func valueText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return "simple " + v, true
	case map[string]any:
		text, ok := get(v, "value").(string)
		return "complex " + text, ok
	}
	return "", false
}

// applyToSelected makes a change of those values of a multi-valued attribute that an expression selects.
func applyToSelected(in map[string]any, name string, o scim.PatchOperation) error {
	name = key(in, name)
	list, _ := in[name].([]any)
	sub, matched := o.Path.SubAttributeName(), false
	out := make([]any, 0, len(list))
	for _, v := range list {
		x, _ := v.(map[string]any)
		selected, err := selects(o.Path.ValueExpression, x)
		if err != nil {
			return err
		}
		matched = matched || selected
		switch {
		case !selected:
			out = append(out, v)
		case sub != "":
			merge(x, sub, o.Value, o.Op)
			out = append(out, x)
		case o.Op != scim.PatchOperationRemove:
			out = append(out, o.Value)
		}
	}
	if !matched && !selectable(name) {
		return nil // as a value of such an attribute elsewhere: a client must not fail to deactivate a person because of an address
	}
	if !matched && o.Op != scim.PatchOperationRemove {
		// Clients set emails[type eq "work"].value of a user without such an address, too.
		e, ok := o.Path.ValueExpression.(*filter.AttributeExpression)
		if !ok || e.Operator != filter.EQ || sub == "" {
			return scimerrors.ScimErrorNoTarget
		}
		out = append(out, map[string]any{e.AttributePath.AttributeName: e.CompareValue, sub: o.Value})
	}
	if len(out) == 0 {
		delete(in, name)
		return nil
	}
	in[name] = out
	return nil
}

// selectable reports whether an attribute with several values is stored.
func selectable(name string) bool {
	return strings.EqualFold(name, "emails") || strings.EqualFold(name, "members")
}

// textComparisons maps each SCIM operator that compares a part of a string to the comparison.
var textComparisons = map[filter.CompareOperator]func(text, part string) bool{
	filter.CO: strings.Contains, filter.SW: strings.HasPrefix, filter.EW: strings.HasSuffix,
}

// selects reports whether an expression selects a value. It supports presence, comparisons for equality and of parts of a text, "and", "or"
// and "not".
func selects(e filter.Expression, x map[string]any) (bool, error) {
	switch e := e.(type) {
	case *filter.AttributeExpression:
		v := get(x, e.AttributePath.AttributeName)
		switch e.Operator {
		case filter.PR:
			return v != nil, nil
		case filter.EQ, filter.NE:
			a, textA := v.(string)
			b, textB := e.CompareValue.(string)
			equal := textA && textB && strings.EqualFold(a, b) || !textA && reflect.DeepEqual(v, e.CompareValue)
			return equal == (e.Operator == filter.EQ), nil
		case filter.CO, filter.SW, filter.EW:
			part, ok := e.CompareValue.(string)
			if !ok {
				break
			}
			text, _ := v.(string)
			return textComparisons[e.Operator](strings.ToLower(text), strings.ToLower(part)), nil
		}
	case *filter.NotExpression:
		selected, err := selects(e.Expression, x)
		return !selected, err
	case *filter.LogicalExpression:
		left, err := selects(e.Left, x)
		if err != nil || left == (e.Operator == filter.OR) {
			return left, err
		}
		return selects(e.Right, x)
	}
	return false, scimerrors.ScimErrorInvalidFilter
}
