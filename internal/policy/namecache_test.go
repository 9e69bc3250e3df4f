package policy

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestNameCacheChangesNoStatement checks that a statement that is parsed after others, with their names in the cache, is the same as one that is
// parsed alone. All fields are compared, so the test fails if a field depends on more than the name under which it is cached.
func TestNameCacheChangesNoStatement(t *testing.T) {
	statements, flawed, cached := 0, 0, 0
	for seed := range uint64(200) {
		d := dice{rand.New(rand.NewPCG(seed, 31))}
		in := d.world()
		d.breakWorld(&in)
		s := NewSnapshot(in)
		names := map[string]bool{}
		for _, p := range in.Policies {
			for i := range p.Spec.Statements {
				written := &p.Spec.Statements[i]
				at := slices.IndexFunc(s.parsed[p], func(st *statement) bool { return st.written == written })
				if at < 0 {
					t.Fatalf("seed %d: %s is not parsed", seed, written.SID)
				}
				one := p.DeepCopy()
				one.Spec.Statements = one.Spec.Statements[i : i+1]
				got, want := *s.parsed[p][at], *s.parse(one, &nameCache{subjects: newNumbering(0)})[0]
				for _, st := range []*statement{&got, &want} {
					st.written, st.policy, st.inline = nil, nil, [3]string{}
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d: %s is\n%+v\nand alone\n%+v", seed, written.SID, got, want)
				}
				statements++
				if got.refused() {
					flawed++
				}
				for _, name := range slices.Concat(got.subjects.exact, got.exact) {
					if names[name] {
						cached++
					}
					names[name] = true
				}
			}
		}
	}
	if statements < 500 || flawed < 50 || cached < 200 {
		t.Errorf("%d statements, %d with flaws, and %d names that occur again: too few to notice a mistake", statements, flawed, cached)
	}
}
