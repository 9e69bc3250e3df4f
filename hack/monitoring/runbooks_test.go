package monitoring

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// sections contains the headings of every runbook, in their order.
var sections = []string{"What it means", "What is affected", "How to check", "What to do"}

var (
	sectionHeading = regexp.MustCompile(`(?m)^## (.+)$`)
	codeBlock      = regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```")
)

// severities returns the severity of each alert in deploy/alerts, by the alert's name.
func severities(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range files(t, "deploy/alerts/*.yaml") {
		groups, errs := rulefmt.Parse([]byte(read(t, file)), false, model.UTF8Validation, language, discard)
		if len(errs) > 0 {
			t.Fatal(file, errs)
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				out[r.Alert] = r.Labels["severity"]
			}
		}
	}
	return out
}

// TestRunbooks checks that each alert has a page in docs/runbooks and each page an alert, that the pages have the same sections, that each names
// its alert's severity and is listed in the index, and that the queries in it parse and name documented metrics.
func TestRunbooks(t *testing.T) {
	alerts, known := severities(t), documented(t)
	index := read(t, "docs/runbooks/README.md")
	seen := map[string]bool{}
	for _, file := range files(t, "docs/runbooks/*.md") {
		name := strings.TrimSuffix(filepath.Base(file), ".md")
		if name == "README" {
			continue
		}
		seen[name] = true
		severity, isAlert := alerts[name]
		if !isAlert {
			t.Errorf("%s: there is no alert %s", file, name)
			continue
		}
		page := read(t, file)
		if !strings.HasPrefix(page, "# "+name+"\n\nSeverity: "+severity+". ") {
			t.Errorf("%s: it does not begin with its name and the severity %s", file, severity)
		}
		if row := "| [" + name + "](" + name + ".md) | " + severity + " | "; !strings.Contains(index, row) {
			t.Errorf("docs/runbooks/README.md has no row %q", row)
		}
		var got []string
		for _, m := range sectionHeading.FindAllStringSubmatch(page, -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, sections) {
			t.Errorf("%s: its sections are %q, want %q", file, got, sections)
			continue
		}
		_, text, _ := strings.Cut(page, "\n## How to check\n")
		text, _, _ = strings.Cut(text, "\n## ")
		if !codeBlock.MatchString(text) {
			t.Errorf("%s: the section How to check has no command and no query", file)
		}
		for _, m := range codeBlock.FindAllStringSubmatch(page, -1) {
			if m[1] != "promql" {
				continue
			}
			for _, problem := range check(known, parse(t, file, m[2])) {
				t.Errorf("%s: %s", file, problem)
			}
		}
	}
	for name := range alerts {
		if !seen[name] {
			t.Errorf("docs/runbooks has no page for the alert %s", name)
		}
	}
}

// TestPagedAlerts compares the alerts for which docs/operations/logs.md says that somebody has to be woken up with those of the severity critical.
func TestPagedAlerts(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "docs/operations/logs.md"), "\n### For what to page\n")
	table, _, _ := strings.Cut(text, "\n\n`ACP")
	var got, want []string
	for _, m := range regexp.MustCompile("`(ACP[A-Za-z]+)`").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	for name, severity := range severities(t) {
		if severity == "critical" {
			want = append(want, name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the page lists %q, want %q", got, want)
	}
}
