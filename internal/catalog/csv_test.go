package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestCSV(t *testing.T) {
	var r SourceContent
	r.AddCSV(KindResource, "resources.csv", []byte("\ufeffID,name,Owners,sensitivity,title\n"+
		`cache,trnv1:rsc:a:redis:clusters:cache," user:bob; group:default/storage ;payments",HIGH,"The ""cache"""`+"\n"))
	r.AddCSV(KindPerson, "people.csv", []byte("id,title,jobTitle,groups,leader\nbob,Bob T,Engineer,storage;all;storage,user:frank\n"))
	want := []Record{
		{
			Kind:        KindResource,
			ID:          "cache",
			Title:       `The "cache"`,
			Name:        "trnv1:rsc:a:redis:clusters:cache",
			Sensitivity: SensitivityHigh,
			Where:       "resources.csv, line 2",
			Owners:      []Owner{{OwnerGroup, "payments"}, {OwnerGroup, "storage"}, {OwnerPerson, "bob"}},
		},
		{Kind: KindPerson, ID: "bob", Title: "Bob T", JobTitle: "Engineer", Groups: []string{"all", "storage"}, Leader: "frank", Where: "people.csv, line 2"},
	}
	if d := cmp.Diff(want, r.Records); d != "" || len(r.Problems) != 0 {
		t.Errorf("-want +got\n%s%v", d, r.Problems)
	}
}

func TestCSVRefuses(t *testing.T) {
	const header = "id,name,owners,sensitivity\n"
	const good = "a,trnv1:rsc:a:b:c:a,x,low\n"
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
		kept         int
	}{
		"empty": {"a header is needed", "", []string{"resources.csv: it is empty"}, 0},
		"unknown column": {
			"a mistyped column must not be left out", "id,name,owners,sensitive\n" + good,
			[]string{`line 1, column 16: column "sensitive" is not known`, `column "sensitivity" is missing`}, 0,
		},
		"column twice": {"which of the two", "id,ID,name,owners,sensitivity\n", []string{`line 1, column 4: column "ID" is there twice`}, 0},
		"name":         {"names line and column", header + good + "b,nonsense,x,low\n", []string{"line 3, column 3: resource/b has the resource name"}, 1},
		"owner": {
			"the kind of an owner is user or group", header + "b,trnv1:rsc:a:b:c:d,team:x,low\n" + good,
			[]string{`line 2, column 21: the owner "team:x"`}, 1,
		},
		"no owner":        {"somebody must decide", header + "b,trnv1:rsc:a:b:c:d,;,low\n", []string{"line 2, column 21: resource/b has no owner"}, 0},
		"sensitivity":     {"a typo must not lower it", header + "b,trnv1:rsc:a:b:c:d,x,hgih\n", []string{"line 2, column 23"}, 0},
		"empty is no low": {"nor must leaving it out", header + "b,trnv1:rsc:a:b:c:d,x,\n", []string{"line 2, column 23: the sensitivity is empty"}, 0},
		"short row":       {"the next line is read", header + "b,c\n" + good, []string{"line 2, column 1: wrong number of fields"}, 1},
		"quote":           {"the place of the quote", header + good + "b,\"c\n", []string{"line 3, column 6"}, 1},
		"control":         {"it would break logs", header + "b,trnv1:rsc:a:b:c:\x1b,x,low\n", []string{"control characters"}, 0},
		"quoted multiline": {
			"lines are those of the file", header + "\"b\nb\",trnv1:rsc:a:b:c:d,x,low\n",
			[]string{"line 2, column 1: resource has the id"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r SourceContent
			r.AddCSV(KindResource, "resources.csv", []byte(tc.text))
			if len(r.Problems) != len(tc.want) || len(r.Records) != tc.kept {
				t.Fatalf("%s: want %d problems and %d records, got %v and %v", tc.reason, len(tc.want), tc.kept, r.Problems, r.Records)
			}
			for i, want := range tc.want {
				if got := r.Problems[i].Error(); !strings.Contains(got, want) {
					t.Errorf("%s: want %q, got %q", tc.reason, want, got)
				}
			}
		})
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "people.yaml", "kind: User\nmetadata: {name: bob, namespace: eu}\nspec: {memberOf: ['group:eu/storage', 'default/all']}\n")
	write(t, dir, "groups.csv", "id,members\nall,user:eu/bob;User:default/carol\n")
	write(t, dir, ".hidden.yaml", "kind: [")
	r, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{Kind: KindGroup, ID: "all", Title: "all", Members: []string{"carol", "eu.bob"}},
		{Kind: KindPerson, ID: "eu.bob", Title: "eu.bob", Groups: []string{"all", "eu.storage"}},
	}
	if d := cmp.Diff(want, r.Records, cmpopts.IgnoreFields(Record{}, "Where")); d != "" || r.Err() != nil {
		t.Errorf("YAML and CSV are one source; a namespace is part of the id: (-want +got)\n%s%v", d, r.Err())
	}
}

func FuzzCSV(f *testing.F) {
	f.Add("id,name,owners,sensitivity\na,trnv1:rsc:a:b:c:a,user:x;y,low\n")
	f.Add("id,groups\n\"a\nb\",\"x;;\"\n")
	f.Add("\ufeffid\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range Kinds() {
			var r SourceContent
			r.AddCSV(kind, "x.csv", []byte(text))
			checkReading(t, r)
		}
	})
}

func FuzzYAML(f *testing.F) {
	f.Add(people)
	f.Add(things)
	f.Add("kind: [\n---\nkind: User")
	f.Add("&a {kind: *a}")
	f.Fuzz(func(t *testing.T, text string) {
		var r SourceContent
		r.AddYAML("x.yaml", []byte(text))
		r.AddJSON("x.json", []byte(text))
		checkReading(t, r)
	})
}

// checkReading checks that records are in their normal form, and that a view built from the unique records contains all
// of them.
func checkReading(t *testing.T, r SourceContent) {
	t.Helper()
	for _, rec := range r.Records {
		n, err := rec.Normalize()
		if err != nil {
			t.Fatalf("%+v was taken: %v", rec, err)
		}
		if d := cmp.Diff(rec, n); d != "" {
			t.Fatalf("not normal: (-got +normal)\n%s", d)
		}
	}
	r.Unique()
	c := Build(r.Records)
	for _, rec := range r.Records {
		known := false
		switch rec.Kind {
		case KindPerson:
			_, known = c.Person(rec.ID)
			c.Leaders(rec.ID)
		case KindGroup:
			_, known = c.Group(rec.ID)
		case KindApplication:
			_, known = c.Application(rec.ID)
		case KindResource:
			_, known = c.Resource(rec.ID)
		}
		if !known {
			t.Fatalf("%s is not in the view", rec.Ref())
		}
	}
}
