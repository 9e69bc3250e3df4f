package monitoring

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

type dashboard struct {
	UID, Title, Description string
	Panels                  []panel
	Templating              struct {
		List []struct{ Name, Type, Definition string }
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Datasource               struct{ UID string }
	Targets                  []struct{ Expr, LegendFormat, RefID string }
}

var (
	variable = regexp.MustCompile(`\$\{?([a-zA-Z_]+)\}?`)
	values   = regexp.MustCompile(`^label_values\(([a-z_]+), ([a-z_]+)\)$`)
	legend   = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
)

func TestDashboards(t *testing.T) {
	known, uids := documented(t), map[string]string{}
	for _, file := range files(t, "deploy/dashboards/*.json") {
		t.Run(file, func(t *testing.T) {
			var d dashboard
			if err := json.Unmarshal([]byte(read(t, file)), &d); err != nil {
				t.Fatal(err)
			}
			if d.UID == "" || d.Title == "" || d.Description == "" || len(d.Panels) == 0 || uids[d.UID] != "" {
				t.Errorf("uid %q (also of %q), title %q, %d panels", d.UID, uids[d.UID], d.Title, len(d.Panels))
			}
			uids[d.UID] = file
			variables := map[string]bool{"__rate_interval": true}
			for _, v := range d.Templating.List {
				variables[v.Name] = true
				if m := values.FindStringSubmatch(v.Definition); v.Type == "query" && (m == nil || !contains(known[m[1]], m[2])) {
					t.Errorf("variable %s is of %q, which nobody exports", v.Name, v.Definition)
				}
			}
			layout(t, d.Panels)
			for _, p := range d.Panels {
				if p.Type != "row" {
					p.check(t, known, variables)
				}
			}
		})
	}
}

func (p *panel) check(t *testing.T, known map[string][]string, variables map[string]bool) {
	t.Helper()
	if p.Title == "" || p.Description == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
		t.Errorf("panel %d %q lacks a title, a description, a query or the variable data source", p.ID, p.Title)
	}
	refs := map[string]bool{}
	for _, q := range p.Targets {
		where := fmt.Sprintf("panel %q, query %s", p.Title, q.RefID)
		if refs[q.RefID] || q.RefID == "" {
			t.Errorf("%s: the reference is not its own", where)
		}
		refs[q.RefID] = true
		for _, m := range variable.FindAllStringSubmatch(q.Expr, -1) {
			if !variables[m[1]] {
				t.Errorf("%s: there is no variable %s", where, m[1])
			}
		}
		// Grafana does the same before it sends the query.
		expr := variable.ReplaceAllString(strings.ReplaceAll(q.Expr, "$__rate_interval", "5m"), ".*")
		e := parse(t, where, expr)
		if e == nil {
			continue
		}
		for _, problem := range check(known, e) {
			t.Errorf("%s: %s", where, problem)
		}
		for _, m := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
			if !keeps(expr, m[1]) {
				t.Errorf("%s: its legend has the label %s, which its expression does not keep", where, m[1])
			}
		}
	}
}

// layout fails the test when panels share an id, overlap, or exceed the 24 columns.
func layout(t *testing.T, panels []panel) {
	t.Helper()
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q has the id %d of another", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("panel %q is at %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, taken := cells[[2]int{x, y}]; taken {
					t.Errorf("panel %q lies over %q", p.Title, other)
					return
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
}

func contains(all []string, one string) bool {
	for _, a := range all {
		if a == one {
			return true
		}
	}
	return false
}
