package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEntitiesWithPrefix(t *testing.T) {
	c := Build([]Record{
		{Kind: KindApplication, ID: "z", Name: "n:app/a"}, {Kind: KindApplication, ID: "y", Name: "n:app/b"},
		{Kind: KindResource, ID: "z", Name: "n:app"}, {Kind: KindResource, ID: "x", Name: "n:app/c"}, {Kind: KindResource, ID: "w", Name: "m:app/d"},
	})
	for text, want := range map[string][2][]string{
		"n:app/":  {{"n:app/a", "n:app/b"}, {"n:app/c"}},
		"n:app/b": {{"n:app/b"}, nil},
		"n:app":   {{"n:app/a", "n:app/b"}, {"n:app", "n:app/c"}},
		"":        {{"n:app/a", "n:app/b"}, {"m:app/d", "n:app", "n:app/c"}},
		"o":       {nil, nil},
	} {
		var got [2][]string
		for e := range c.ApplicationsWithPrefix(text) {
			got[0] = append(got[0], e.Name)
		}
		for e := range c.ResourcesWithPrefix(text) {
			got[1] = append(got[1], e.Name)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
	for range (&Catalog{}).ResourcesWithPrefix("") {
		t.Error("the empty catalog has a resource")
	}
	for range c.ApplicationsWithPrefix("n:app/") {
		break // the sequence ends with the loop
	}
}
