package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const people = `
kind: Group
metadata: {name: company, annotations: {acp.io/lead: zoe}}
spec: {type: team}
---
kind: Group
metadata: {name: payments, title: Payments, annotations: {acp.io/lead: carol}}
spec: {type: team, parent: company, members: [alice]}
---
kind: Group
metadata: {name: loop-a}
spec: {parent: loop-b}
---
kind: Group
metadata: {name: loop-b}
spec: {parent: loop-a}
---
kind: User
metadata: {name: alice}
spec: {profile: {displayName: Alice A, email: alice@example.com}}
---
kind: User
metadata: {name: carol}
spec: {memberOf: [payments]}
---
kind: User
metadata: {name: zoe}
---
kind: User
metadata: {name: lost}
spec: {memberOf: [loop-a]}
---
kind: User
metadata: {name: ping, annotations: {acp.io/leader: pong}}
---
kind: User
metadata: {name: pong, annotations: {acp.io/leader: ping}}
---
kind: User
metadata: {name: orphan, annotations: {acp.io/leader: nobody}}
`

const things = `
kind: Component
metadata: {name: app-888, title: App 888, annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:iam:sa:app/888"}}
spec: {owner: "user:alice"}
---
kind: Resource
metadata: {name: cache, annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:redis:clusters:cache", acp.io/sensitivity: high}}
spec: {owner: payments}
---
kind: Resource
metadata: {name: left, annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:redis:clusters:left"}}
spec: {owner: "user:gone"}
---
kind: API
metadata: {name: "not ours"}
`

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func demoFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "people.yaml", people)
	write(t, dir, "things.yml", things)
	write(t, dir, "README.md", "not yaml: [")
	return dir
}

func TestLeaders(t *testing.T) {
	c, err := Read(demoFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	for who, tc := range map[string]struct {
		reason string
		want   []string
	}{
		"alice":   {"the lead of the group, then the lead of the parent group", []string{"carol", "zoe"}},
		"carol":   {"a lead's leader is one up", []string{"zoe"}},
		"zoe":     {"the top has no leader", nil},
		"lost":    {"a cycle of groups ends the search", nil},
		"ping":    {"a cycle of people ends before the person", []string{"pong"}},
		"orphan":  {"a leader whom the catalog does not know is none", nil},
		"unknown": {"an unknown person has none", nil},
	} {
		t.Run(who, func(t *testing.T) {
			if d := cmp.Diff(tc.want, c.Leaders(who)); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
		})
	}
	if !c.Leads("carol") || c.Leads("alice") {
		t.Error("carol leads alice, and alice nobody")
	}
}

func TestOwners(t *testing.T) {
	c, err := Read(demoFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	cache, _ := c.Resource("cache")
	if d := cmp.Diff([]string{"alice", "carol"}, c.OwnerPeople(cache)); d != "" {
		t.Errorf("a bare owner is a group, with members named on either side: (-want +got)\n%s", d)
	}
	if !c.Owns("alice", cache) || c.Owns("zoe", cache) {
		t.Error("members of the owning group own, others do not")
	}
	left, _ := c.Resource("left")
	if got := c.OwnerPeople(left); len(got) != 0 {
		t.Errorf("an owner who left cannot act, got %v", got)
	}
	if d := cmp.Diff([]Owner{{Kind: OwnerPerson, ID: "gone"}}, left.Owners); d != "" {
		t.Errorf("an owner who left is still shown: (-want +got)\n%s", d)
	}
	if e, ok := c.ByName("trnv1:rsc:trip-com:iam:sa:app/888"); !ok || e.ID != "app-888" {
		t.Errorf("ByName found %v, %v", e, ok)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"syntax":    {"names file and document", "kind: User\nmetadata: {name: a}\n---\nkind: [", "x.yaml, document 2"},
		"type":      {"a wrong type names the line", "kind: User\nmetadata: {name: [a]}", "line 2"},
		"duplicate": {"names both places", "kind: User\nmetadata: {name: a}\n---\nkind: User\nmetadata: {name: a}", "is also defined in x.yaml, document 2"},
		"bad id":    {"ids appear in URLs", "kind: User\nmetadata: {name: 'a b'}", `the id of the person "a b" is not valid`},
		"bad name": {
			"a wildcard is no resource",
			"kind: Resource\nmetadata: {name: r, annotations: {acp.io/resource-name: 'trnv1:rsc:a:b:c:*'}}\nspec: {owner: x}", "exact name",
		},
		"no owner": {"somebody must decide", "kind: Resource\nmetadata: {name: r, annotations: {acp.io/resource-name: 'trnv1:rsc:a:b:c:d'}}", "has no owner"},
		"sensitivity": {
			"a typo must not lower it",
			"kind: Resource\nmetadata: {name: r, annotations: {acp.io/resource-name: 'trnv1:rsc:a:b:c:d', acp.io/sensitivity: hgih}}\nspec: {owner: x}",
			"low, medium or high",
		},
		"self leader": {"nobody leads themselves", "kind: User\nmetadata: {name: a, annotations: {acp.io/leader: a}}", "is its own leader"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "x.yaml", tc.text)
			if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
	if _, err := Read(filepath.Join(t.TempDir(), "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	if _, err := Read(t.TempDir()); !errors.Is(err, ErrEmpty) {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestDemoCompany checks the catalog of the playground: it is large enough for searches, and everybody has somebody who
// decides.
func TestDemoCompany(t *testing.T) {
	c, err := Read("../../playground/demo/catalog")
	if err != nil {
		t.Fatal(err)
	}
	if got := orphans(c); len(got) != 0 {
		t.Errorf("nobody decides for %v", got)
	}
	for id := range c.people {
		if _, ok := c.Leader(id); !ok && id != "frank" {
			t.Errorf("%s has no leader", id)
		}
	}
	for _, g := range c.groups {
		if len(g.Members) == 0 && g.ID != "engineering" {
			t.Errorf("nobody is in %s", g.ID)
		}
	}
	for what, n := range map[string][2]int{
		"people": {len(c.people), 60}, "groups": {len(c.groups), 10},
		"applications": {len(c.applications), 40}, "resources": {len(c.resources), 120},
	} {
		if n[0] < n[1] {
			t.Errorf("%d %s, want at least %d", n[0], what, n[1])
		}
	}
	classes := map[string]int{}
	for _, e := range c.Resources() {
		classes[strings.Split(e.Name, ":")[3]]++
	}
	if len(classes) < 4 {
		t.Errorf("want at least four classes, got %v", classes)
	}
}
