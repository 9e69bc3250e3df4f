package conformance

import "slices"

// Pairs counts how often two features occurred in one decision.
type Pairs struct {
	all    []Feature
	index  map[Feature]int
	counts []int
}

// NewPairs returns an empty table.
func NewPairs() *Pairs {
	p := &Pairs{all: slices.Concat(freeFeatures, sourceFeatures, portFeatures), index: map[Feature]int{}}
	for i, f := range p.all {
		p.index[f] = i
	}
	p.counts = make([]int, len(p.all)*len(p.all))
	return p
}

// Add counts a decision with its features n times.
func (p *Pairs) Add(features []Feature, n int) {
	for _, a := range features {
		for _, b := range features {
			p.counts[p.index[a]*len(p.all)+p.index[b]] += n
		}
	}
}

// Features returns the features in the order of the table.
func (p *Pairs) Features() []Feature { return p.all }

// Met returns how often two features occurred together.
func (p *Pairs) Met(a, b Feature) int { return p.counts[p.index[a]*len(p.all)+p.index[b]] }

// Exclusive reports whether no decision can have both features.
func Exclusive(a, b Feature) bool {
	for _, group := range [][]Feature{sourceFeatures, portFeatures} {
		if a != b && slices.Contains(group, a) && slices.Contains(group, b) {
			return true
		}
	}
	return false
}
