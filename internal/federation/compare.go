package federation

import (
	"fmt"
	"maps"
	"slices"
)

// Differs reports whether next has to be written over e, which may be nil. An annotation that lists too many names is
// not a difference.
func Differs(e, next *Object) (bool, error) {
	if e == nil || e.ForeignFields {
		return true, nil
	}
	if e.Meta.Annotations[AnnotationResource] != next.Meta.Annotations[AnnotationResource] {
		return true, nil
	}
	for _, a := range []string{AnnotationEverPlaced, AnnotationPolicies} {
		if !subset(SplitNames(next.Meta.Annotations[a]), SplitNames(e.Meta.Annotations[a])) {
			return true, nil
		}
	}
	for k, v := range next.Meta.Labels {
		if e.Meta.Labels[k] != v {
			return true, nil
		}
	}
	same, err := SameSpec(e, next)
	if err != nil {
		return false, fmt.Errorf("compare with what is there: %w", err)
	}
	return !same, nil
}

// Overlay returns base with the entries of over added or replaced; neither is changed.
func Overlay(base, over map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, over)
	return out
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}
