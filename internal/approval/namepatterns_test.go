package approval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

const (
	patternApp   = "trnv1:rsc:acme:iam:sa:app/"
	patternCache = "trnv1:rsc:acme:redis:clusters:"
	patternRange = "trnv1:rsc:acme:net:cidr:10.0.0.0/8"
)

// TestNamePatterns checks which names patterns cover. The same function decides about rights, chains and what facts show.
func TestNamePatterns(t *testing.T) {
	for name, tc := range map[string]struct {
		written []string
		name    string
		want    bool
	}{
		"Name":              {[]string{patternApp + "1"}, patternApp + "1", true},
		"LongerName":        {[]string{patternApp + "1"}, patternApp + "12", false},
		"Prefix":            {[]string{patternApp + "1*"}, patternApp + "12", true},
		"PrefixItself":      {[]string{patternApp + "1*"}, patternApp + "1", true},
		"AnotherPrefix":     {[]string{patternApp + "2*"}, patternApp + "12", false},
		"WholeType":         {[]string{patternApp + "*"}, patternApp + "12", true},
		"OneOfSeveral":      {[]string{patternApp + "2*", patternApp + "1"}, patternApp + "1", true},
		"AnyoneIsNoName":    {[]string{"*"}, patternApp + "1", false},
		"RangeIsNoName":     {[]string{patternRange}, patternApp + "1", false},
		"StarWithin":        {[]string{"trnv1:rsc:acme:*:sa:app/1"}, patternApp + "1", false},
		"PartOfAService":    {[]string{"trnv1:rsc:acme:i*"}, patternApp + "1", false},
		"WithoutAnyPattern": {nil, patternApp + "1", false},
	} {
		if got := approval.NewNamePatterns(tc.written).Cover(tc.name); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// scopeCatalog has three applications and four resources. Ann owns all of the former and two of the latter; Bob owns one application.
func scopeCatalog() *catalog.Catalog {
	owner := func(ids ...string) (out []catalog.Owner) {
		for _, id := range ids {
			out = append(out, catalog.Owner{Kind: catalog.OwnerPerson, ID: id})
		}
		return out
	}
	records := []catalog.Record{{Kind: catalog.KindPerson, ID: "ann"}, {Kind: catalog.KindPerson, ID: "bob"}, {Kind: catalog.KindPerson, ID: "cem"}}
	for i, owners := range [][]catalog.Owner{owner("ann", "bob"), owner("ann"), owner("ann")} {
		records = append(
			records,
			catalog.Record{Kind: catalog.KindApplication, ID: fmt.Sprint("app-", i+1), Name: patternApp + fmt.Sprint(i+1), Owners: owners},
		)
	}
	for i, owners := range [][]catalog.Owner{owner("ann"), owner("ann"), owner("cem"), owner("cem")} {
		records = append(records,
			catalog.Record{Kind: catalog.KindResource, ID: fmt.Sprint("cache-", i+1), Name: patternCache + fmt.Sprintf("%d-cache", i+1), Owners: owners})
	}
	return catalog.Build(records)
}

// TestOwnersOfScopes checks what a scope covers, and who owns a part of it or a whole side.
func TestOwnersOfScopes(t *testing.T) {
	c := scopeCatalog()
	for name, tc := range map[string]struct {
		subjects, resources []string
		covers              string
		part, sub, res      string
	}{
		"Names": {
			[]string{patternApp + "1"}, []string{patternCache + "1-cache", patternCache + "2-cache"}, "app-1 / cache-1 cache-2", "ann bob", "ann bob", "ann",
		},
		"Prefixes": {[]string{patternApp + "*"}, []string{patternCache + "*"}, "app-1 app-2 app-3 / cache-1 cache-2 cache-3 cache-4", "ann bob cem", "ann", ""},
		"EachOnce": {
			[]string{patternApp + "*", patternApp + "1"}, []string{patternCache + "3*", patternCache + "3-cache"},
			"app-1 app-2 app-3 / cache-3", "ann bob cem", "ann", "cem",
		},
		"Anyone":       {[]string{"*"}, []string{patternCache + "4-cache"}, "/ cache-4", "cem", "", "cem"},
		"Range":        {[]string{patternRange}, []string{patternCache + "1-cache"}, "/ cache-1", "ann", "", "ann"},
		"NameAndRange": {[]string{patternRange, patternApp + "1"}, []string{patternCache + "4-cache"}, "app-1 / cache-4", "ann bob cem", "", "cem"},
		"NothingYet":   {[]string{patternApp + "9*"}, []string{patternCache + "9*"}, "/", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &approval.StatementScope{Effect: v1alpha1.EffectAllow, Subjects: tc.subjects, Resources: tc.resources}
			var words []string
			for e := range s.CoveredApplications(c) {
				words = append(words, e.ID)
			}
			words = append(words, "/")
			for e := range s.CoveredResources(c) {
				words = append(words, e.ID)
			}
			if d := cmp.Diff(tc.covers, strings.Join(words, " ")); d != "" {
				t.Error(d)
			}
			for what, x := range map[string]struct {
				owns func(*catalog.Catalog, string) bool
				want string
			}{"part": {s.OwnedInPart, tc.part}, "subjects": {s.OwnsSubjects, tc.sub}, "resources": {s.OwnsResources, tc.res}} {
				who := slices.DeleteFunc([]string{"ann", "bob", "cem", "dan"}, func(p string) bool { return !x.owns(c, p) })
				if got := strings.Join(who, " "); got != x.want {
					t.Errorf("%s: %q, want %q", what, got, x.want)
				}
			}
		})
	}
}
