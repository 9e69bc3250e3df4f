package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestProofsExist: the page on semantics names a test for each sentence. A test that was renamed or removed must not leave
// a sentence that only seems to be proven.
func TestProofsExist(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/semantics.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n## Where each sentence is proven\n")
	if !found {
		t.Fatal("docs/semantics.md has no section that says where each sentence is proven")
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	proven := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "| sentence") || strings.HasPrefix(cells[0], "| ---") {
			continue
		}
		packages := quoted.FindAllStringSubmatch(cells[1], -1)
		tests := quoted.FindAllStringSubmatch(cells[2], -1)
		if len(packages) == 0 && strings.Contains(cells[2], "not built yet") {
			continue
		}
		if len(packages) == 0 || len(tests) == 0 {
			t.Errorf("no proof in %q", line)
		}
		for _, test := range tests {
			exists := false
			for _, p := range packages {
				exists = exists || testExists(t, filepath.Join(root, p[1]), test[1])
			}
			if !exists {
				t.Errorf("no test %s for %q", test[1], cells[0])
			}
		}
		proven++
	}
	if proven < 80 {
		t.Errorf("only %d sentences were read from the tables", proven)
	}
}

// testExists looks for a test in the sources of a folder, and for its case there or among its files.
func testExists(t *testing.T, dir, name string) bool {
	t.Helper()
	name, example, hasCase := strings.Cut(name, "/")
	sources, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	var text strings.Builder
	for _, path := range sources {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(source)
	}
	if !strings.Contains(text.String(), "\nfunc "+name+"(") {
		return false
	}
	if !hasCase || strings.Contains(text.String(), `"`+example+`"`) {
		return true
	}
	for _, path := range []string{"testdata/" + example + ".in.yaml", "testdata/cases/" + example + ".yaml"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err == nil {
			return true
		}
	}
	return false
}

// TestCountermeasuresAreTested checks that each threat on the page on security names an existing test, in the packages of its row, or in
// those that the page names for rows without packages.
func TestCountermeasuresAreTested(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	threats := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| threat") || strings.HasPrefix(line, "| ---") {
			continue
		}
		packages := []string{"internal/portal", "internal/portal/core"}
		var tests []string
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			if strings.Contains(quoted[1], "/") && !strings.HasPrefix(quoted[1], "Test") {
				packages = append(packages, quoted[1])
			} else {
				tests = append(tests, quoted[1])
			}
		}
		if len(tests) == 0 {
			t.Errorf("no test for the threat %q", cells[0])
		}
		for _, test := range tests {
			if !slices.ContainsFunc(packages, func(p string) bool { return testExists(t, filepath.Join(root, p), test) }) {
				t.Errorf("no test %s for the threat %q", test, cells[0])
			}
		}
		threats++
	}
	if threats < 50 {
		t.Errorf("only %d threats were read from the tables", threats)
	}
}
