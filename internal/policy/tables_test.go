package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNumberingIsAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, expected := range []int{0, 10, 5000} {
		n, want := newNumbering(expected), map[string]uint32{}
		for range 3000 {
			name := fmt.Sprint(r.IntN(1000))
			if _, ok := want[name]; !ok {
				want[name] = uint32(len(want))
			}
			if got := n.add(name); got != want[name] {
				t.Fatalf("%d expected: add(%s) = %d, want %d", expected, name, got, want[name])
			}
			other := fmt.Sprint(r.IntN(1000))
			number, known := want[other]
			if got, ok := n.find(other); got != number || ok != known {
				t.Fatalf("%d expected: find(%s) = %d, %v, want %d, %v", expected, other, got, ok, number, known)
			}
		}
		for name, number := range want {
			if n.names[number] != name {
				t.Fatalf("number %d is %s, want %s", number, n.names[number], name)
			}
		}
	}
}

// Names that share a part of the hash are distinguished by their text.
func TestNumberingComparesNames(t *testing.T) {
	n := newNumbering(2)
	n.add("first")
	if !n.is(0, "first") || n.is(0, "firs") || n.is(0, "first-") || n.is(0, "other") {
		t.Error("a name is compared wrongly")
	}
}

func TestListsKeepTheOrder(t *testing.T) {
	l := newLists(4, []listItem{{2, 7}, {0, 9}, {2, 3}, {3, 1}, {2, 5}})
	for group, want := range [][]uint32{{9}, nil, {7, 3, 5}, {1}} {
		if got := l.of(uint32(group)); !slices.Equal(got, want) {
			t.Errorf("group %d has %v, want %v", group, got, want)
		}
	}
	_ = append(l.of(0), 100)
	if got := l.of(2); got[0] != 7 {
		t.Error("a list that grows writes into the next one")
	}
}

// TestPlacedEntriesAreFound: what was added for a target is found there, by its subject or by looking through, and nothing
// else is.
func TestPlacedEntriesAreFound(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		targets := 1 + r.IntN(6)
		var in []pendingEntry
		want := map[uint32]map[uint32][]uint32{} // statements by target and subject
		for i := range uint32(r.IntN(200)) {
			p := pendingEntry{uint32(r.IntN(targets)), entry{subject: uint32(r.IntN(30)), actions: 1, statement: i}}
			in = append(in, p)
			if want[p.target] == nil {
				want[p.target] = map[uint32][]uint32{}
			}
			want[p.target][p.subject] = append(want[p.target][p.subject], i)
		}
		placed, entries := buildTables(targets, in)
		for i := range placed {
			target := &placed[i]
			for subject := range uint32(30) {
				var got []uint32
				if subject == 0 {
					for _, e := range entries[target.scanned:target.end] {
						got = append(got, e.statement)
					}
				} else if target.table < target.scanned {
					for at := target.slot(subject); entries[at].subject != 0; at = target.after(at) {
						if entries[at].subject == subject {
							got = append(got, entries[at].statement)
						}
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(want[uint32(i)][subject], got); diff != "" {
					t.Fatalf("seed %d, target %d, subject %d: -want +got:\n%s", seed, i, subject, diff)
				}
			}
		}
	}
}
