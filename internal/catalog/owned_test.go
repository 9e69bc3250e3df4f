package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOwned compares Owned with Owns for everybody and everything.
func TestOwned(t *testing.T) {
	c := Build([]Record{
		{Kind: KindGroup, ID: "g", Members: []string{"ann", "ben"}}, {Kind: KindGroup, ID: "h", Members: []string{"ben", "gone"}},
		{Kind: KindPerson, ID: "ann"}, {Kind: KindPerson, ID: "ben"}, {Kind: KindPerson, ID: "cid"},
		{Kind: KindApplication, ID: "b", Name: "n:b", Owners: []Owner{{OwnerGroup, "g"}, {OwnerPerson, "ben"}}},
		{Kind: KindApplication, ID: "a", Name: "n:a", Owners: []Owner{{OwnerPerson, "ann"}, {OwnerGroup, "nobody"}}},
		{Kind: KindResource, ID: "r", Name: "n:r", Owners: []Owner{{OwnerGroup, "h"}}},
		{Kind: KindResource, ID: "q", Name: "n:q"},
	})
	for _, person := range []string{"ann", "ben", "cid", "gone", ""} {
		applications, resources := c.Owned(person)
		var got, want []string
		for _, e := range append(applications, resources...) {
			got = append(got, e.ID)
		}
		for _, e := range append(c.Applications(), c.Resources()...) {
			if c.Owns(person, e) {
				want = append(want, e.ID)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: (-Owns +Owned)\n%s", person, d)
		}
	}
}
