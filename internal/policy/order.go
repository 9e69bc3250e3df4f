package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// object is the interface that every kind of the API implements.
type object interface {
	comparable
	GetName() string
	GetCreationTimestamp() metav1.Time
}

// sortedObjects returns a sorted copy without nil objects, so that the order of the input does not matter.
func sortedObjects[O object](in []O, compare func(a, b O) int) []O {
	var none O
	out := make([]O, 0, len(in))
	for _, o := range in {
		if o != none {
			out = append(out, o)
		}
	}
	if !slices.IsSortedFunc(out, compare) {
		slices.SortStableFunc(out, compare)
	}
	return out
}

func byName[O object](a, b O) int { return strings.Compare(a.GetName(), b.GetName()) }

// byAge orders older objects first: when two classes overlap, the older one keeps its names.
func byAge[O object](a, b O) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), byName(a, b))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sortedRefs sorts and removes duplicates in place.
func sortedRefs(refs []Ref) []Ref {
	slices.SortFunc(refs, Ref.Compare)
	return slices.Compact(refs)
}
