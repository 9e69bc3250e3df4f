package catalog

import (
	"math/bits"
	"slices"
)

// set is a set of documents by number. A small set is a list and a large one a bitmap, because most words are in few
// documents.
type set struct {
	n    int      // number of documents in the index
	few  []uint32 // sorted; used while bits is nil
	bits []uint64
}

func newSet(n int) *set { return &set{n: n} }

// add adds a document. While the set is a list, documents must be added in ascending order.
func (s *set) add(doc uint32) {
	if s.bits == nil {
		if k := len(s.few); k > 0 && s.few[k-1] == doc {
			return
		}
		if len(s.few) < s.n/32 {
			s.few = append(s.few, doc)
			return
		}
		s.toBitmap()
	}
	s.bits[doc/64] |= 1 << (doc % 64)
}

func (s *set) toBitmap() {
	if s.bits != nil {
		return
	}
	s.bits = make([]uint64, (s.n+63)/64)
	for _, d := range s.few {
		s.bits[d/64] |= 1 << (d % 64)
	}
	s.few = nil
}

func (s *set) has(doc uint32) bool {
	if s.bits == nil {
		_, ok := slices.BinarySearch(s.few, doc)
		return ok
	}
	return s.bits[doc/64]&(1<<(doc%64)) != 0
}

func (s *set) clone() *set { return &set{n: s.n, few: slices.Clone(s.few), bits: slices.Clone(s.bits)} }

func (s *set) and(o *set) {
	switch {
	case s.bits == nil:
		s.few = slices.DeleteFunc(s.few, func(d uint32) bool { return !o.has(d) })
	case o.bits == nil:
		few := slices.DeleteFunc(slices.Clone(o.few), func(d uint32) bool { return !s.has(d) })
		s.bits, s.few = nil, few
	default:
		for i := range s.bits {
			s.bits[i] &= o.bits[i]
		}
	}
}

func (s *set) or(o *set) {
	s.toBitmap()
	if o.bits == nil {
		for _, d := range o.few {
			s.bits[d/64] |= 1 << (d % 64)
		}
		return
	}
	for i := range s.bits {
		s.bits[i] |= o.bits[i]
	}
}

func (s *set) len() int {
	n := len(s.few)
	for _, b := range s.bits {
		n += bits.OnesCount64(b)
	}
	return n
}

func (s *set) empty() bool {
	return len(s.few) == 0 && !slices.ContainsFunc(s.bits, func(b uint64) bool { return b != 0 })
}

// each yields the documents in ascending order.
func (s *set) each(yield func(uint32) bool) {
	if s.bits == nil {
		for _, d := range s.few {
			if !yield(d) {
				return
			}
		}
		return
	}
	for i, b := range s.bits {
		for ; b != 0; b &= b - 1 {
			if !yield(uint32(i*64 + bits.TrailingZeros64(b))) {
				return
			}
		}
	}
}
