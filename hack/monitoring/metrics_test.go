package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// root is the root of the repository.
const root = "../.."

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	for i := range found {
		found[i], _ = filepath.Rel(root, found[i])
	}
	return found
}

var row = regexp.MustCompile("(?m)^\\| `([a-z0-9_:]+)` \\| (?:adapter|portal|collector|node) \\|([^|]*)\\|")

// documented returns the metrics that the page lists, with their labels.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(read(t, "docs/operations/reference.md"), -1) {
		out[m[1]] = append(out[m[1]], strings.FieldsFunc(m[2], func(r rune) bool { return strings.ContainsRune(" ,`", r) })...)
	}
	if len(out) == 0 {
		t.Fatal("docs/operations/reference.md lists no metrics")
	}
	return out
}

var language = parser.NewParser(parser.Options{})

// parse fails the test when Prometheus rejects the expression.
func parse(t *testing.T, where, expr string) parser.Expr {
	t.Helper()
	e, err := language.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	return e
}

// check returns the problems of an expression: metrics and labels that are not exported.
func check(known map[string][]string, e parser.Expr) []string {
	var problems []string
	all := map[string]bool{}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name, own := family(known, s.Name)
		if own == nil {
			problems = append(problems, "nobody exports "+s.Name)
			return nil
		}
		for _, l := range own {
			all[l] = true
		}
		for _, m := range s.LabelMatchers {
			if m.Name != model.MetricNameLabel && !slices.Contains(own, m.Name) {
				problems = append(problems, name+" has no label "+m.Name)
			}
			if m.Name == "le" && m.Type == labels.MatchEqual {
				problems = append(problems, "le is written differently by different versions of Prometheus: match it by a regular expression")
			}
		}
		return nil
	})
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		var grouping []string
		switch x := n.(type) {
		case *parser.AggregateExpr:
			grouping = x.Grouping
		case *parser.BinaryExpr:
			if x.VectorMatching != nil {
				grouping = x.VectorMatching.MatchingLabels
			}
		}
		for _, l := range grouping {
			if !all[l] {
				problems = append(problems, "nothing in it has the label "+l)
			}
		}
		return nil
	})
	return problems
}

// family returns the metric of a series, with the labels of its series, or nil when there is none.
func family(known map[string][]string, series string) (string, []string) {
	if own, ok := known[series]; ok {
		return series, append([]string{}, own...)
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		name, ok := strings.CutSuffix(series, suffix)
		own, listed := known[name]
		if !ok || !listed || !strings.HasSuffix(name, "_seconds") {
			continue
		}
		own = append([]string{}, own...)
		if suffix == "_bucket" {
			own = append(own, "le")
		}
		return name, own
	}
	return series, nil
}

func TestCheck(t *testing.T) {
	known := map[string][]string{"a_total": {"cluster"}, "b_seconds": nil, "c": {"state"}}
	for _, c := range []struct{ reason, expr, want string }{
		{"all is well", `sum by (cluster) (rate(a_total{cluster="m1"}[5m]))`, ""},
		{"a histogram", `histogram_quantile(0.9, sum by (le) (rate(b_seconds_bucket[5m])))`, ""},
		{"no such metric", `rate(z_total[5m])`, "nobody exports z_total"},
		{"a counter has no buckets", `a_total_bucket`, "nobody exports a_total_bucket"},
		{"no such label", `c{cluster="m1"}`, "c has no label cluster"},
		{"summed by what is not there", `sum by (cluster) (c)`, "nothing in it has the label cluster"},
		{"matched by what is not there", `c and on (cluster) c`, "nothing in it has the label cluster"},
		{
			"a bucket by its text", `b_seconds_bucket{le="60"}`,
			"le is written differently by different versions of Prometheus: match it by a regular expression",
		},
	} {
		if got := strings.Join(check(known, parse(t, c.reason, c.expr)), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
