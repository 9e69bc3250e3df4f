package gormstore

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/norace"
	"github.com/acp-io/acp/internal/sqlquery"
)

const manyTickets = 100_000

// many creates the tickets of some years: 200 requesters, 40 approvers, 10,000 applications and resources, two
// in a hundred tickets under way, a security team that is named in every third.
var many = []string{
	`INSERT INTO tickets (number, state, version, requester, reason, kind, created_at, updated_at)
 SELECT n, CASE WHEN n % 50 = 0 THEN 'pending' WHEN n % 5000 = 1 THEN 'failed' WHEN n % 3 = 0 THEN 'effective' ELSE 'expired' END,
  1, 'p' || (n % 200), 'r', CASE WHEN n % 1000 = 0 THEN 'mode' ELSE 'grant' END, n, n * 7919 % 100003 FROM s`,
	`INSERT INTO items (ticket, position, state, application, application_name, resource, resource_name, policy, target_ticket, target_item,
  expires_at, due_at, body)
 SELECT t.number, 0, t.state, 'a' || (t.number % 10000), 'name:a' || (t.number % 10000), 'r' || (t.number * 7 % 10000), 'name:r' || (t.number * 7 % 10000),
  'p-r' || (t.number * 7 % 10000), CASE WHEN t.number % 100 = 0 THEN t.number - 1 ELSE 0 END, 0, t.number * 1000,
  CASE WHEN t.state = 'effective' THEN t.number * 1000 ELSE 0 END, '{"State":"x"}' FROM tickets t`,
	`INSERT INTO ticket_words SELECT number, 'r' FROM tickets`,
	`INSERT INTO ticket_words SELECT number, 'w' || number FROM tickets`,
	`INSERT INTO concerns SELECT number, 0, 'd' || (number % 40), 'named' FROM tickets`,
	`INSERT INTO concerns SELECT number, 0, 'sec', 'named' FROM tickets WHERE number % 3 = 0`,
	`INSERT INTO concerns SELECT number, 0, 'd' || (number % 40), 'waits' FROM tickets WHERE state = 'pending'`,
	`INSERT INTO concerns SELECT number, 0, 'd' || (number % 40), 'decided' FROM tickets WHERE state <> 'pending'`,
}

func seed(t *testing.T, db *database.DB) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *gorm.DB) error {
		for _, sql := range many {
			// Both databases accept a WITH before the SELECT of an INSERT.
			sql = strings.Replace(
				sql,
				"FROM s",
				fmt.Sprintf("FROM (WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s) AS s", manyTickets),
				1,
			)
			if err := tx.Exec(sql).Error; err != nil {
				return err
			}
		}
		if db.Postgres() { // as its autovacuum does; SQLite plans without figures, as in operation
			return tx.Exec("ANALYZE").Error
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestListsUseIndexScans(t *testing.T) {
	norace.SkipUnderRace(t)
	names := func(prefix string, n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint(prefix, i*3))
		}
		return out
	}
	person := &approval.Visible{Person: "p7", StandsFor: []string{"d3"}, Applications: names("name:a", 20), Resources: names("name:r", 20)}
	owner := &approval.Visible{Person: "p7", Applications: names("name:a", 20), Statements: []int64{10, 500, manyTickets}}
	middle := approval.Cursor{Number: manyTickets / 2, UpdatedAt: database.Instant(manyTickets / 2)}
	filters := map[string]approval.Filter{
		"all":                      {},
		"all, second page":         {After: middle},
		"all, oldest":              {Oldest: true},
		"all by update":            {ByUpdate: true},
		"all by update, page":      {ByUpdate: true, After: middle},
		"all by update, oldest":    {ByUpdate: true, Oldest: true, After: middle},
		"in force by update":       {ByUpdate: true, States: []approval.State{approval.StateEffective}},
		"in force by update, page": {ByUpdate: true, States: []approval.State{approval.StateEffective}, After: middle},
		"failed by update":         {ByUpdate: true, States: []approval.State{approval.StateFailed}},
		"common words by update":   {ByUpdate: true, Text: "r"},
		"visible by update":        {ByUpdate: true, VisibleTo: person},
		"visible by update, page":  {ByUpdate: true, VisibleTo: person, After: middle, Oldest: true},
		"security by update":       {ByUpdate: true, VisibleTo: &approval.Visible{Person: "sec"}},
		"decided by update":        {ByUpdate: true, DecidedBy: "d3", VisibleTo: &approval.Visible{Person: "d3"}},
		"waiting by update":        {ByUpdate: true, WaitsFor: &approval.Waits{Person: "d10", StandsFor: []string{"d3"}}},
		"mine, oldest":             {Requester: "p7", VisibleTo: person, Oldest: true, After: middle},
		"mine":                     {Requester: "p7", VisibleTo: person},
		"mine, pending":            {Requester: "p7", VisibleTo: person, States: []approval.State{approval.StatePending}},
		"mine in force":            {Requester: "p7", States: []approval.State{approval.StateEffective}},
		"visible in force":         {VisibleTo: person, States: []approval.State{approval.StateEffective}, Kinds: []approval.Kind{approval.KindGrant}},
		"mine by update":           {Requester: "p7", ByUpdate: true, After: middle},
		"waits for me":             {WaitsFor: &approval.Waits{Person: "d10"}},
		"waits by delegation":      {WaitsFor: &approval.Waits{Person: "p7", StandsFor: []string{"d3", "d10"}}, VisibleTo: person},
		"decisions of pending":     {WaitsFor: &approval.Waits{Person: "d10", StandsFor: []string{"d3"}}, ItemStates: []approval.State{approval.StatePending}},
		"a number":                 {Numbers: []int64{77}, VisibleTo: person},
		"words in mine":            {Requester: "p7", Text: "r", VisibleTo: person},
		"common words":             {Text: "r", VisibleTo: person},
		"common words of all":      {Text: "r"},
		"rare words":               {Text: "w777 r", VisibleTo: person},
		"rare words of all":        {Text: "w777 r"},
		"rare words, page":         {Text: "w777", After: middle},
		"decided":                  {DecidedBy: "d3", VisibleTo: &approval.Visible{Person: "d3"}},
		"decided, page":            {DecidedBy: "d3", After: middle},
		"visible to me":            {VisibleTo: person},
		"visible to me, page":      {VisibleTo: person, After: middle},
		"visible to an owner":      {VisibleTo: owner},
		"owner by update":          {VisibleTo: owner, ByUpdate: true, After: middle},
		"common words of an owner": {VisibleTo: owner, Text: "r"},
		"visible to who owns none": {VisibleTo: &approval.Visible{Person: "p7"}},
		"visible to security":      {VisibleTo: &approval.Visible{Person: "sec"}},
		"pending":                  {States: []approval.State{approval.StatePending}},
		"two states":               {States: []approval.State{approval.StatePending, approval.StateFailed}},
		"a kind":                   {Kinds: []approval.Kind{approval.KindMode}},
		"an application":           {Application: "a77", VisibleTo: person},
		"a resource":               {Resource: "r77"},
		"effective of a resource":  {Resource: "r77", ItemStates: []approval.State{approval.StateEffective}},
		"of a pair":                {Application: "a77", Resource: "r539", ItemStates: []approval.State{approval.StateEffective}},
		"a policy":                 {Policy: "p-r77", ItemStates: []approval.State{approval.StateEffective}},
		"failed items":             {ItemStates: []approval.State{approval.StateFailed}},
		"a package":                {Package: "pay", ItemStates: []approval.State{approval.StateEffective}},
		"a target":                 {Target: &approval.Target{Ticket: 299}},
		"due":                      {DueBy: database.Instant(20_000)},
		"of my applications":       {Applications: person.Applications, VisibleTo: person},
		"of them by update":        {Applications: person.Applications, VisibleTo: person, ByUpdate: true},
		"of them that expire": {Applications: person.Applications, VisibleTo: person, Kinds: []approval.Kind{approval.KindGrant},
			ItemStates: []approval.State{approval.StateEffective, approval.StateFailed}, ExpiresBy: database.Instant(80_000_000)},
		"mine that expire": {Requester: "p7", ItemStates: []approval.State{approval.StateEffective}, ExpiresBy: time.Now()},
	}
	databasetest.Each(t, func(t *testing.T, dsn string) {
		db := databasetest.Open(t, dsn)
		seed(t, db)
		for name, f := range filters {
			f.Limit = 26
			t.Run(name, func(t *testing.T) {
				walked(t, db, name, func(tx *gorm.DB) sqlquery.Statement {
					word, err := rarestWord(tx, f, limitsOfPages)
					if err != nil {
						t.Fatal(err)
					}
					query, err := listQuery(tx, f, word.rare, limitsOfPages)
					if err != nil {
						t.Fatal(err)
					}
					return query
				})
			})
		}
		for _, name := range []string{"common words", "visible in force"} {
			f := filters[name]
			f.Limit = 26
			if !usesCandidates(f, "") {
				t.Errorf("%s: is not read by candidates", name)
			}
			for _, word := range []string{"", "w77"} {
				t.Run("candidates of "+name+word, func(t *testing.T) {
					walked(t, db, name, func(tx *gorm.DB) sqlquery.Statement {
						return candidates(tx, f, word, slices.Max(limitsOfPages.candidates))
					})
				})
			}
			t.Run("among candidates of "+name, func(t *testing.T) {
				var numbers []int64
				for i := range limitsOfPages.next {
					numbers = append(numbers, manyTickets-int64(i*100))
				}
				walked(t, db, name, func(tx *gorm.DB) sqlquery.Statement { return amongCandidates(tx, f, numbers, f.Limit) })
			})
		}
		t.Run("by end", func(t *testing.T) {
			f := filters["of them that expire"]
			f.VisibleTo, f.ByEnd, f.Limit = nil, true, 20
			plan := walked(t, db, "by end", func(tx *gorm.DB) sqlquery.Statement { return byEnd(tx, f) })
			if !strings.Contains(plan, "items_application_ends") {
				t.Errorf("reads the items from another index:\n%s", plan)
			}
		})
		for _, name := range []string{"waits for me", "waits by delegation", "mine, pending", "visible to me", "of them that expire"} {
			t.Run("count "+name, func(t *testing.T) {
				walked(t, db, name, func(tx *gorm.DB) sqlquery.Statement { return count(tx, filters[name], "") })
			})
		}
	})
}

// rowsOfAPage bounds the rows that PostgreSQL may read: those of the person, of their applications and of a selective word, not all.
const rowsOfAPage = 10_000

// byUpdateInOrder is how SQLite describes a scan of all tickets in the order of their last change.
const byUpdateInOrder = "SCAN tickets USING INDEX tickets_updated"

// inOrder is how SQLite describes a scan in the order of the list without a search, which ends with the page.
var inOrder = map[string]string{
	"all": "SCAN tickets", "all, oldest": "SCAN tickets", "common words of all": "SCAN tickets", "all by update": byUpdateInOrder,
	"in force by update": byUpdateInOrder, "common words by update": byUpdateInOrder, "security by update": byUpdateInOrder,
	"visible by update": byUpdateInOrder,
}

// wide contains indexes in which a value may have many tickets, so that only a list of that value may scan them.
var wide = regexp.MustCompile(`tickets_(state|kind)\b`)

var fullScan = regexp.MustCompile(`SCAN (tickets|d|i|c|x)\b`)

// walked checks that a query reads few rows, and returns its plan.
func walked(t *testing.T, db *database.DB, name string, query func(tx *gorm.DB) sqlquery.Statement) (text string) {
	t.Helper()
	if err := db.Read(t.Context(), func(tx *gorm.DB) error {
		s := sqlquery.Expand(query(tx), db.Postgres())
		explain := "EXPLAIN QUERY PLAN "
		if db.Postgres() {
			explain = "EXPLAIN (ANALYZE, FORMAT JSON) "
		}
		rows, err := tx.Statement.ConnPool.QueryContext(t.Context(), explain+s.Text, s.Args...)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Text, err)
		}
		defer rows.Close()
		var plan []string
		for rows.Next() {
			var a, b, c int
			var line string
			to := []any{&a, &b, &c, &line}
			if db.Postgres() {
				to = []any{&line}
			}
			if err := rows.Scan(to...); err != nil {
				return err
			}
			plan = append(plan, line)
		}
		text = strings.Join(plan, "\n")
		if db.Postgres() {
			looked, full := postgresWork(t, text)
			if looked > rowsOfAPage || full {
				t.Errorf("looks at %d rows, %v\n%s\n%s", looked, full, s.Text, text)
			}
		} else if fullScan.MatchString(strings.Replace(text, inOrder[name], "", 1)) ||
			wide.MatchString(text) && !slices.Contains([]string{"pending", "two states", "a kind", "failed by update"}, name) {
			t.Errorf("walks through everything:\n%s\n%s", s.Text, text)
		}
		return rows.Err()
	}); err != nil {
		t.Fatal(err)
	}
	return text
}

type postgresNode struct {
	Type    string         `json:"Node Type"`
	Rows    float64        `json:"Actual Rows"`
	Loops   float64        `json:"Actual Loops"`
	Removed float64        `json:"Rows Removed by Filter"`
	Plans   []postgresNode `json:"Plans"`
}

// postgresWork returns the number of rows that the scans of tables have read, and reports whether one of them read a whole table.
func postgresWork(t *testing.T, text string) (rows int, full bool) {
	t.Helper()
	var plans []struct{ Plan postgresNode }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	var visit func(n postgresNode)
	visit = func(n postgresNode) {
		if strings.Contains(n.Type, "Scan") && n.Type != "Subquery Scan" && n.Type != "CTE Scan" {
			rows += int((n.Rows + n.Removed) * n.Loops)
		}
		full = full || n.Type == "Seq Scan" && n.Loops > 0
		for _, p := range n.Plans {
			visit(p)
		}
	}
	visit(plans[0].Plan)
	return rows, full
}
