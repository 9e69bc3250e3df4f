package monitoring

import (
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

// runbooks is the URL of the folder with a page for each alert.
const runbooks = "https://github.com/acp-io/acp/blob/main/docs/runbooks/"

var (
	discard = slog.New(slog.DiscardHandler)
	used    = regexp.MustCompile(`\$labels\.([a-z_]+)`)
	grouped = regexp.MustCompile(`by \(([a-z, ]+)\)`)
)

func TestAlerts(t *testing.T) {
	known, seen := documented(t), map[string]bool{}
	for _, file := range files(t, "deploy/alerts/*.yaml") {
		groups, errs := rulefmt.Parse([]byte(read(t, file)), false, model.UTF8Validation, language, discard)
		for _, err := range errs {
			t.Errorf("%s: Prometheus does not take it: %v", file, err)
		}
		if groups == nil {
			continue
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				where := file + " " + r.Alert
				if seen[r.Alert] {
					t.Errorf("%s is there twice", r.Alert)
				}
				seen[r.Alert] = true
				for _, problem := range check(known, parse(t, where, r.Expr)) {
					t.Errorf("%s: %s", where, problem)
				}
				if !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
					t.Errorf("%s: severity %q", where, r.Labels["severity"])
				}
				if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
					t.Errorf("%s has no summary or no description", where)
				}
				if want := runbooks + r.Alert + ".md"; r.Annotations["runbook_url"] != want {
					t.Errorf("%s: runbook_url is %s, want %s", where, r.Annotations["runbook_url"], want)
				}
				for _, m := range used.FindAllStringSubmatch(r.Annotations["summary"]+r.Annotations["description"], -1) {
					if !keeps(r.Expr, m[1]) {
						t.Errorf("%s: its text has the label %s, which its expression does not keep", where, m[1])
					}
				}
			}
		}
	}
}

// keeps reports whether every result of an expression has a label, because the whole expression is grouped by it.
func keeps(expr, label string) bool {
	groups := grouped.FindAllStringSubmatch(expr, -1)
	return len(groups) > 0 && !slices.ContainsFunc(groups, func(m []string) bool {
		return !slices.Contains(strings.Split(m[1], ", "), label)
	})
}
