package approval

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog"
)

// TestEveryKindIsComplete checks the rules, the built-in chain, the API, the web UI and the documentation for each kind.
func TestEveryKindIsComplete(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "people.yaml"), []byte("{kind: User, metadata: {name: alice}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	people, err := catalog.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds() {
		if !k.Valid() {
			t.Errorf("%s is not valid", k)
		}
		if !rules.HasKind(string(k)) {
			t.Errorf("approval policies cannot be evaluated for %s", k)
		}
		if _, err := builtin(
			about{c: people, requester: "alice", reached: &Reached{}}, k, Item{Change: &Change{}},
		); err != nil && strings.Contains(err.Error(), "built-in chain") {
			t.Errorf("%s: %v", k, err)
		}
	}
	for file, text := range filesNamingKinds(t) {
		for _, k := range Kinds() {
			if !regexp.MustCompile(`(^|[^-\w])` + regexp.QuoteMeta(string(k)) + `([^-\w]|$)`).MatchString(text) {
				t.Errorf("%s does not name the kind %s", file, k)
			}
		}
	}
	if other := Kind("other"); other.Valid() || slices.Contains(Kinds(), other) || rules.HasKind("other") {
		t.Error("a kind that does not exist is valid")
	}
}

// filesNamingKinds returns the part of each file that lists all kinds outside this module's Go code.
func filesNamingKinds(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for file, part := range map[string]string{
		"api/openapi.yaml":                    `(?m)^    TicketKind: .*$`,
		"docs/approvals.md":                   `(?s)\n## Kinds\n.*?\n\nA ticket`,
		"web/src/lib/items.ts":                `(?m)^export const ticketKinds = .*$`,
		"web/src/lib/use-heading.ts":          `(?s)\n +switch \(.*`,
		"web/src/components/ItemSentence.tsx": `(?s)\n +switch \(.*`,
		"web/src/pages/NewRequestPage.tsx":    `(?s)\n +switch \(.*`,
		"web/src/i18n/en/tickets.ts":          `(?s)\n  kind: \{.*?\n  \}`,
		"web/src/i18n/zh/tickets.ts":          `(?s)\n  kind: \{.*?\n  \}`,
		"web/src/i18n/en/request.ts":          `(?s)\n    titles: \{.*?\n    \}`,
		"web/src/i18n/zh/request.ts":          `(?s)\n    titles: \{.*?\n    \}`,
	} {
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if out[file] = regexp.MustCompile(part).FindString(string(text)); out[file] == "" {
			t.Errorf("%s has no list of kinds that matches %s", file, part)
		}
	}
	return out
}

// TestFilesForANewKindExist checks the files that the comment of Kind names.
func TestFilesForANewKindExist(t *testing.T) {
	source, err := os.ReadFile("kind.go")
	if err != nil {
		t.Fatal(err)
	}
	comment, _, found := strings.Cut(string(source), "\ntype Kind string")
	if !found {
		t.Fatal("kind.go does not declare Kind")
	}
	names := regexp.MustCompile(`[\w/.-]+\.(?:go|json|yaml|tsx?|md)\b`).FindAllString(comment, -1)
	if len(names) < 20 {
		t.Errorf("the comment names only %d files: %v", len(names), names)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join("../..", name)); err == nil {
			continue
		}
		if _, err := os.Stat(name); err != nil {
			t.Errorf("%s does not exist", name)
		}
	}
}

// TestUnknownKindsAreRefused checks that a kind without a case of its own is not treated as another kind.
func TestUnknownKindsAreRefused(t *testing.T) {
	if steps, err := builtin(about{}, "other", Item{}); err == nil {
		t.Errorf("the built-in chain has steps: %v", steps)
	}
	x := planner{Service: &Service{}, request: Request{Kind: "other"}}
	if it, err := x.change(RequestItem{}, ""); err == nil {
		t.Errorf("a change is planned: %+v", it)
	}
}
