package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gorm.io/gorm"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	clients = 64

	groups   = 400 // of five people each, the first of whom leads; each owns 25 applications and 25 resources
	entities = 10_000

	fewTickets, manyTickets = 1_000, 100_000
)

// BenchmarkPortal measures what people wait for: the portal's own server with its real parts (API server, login
// provider, database on a disk), and 64 people at once who ask again as soon as they have their answer. It prints lines
// "bench NAME VALUE UNIT" and is run once, with -benchtime 1x.
func BenchmarkPortal(b *testing.B) {
	config := portaltest.APIServer(b, true)
	newFleet(b, config)
	provider := portaltest.NewProvider(b)
	folder := company(b)
	for kind, dsn := range map[string]func(testing.TB) string{"sqlite": databasetest.SQLite, "postgres": testenv.DurablePostgres} {
		b.Run(kind, func(b *testing.B) {
			few := open(b, config, provider, folder, dsn(b), fewTickets)
			_, small, rowsOfFew := few.lists()
			few.stop()
			m := open(b, config, provider, folder, dsn(b), manyTickets)
			nothing := m.nothing()
			first, list, rows := m.lists()
			find := m.finds()
			search := m.searches()
			submit, made := m.submits()
			decide := m.decisions(made)
			m.stop()
			fmt.Printf("bench portal_list_growth_%s %.1f x\n", kind, list.p99/small.p99)
			fmt.Printf("bench portal_list_rows_growth_%s %.1f x\n", kind, rows/rowsOfFew)
			for name, x := range map[string]figure{"nothing": nothing, "list_first": first, "list_tickets": list, "find_tickets": find, "search": search, "submit": submit, "decide": decide} {
				fmt.Printf("bench portal_%s_p99_%s %.1f ms\n", name, kind, x.p99)
				fmt.Printf("bench portal_%s_cpu_%s %.2f ms\n", name, kind, x.cpu)
			}
		})
	}
}

// figure is the p99 of a call and the processor time for one, of the portal and of whom it answers together. Both in
// milliseconds.
type figure struct{ p99, cpu float64 }

// open starts a portal on a database with so many tickets.
func open(b *testing.B, config *rest.Config, provider *portaltest.Provider, folder, dsn string, tickets int) *measurement {
	b.Helper()
	years(b, dsn, tickets)
	file := filepath.Join(b.TempDir(), "url")
	if err := os.WriteFile(file, []byte(dsn), 0o600); err != nil {
		b.Fatal(err)
	}
	o := testOptions(b, config, provider)
	o.catalog, o.databaseURLFile = folder, file
	p := startLogged(b, o, slog.New(slog.NewTextHandler(b.Output(), &slog.HandlerOptions{Level: slog.LevelError})))
	return &measurement{b: b, people: logins(b, p, provider), stop: p.stop}
}

// company writes the catalog.
func company(b *testing.B) string {
	b.Helper()
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n---\n", args...) }
	line(`{kind: Group, metadata: {name: company, annotations: {acp.io/lead: ceo}}, spec: {members: [ceo]}}`)
	line(`{kind: User, metadata: {name: ceo}}`)
	line(`{kind: Group, metadata: {name: security}, spec: {members: [s0, s1]}}`)
	line(`{kind: User, metadata: {name: s0}}`)
	line(`{kind: User, metadata: {name: s1}}`)
	for g := range groups {
		line(`{kind: Group, metadata: {name: g%d, annotations: {acp.io/lead: u%d}}, spec: {parent: company, members: [u%d, u%d, u%d, u%d, u%d]}}`,
			g, 5*g, 5*g, 5*g+1, 5*g+2, 5*g+3, 5*g+4)
		for u := range 5 {
			line(`{kind: User, metadata: {name: u%d}, spec: {profile: {displayName: Person %d}}}`, 5*g+u, 5*g+u)
		}
	}
	for i := range entities {
		line(`{kind: Component, metadata: {name: app-%d, title: Shop checkout %d, annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:iam:sa:app/%d"}}, spec: {owner: g%d}}`, i, i, i, i%groups)
		line(`{kind: Resource, metadata: {name: cache-%d, title: Orders cache %d, annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:redis:clusters:cache-%d", acp.io/sensitivity: low}}, spec: {owner: g%d}}`, i, i, i, i*7%groups)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "company.yaml"), []byte(strings.TrimSuffix(out.String(), "---\n")), 0o600); err != nil {
		b.Fatal(err)
	}
	return dir
}

// old is what years have left: two in a hundred wait for a leader, the others are in force or over.
var old = []string{
	`INSERT INTO tickets (number, state, version, requester, reason, kind, created_at, updated_at)
 SELECT n, CASE WHEN n % 50 = 0 THEN 'pending' WHEN n % 3 = 0 THEN 'effective' ELSE 'expired' END, 1, 'u' || (n % 2000), 'the checkout needs it', 'grant',
 1700000000000000 + n * CAST(1000000 AS BIGINT), 1700000000000000 + n * CAST(1000000 AS BIGINT) FROM (WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $N) SELECT n FROM s) AS s`,
	`INSERT INTO items (ticket, position, state, application, application_name, resource, resource_name, policy, target_ticket, target_item, expires_at, due_at, body)
 SELECT number, 0, state, 'app-' || a, 'trnv1:rsc:trip-com:iam:sa:app/' || a, 'cache-' || r, 'trnv1:rsc:trip-com:redis:clusters:cache-' || r, 'p-' || r, 0, 0, 0, 0,
 '{"State":"' || state || '","Application":"app-' || a || '","ApplicationName":"trnv1:rsc:trip-com:iam:sa:app/' || a || '","Resource":"cache-' || r ||
 '","ResourceName":"trnv1:rsc:trip-com:redis:clusters:cache-' || r || '","Actions":["redis:connect"],"SID":"t-' || number || '-1","Steps":[{"Name":"leader","State":"' ||
 CASE state WHEN 'pending' THEN 'current' ELSE 'approved' END || '","Approvers":["u' || l || '"],"Quorum":1' ||
 CASE state WHEN 'pending' THEN '' ELSE ',"Votes":[{"Person":"u' || l || '","Approve":true,"At":"2025-01-02T03:04:05Z"}]' END || '},{"Name":"owner","State":"' ||
 CASE state WHEN 'pending' THEN 'waiting' ELSE 'approved' END || '","Approvers":["u' || (5 * o) || '","u' || (5 * o + 1) || '","u' || (5 * o + 2) || '"],"Quorum":1}]}'
 FROM (SELECT number, state, number % 2000 / 5 + 400 * (number / 2000 % 25) AS a, number * 13 % 10000 AS r, number % 2000 / 5 * 5 AS l, number * 13 % 10000 * 7 % 400 AS o FROM tickets) AS x`,
	`INSERT INTO ticket_words SELECT t.number, w.word FROM tickets t CROSS JOIN (SELECT 'the' AS word UNION ALL SELECT 'checkout' UNION ALL SELECT 'needs' UNION ALL SELECT 'it'
 UNION ALL SELECT 'app' UNION ALL SELECT 'cache') AS w`,
	`INSERT INTO ticket_words SELECT number, requester FROM tickets`,
	`INSERT INTO ticket_words SELECT number, '' || (number * 13 % 10000) FROM tickets`,
	`INSERT INTO concerns SELECT number, 0, 'u' || (number % 2000 / 5 * 5), 'named' FROM tickets WHERE number % 5 > 0`,
	`INSERT INTO concerns SELECT number, 0, 'u' || (number % 2000 / 5 * 5), CASE state WHEN 'pending' THEN 'waits' ELSE 'decided' END FROM tickets WHERE number % 5 > 0`,
	`INSERT INTO concerns SELECT number, 0, 'u' || (number * 13 % 10000 * 7 % 400 * 5 + 3), 'named' FROM tickets`,
	`INSERT INTO ticket_events (ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment)
 SELECT number, -1, created_at, 'submitted', requester, '', '', '', '', reason FROM tickets`,
	`INSERT INTO ticket_events (ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment)
 SELECT number, 0, created_at, 'step-approved', 'u' || (number % 2000 / 5 * 5), '', 'leader', '', '', 'ok' FROM tickets WHERE state <> 'pending'`,
}

func years(b *testing.B, dsn string, tickets int) {
	b.Helper()
	db, err := database.Open(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Write(b.Context(), func(tx *gorm.DB) error {
		for _, sql := range old {
			if err := tx.Exec(strings.Replace(sql, "$N", fmt.Sprint(tickets), 1)).Error; err != nil {
				return err
			}
		}
		if db.Postgres() { // which would number from one
			if err := tx.Exec("SELECT setval(pg_get_serial_sequence('tickets', 'number'), ?)", tickets).Error; err != nil {
				return err
			}
			return tx.Exec("ANALYZE").Error // as its autovacuum does; nobody does so for SQLite
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

// logins are, for each client, somebody who asks and his leader.
func logins(b *testing.B, p *program, provider *portaltest.Provider) (people [clients][2]*portaltest.Browser) {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 2 * clients}
	b.Cleanup(transport.CloseIdleConnections)
	for i := range people {
		for j, who := range []int{5*i + 1, 5 * i} {
			x := portaltest.NewBrowser(b, p.base)
			x.Client.Transport = transport
			x.Login(provider, "/", fmt.Sprint("u", who))
			people[i][j] = x
		}
	}
	return people
}

type measurement struct {
	b      *testing.B
	people [clients][2]*portaltest.Browser
	stop   func()
}

// all lets every client do something n times, all at once.
func (m *measurement) all(n int, do func(client, i int) portaltest.Answer, want int) figure {
	time.Sleep(4 * time.Second) // what each may ask for is full again: 200, and 50 a second
	before := cpu(m.b)
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			mine := make([]time.Duration, 0, n)
			for i := range n {
				start := time.Now()
				a := do(c, i)
				mine = append(mine, time.Since(start))
				if a.Status != want {
					m.b.Errorf("call %d of %d was answered %d: %s", i, n, a.Status, a.Body)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	wg.Wait()
	if m.b.Failed() {
		m.b.FailNow()
	}
	used := cpu(m.b) - before
	slices.SortFunc(took, cmp.Compare)
	return figure{p99: ms(took[int(math.Ceil(0.99*float64(len(took))))-1]), cpu: ms(used) / float64(len(took))}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// cpu is the processor time that the process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// nothing is what HTTP and the load generator cost.
func (m *measurement) nothing() figure {
	return m.all(400, func(c, i int) portaltest.Answer { return m.people[c][i%2].Get("/healthz") }, http.StatusOK)
}

// lists returns what a page costs that nobody has seen before, what one costs that was seen, and how many tickets are on
// a page.
func (m *measurement) lists() (first, again figure, rows float64) {
	views := []string{"mine", "approvals", "decided", "all", "mine&state=pending", "all&state=effective"}
	list := func(c, i int) portaltest.Answer {
		return m.people[c][i%2].Get("/api/v1/tickets?limit=25&view=" + views[i/2%len(views)])
	}
	first = m.all(2*len(views), list, http.StatusOK)
	again = m.all(40*2*len(views), list, http.StatusOK)
	for i := range 2 * len(views) {
		var page struct{ Items []struct{ ID string } }
		list(0, i).Into(m.b, &page)
		rows += float64(len(page.Items)) / float64(2*len(views))
	}
	return first, again, rows
}

// finds are searches for tickets, by words that all have, that few have, and beginnings of them.
func (m *measurement) finds() figure {
	words := []string{"checkout", "checkout+4711", "47", "u" + fmt.Sprint(groups), "need+cache", "nothing+of+this"}
	return m.all(5*len(words), func(c, i int) portaltest.Answer {
		return m.people[c][i%2].Get("/api/v1/tickets?limit=25&view=all&q=" + words[i%len(words)])
	}, http.StatusOK)
}

func (m *measurement) searches() figure {
	return m.all(400, func(c, i int) portaltest.Answer {
		words := []string{"shop", "checkout+" + fmt.Sprint(c*i%entities), "orders+cache", "cache-" + fmt.Sprint(i*97%entities), "app-" + fmt.Sprint(c)}
		return m.people[c][i%2].Get("/api/v1/search?q=" + words[i%len(words)])
	}, http.StatusOK)
}

const writesEach = 25

type submitted struct {
	ID      string
	Version int64
}

func (m *measurement) submits() (f figure, made [clients][writesEach]submitted) {
	f = m.all(writesEach, func(c, i int) portaltest.Answer {
		a := m.people[c][0].Post("/api/v1/tickets", map[string]any{"reason": "the checkout needs it", "items": []map[string]any{
			{"application": fmt.Sprint("app-", c+groups*i), "resource": fmt.Sprint("cache-", (c*131+i*7+3)%entities), "actions": []string{"redis:connect"}}}})
		if a.Status == http.StatusCreated {
			a.Into(m.b, &made[c][i])
		}
		return a
	}, http.StatusCreated)
	return f, made
}

func (m *measurement) decisions(made [clients][writesEach]submitted) figure {
	return m.all(writesEach, func(c, i int) portaltest.Answer {
		return m.people[c][1].Post("/api/v1/tickets/"+made[c][i].ID+"/decision", map[string]any{"decision": "approve", "version": made[c][i].Version})
	}, http.StatusOK)
}
