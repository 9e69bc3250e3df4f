package openapi

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"
)

const root = "../../.."

// glossaryEntry is one row of docs/glossary.md.
type glossaryEntry struct{ term, definition, link string }

// TestGlossaryHasEveryValueOfTheAPI compares the values of the enums that users meet with the entries of docs/glossary.md,
// in both directions, so that neither a new value lacks an entry nor an entry names a value that is gone.
func TestGlossaryHasEveryValueOfTheAPI(t *testing.T) {
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Enum       []string `json:"enum"`
				Properties map[string]struct {
					Enum []string `json:"enum"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "api/openapi.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	schemas := document.Components.Schemas
	var want []string
	for kind, values := range map[string][]string{
		"dataplane verdict": schemas["Verdict"].Enum,
		"member health":     schemas["MemberHealth"].Enum,
		"member state":      schemas["ClusterState"].Properties["state"].Enum,
		"mode":              schemas["Mode"].Enum,
		"policy verdict":    schemas["Decision"].Enum,
		"ticket state":      schemas["TicketState"].Enum,
	} {
		if len(values) == 0 {
			t.Errorf("api/openapi.yaml has no enum for %q", kind)
		}
		for _, value := range values {
			want = append(want, "`"+value+"` ("+kind+")")
		}
	}
	var got []string
	for _, e := range readGlossary(t) {
		if strings.HasPrefix(e.term, "`") {
			got = append(got, e.term)
		}
	}
	for _, term := range want {
		if !slices.Contains(got, term) {
			t.Errorf("docs/glossary.md has no entry %q", term)
		}
	}
	for _, term := range got {
		if !slices.Contains(want, term) {
			t.Errorf("docs/glossary.md has an entry %q, which is no value of the API", term)
		}
	}
}

// TestGlossaryEntries checks that entries are unique and sorted, have one or two sentences, and link to a page and a
// heading that exist.
func TestGlossaryEntries(t *testing.T) {
	entries := readGlossary(t)
	if len(entries) < 100 {
		t.Errorf("got %d entries from docs/glossary.md, want at least 100", len(entries))
	}
	link := regexp.MustCompile(`^\[([a-z/-]+\.md)\]\(([a-z/-]+\.md)(?:#([^)]+))?\)$`)
	previous := ""
	for _, e := range entries {
		key := strings.ToLower(strings.ReplaceAll(e.term, "`", ""))
		if key <= previous {
			t.Errorf("entry %q: it comes after %q, want alphabetical order without repetition", e.term, previous)
		}
		previous = key
		sentences := strings.Count(e.definition+" ", ". ")
		if sentences < 1 || sentences > 2 || !strings.HasSuffix(e.definition, ".") && !strings.HasSuffix(e.definition, ".)") {
			t.Errorf("entry %q: got %d sentences, want one or two that end with a full stop", e.term, sentences)
		}
		m := link.FindStringSubmatch(e.link)
		if m == nil || m[1] != m[2] {
			t.Errorf("entry %q: %q is no link to a page of docs", e.term, e.link)
			continue
		}
		if m[3] != "" && !slices.Contains(headings(readFile(t, "docs/"+m[2])), m[3]) {
			t.Errorf("entry %q: docs/%s has no heading #%s", e.term, m[2], m[3])
		}
	}
}

// readGlossary returns the rows of the table in docs/glossary.md in their order.
func readGlossary(t *testing.T) []glossaryEntry {
	t.Helper()
	var entries []glossaryEntry
	for line := range strings.Lines(readFile(t, "docs/glossary.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| term ") || strings.HasPrefix(line, "| --- ") {
			continue
		}
		if len(cells) != 3 {
			t.Errorf("%q has %d cells, want 3", line, len(cells))
			continue
		}
		entries = append(entries, glossaryEntry{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
	}
	return entries
}

// headings returns the anchors that a Markdown page's headings have on GitHub.
func headings(page string) []string {
	var anchors []string
	for line := range strings.Lines(page) {
		_, text, isHeading := strings.Cut(line, "# ")
		if !isHeading || !strings.HasPrefix(line, "#") {
			continue
		}
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(text)))
	}
	return anchors
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
