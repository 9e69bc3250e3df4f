// Package metrictest compares the metrics that a program registers with those that docs/operations/reference.md lists for it, in
// tests. Alerts and dashboards are checked against that list, so what they name exists.
package metrictest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/testenv"
)

// Prefix is the prefix of ACP's own metrics. Metrics of libraries are documented only if alerts or dashboards use them.
const Prefix = "acp_"

// descriptor matches the text of a Desc, whose fields are not accessible otherwise.
var descriptor = regexp.MustCompile(
	`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", unit: "[^"]*", constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}\}$`,
)

// row matches a row of the table: name, program, labels.
var row = regexp.MustCompile("^\\| `([a-z0-9_:]+)` \\| ([a-z]+) \\|([^|]*)\\|")

// Registered returns the sorted labels of the metrics that collectors describe, by name. A registry is a collector, too.
func Registered(t testing.TB, from ...prometheus.Collector) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range from {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			c.Describe(descs)
		}()
		for d := range descs {
			m := descriptor.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("cannot read the description %s", d)
			}
			if m[2] == "" {
				t.Errorf("%s has no help", m[1])
			}
			labels := strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' })
			slices.Sort(labels)
			out[m[1]] = strings.Join(labels, ", ")
		}
	}
	return out
}

// Documented returns the metrics that the page lists for a program.
func Documented(t testing.TB, program string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "operations", "reference.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(page)) {
		m := row.FindStringSubmatch(line)
		if m == nil || m[2] != program {
			continue
		}
		if _, twice := out[m[1]]; twice {
			t.Errorf("%s is listed twice for the %s", m[1], program)
		}
		labels := strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune(" ,`", r) })
		slices.Sort(labels)
		out[m[1]] = strings.Join(labels, ", ")
	}
	return out
}

// Compare fails unless the page lists all of ACP's own metrics that a program registers, each with its labels, and lists no metric
// that the program does not register.
func Compare(t testing.TB, program string, from ...prometheus.Collector) {
	t.Helper()
	want, got := Documented(t, program), Registered(t, from...)
	for name := range got {
		if _, listed := want[name]; !listed && !strings.HasPrefix(name, Prefix) {
			delete(got, name)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the table in docs/operations/reference.md differs from what the %s registers (-listed +registered):\n%s", program, d)
	}
	if len(got) == 0 {
		t.Errorf("the %s registers nothing", program)
	}
}
