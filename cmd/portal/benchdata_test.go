package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
)

const (
	people   = 2_000
	groups   = people / 5 // of five people each, the first of whom leads; each owns 25 applications and 25 resources
	entities = 10_000
)

// writeCompany writes the catalog, and returns its folder.
func writeCompany(b *testing.B) string {
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
		line(
			`{kind: Component, metadata: {name: app-%d, title: Shop checkout %d, `+
				`annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:iam:sa:app/%d"}}, spec: {owner: g%d}}`,
			i,
			i,
			i,
			i%groups,
		)
		line(
			`{kind: Resource, metadata: {name: cache-%d, title: Orders cache %d, `+
				`annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:redis:clusters:cache-%d", acp.io/sensitivity: low}}, spec: {owner: g%d}}`,
			i,
			i,
			i,
			i*7%groups,
		)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "company.yaml"), []byte(strings.TrimSuffix(out.String(), "---\n")), 0o600); err != nil {
		b.Fatal(err)
	}
	return dir
}

// requesters returns the number of people who request tickets. Few tickets are requested by few people, so that a page of a
// list has 25 tickets with few as with many.
func requesters(tickets int) int { return min(people, tickets/5) }

// ticketRows inserts $N tickets of $PEOPLE people: two in a hundred wait for the approval of a leader, the others are
// effective or expired.
var ticketRows = []string{
	`INSERT INTO tickets (number, state, version, requester, reason, kind, created_at, updated_at)
 SELECT n, CASE WHEN n % 50 = 0 THEN 'pending' WHEN n % 3 = 0 THEN 'effective' ELSE 'expired' END, 1, 'u' || (n % $PEOPLE), 'the checkout needs it', 'grant',
 1700000000000000 + n * CAST(1000000 AS BIGINT), 1700000000000000 + n * CAST(1000000 AS BIGINT)
 FROM (WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $N) SELECT n FROM s) AS s`,
	`INSERT INTO items (ticket, position, state, application, application_name, resource, resource_name, policy, target_ticket, target_item,
  expires_at, due_at, body)
 SELECT number, 0, state, 'app-' || a, 'trnv1:rsc:trip-com:iam:sa:app/' || a, 'cache-' || r, 'trnv1:rsc:trip-com:redis:clusters:cache-' || r,
 'p-' || r, 0, 0, 0, 0,
 '{"State":"' || state || '","Application":"app-' || a || '","ApplicationName":"trnv1:rsc:trip-com:iam:sa:app/' || a || '","Resource":"cache-' || r ||
 '","ResourceName":"trnv1:rsc:trip-com:redis:clusters:cache-' || r || '","Actions":["redis:connect"],"SID":"t-' || number || '-1",' ||
 '"Steps":[{"Name":"leader","State":"' ||
 CASE state WHEN 'pending' THEN 'current' ELSE 'approved' END || '","Approvers":["u' || l || '"],"Quorum":1' ||
 CASE state WHEN 'pending' THEN '' ELSE ',"Votes":[{"Person":"u' || l || '","Approve":true,"At":"2025-01-02T03:04:05Z"}]' END ||
 '},{"Name":"owner","State":"' ||
 CASE state WHEN 'pending' THEN 'waiting' ELSE 'approved' END ||
 '","Approvers":["u' || (5 * o) || '","u' || (5 * o + 1) || '","u' || (5 * o + 2) || '"],"Quorum":1}]}'
 FROM (SELECT number, state, number % $PEOPLE / 5 + 400 * (number / $PEOPLE % 25) AS a, number * 13 % 10000 AS r,
  number % $PEOPLE / 5 * 5 AS l, number * 13 % 10000 * 7 % 400 AS o FROM tickets) AS x`,
	`INSERT INTO ticket_words SELECT t.number, w.word FROM tickets t CROSS JOIN (
 SELECT 'the' AS word UNION ALL SELECT 'checkout' UNION ALL SELECT 'needs' UNION ALL SELECT 'it'
 UNION ALL SELECT 'app' UNION ALL SELECT 'cache') AS w`,
	`INSERT INTO ticket_words SELECT number, requester FROM tickets`,
	`INSERT INTO ticket_words SELECT number, '' || (number * 13 % 10000) FROM tickets`,
	`INSERT INTO concerns SELECT number, 0, 'u' || (number % $PEOPLE / 5 * 5), 'named' FROM tickets WHERE number % 5 > 0`,
	`INSERT INTO concerns SELECT number, 0, 'u' || (number % $PEOPLE / 5 * 5), CASE state WHEN 'pending' THEN 'waits' ELSE 'decided' END FROM tickets ` +
		`WHERE number % 5 > 0`,
	`INSERT INTO concerns SELECT number, 0, 'u' || (number * 13 % 10000 * 7 % 400 * 5 + 3), 'named' FROM tickets`,
	`INSERT INTO ticket_events (ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment)
 SELECT number, -1, created_at, 'submitted', requester, '', '', '', '', reason FROM tickets`,
	`INSERT INTO ticket_events (ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment)
 SELECT number, 0, created_at, 'step-approved', 'u' || (number % $PEOPLE / 5 * 5), '', 'leader', '', '', 'ok' FROM tickets WHERE state <> 'pending'`,
}

// writeTickets fills a database with tickets.
func writeTickets(b *testing.B, dsn string, tickets int) {
	b.Helper()
	db, err := database.Open(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Write(b.Context(), func(tx *gorm.DB) error {
		for _, sql := range ticketRows {
			sql := strings.NewReplacer("$N", fmt.Sprint(tickets), "$PEOPLE", fmt.Sprint(requesters(tickets))).Replace(sql)
			if err := tx.Exec(sql).Error; err != nil {
				return err
			}
		}
		if db.Postgres() { // the rows that were inserted with their numbers did not advance the sequence
			if err := tx.Exec("SELECT setval(pg_get_serial_sequence('tickets', 'number'), ?)", tickets).Error; err != nil {
				return err
			}
			return tx.Exec("ANALYZE").Error // as its autovacuum does; SQLite is measured without statistics, as it is used
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}
