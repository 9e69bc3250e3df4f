// Package gormstoretest fills databases with many tickets, for the benchmarks of lists and of the portal.
package gormstoretest

import (
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
)

const (
	// People is the number of people, u0 and so on, in groups of five, the first of whom leads.
	People = 2_000
	// Groups is the number of their groups, g0 and so on. Group n mod Groups owns the application app-n, and group 7n mod
	// Groups the resource cache-n.
	Groups = People / 5
	// Entities is the number of applications and that of resources.
	Entities = 10_000
)

// Requesters returns the number of people who request tickets, u0 and so on. Each has at least 25 tickets, so that a page of a list
// is as long with few tickets as with many.
func Requesters(tickets int) int { return min(People, tickets/25) }

// ticketRows inserts $N tickets of $PEOPLE people. One in fifty of a person waits for the approval of their leader, the others are
// effective or expired.
var ticketRows = []string{
	`INSERT INTO tickets (number, state, version, requester, reason, kind, created_at, updated_at)
 SELECT n, CASE WHEN n / $PEOPLE % 50 = 3 THEN 'pending' WHEN n % 3 = 0 THEN 'effective' ELSE 'expired' END, 1, 'u' || (n % $PEOPLE),
 'the checkout needs it', 'grant', 1700000000000000 + n * CAST(1000000 AS BIGINT), 1700000000000000 + n * CAST(1000000 AS BIGINT)
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

// WriteTickets fills a database with tickets.
func WriteTickets(b testing.TB, dsn string, tickets int) {
	b.Helper()
	db, err := database.Open(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	if err := db.Write(b.Context(), func(tx *gorm.DB) error {
		for _, sql := range ticketRows {
			sql := strings.NewReplacer("$N", fmt.Sprint(tickets), "$PEOPLE", fmt.Sprint(Requesters(tickets))).Replace(sql)
			if _, err := database.Exec(tx, sql); err != nil {
				return err
			}
		}
		if db.Postgres() { // the rows that were inserted with their numbers did not advance the sequence
			if _, err := database.Exec(tx, "SELECT setval(pg_get_serial_sequence('tickets', 'number'), ?)", tickets); err != nil {
				return err
			}
			_, err := database.Exec(tx, "ANALYZE") // as its autovacuum does; SQLite is measured without statistics, as it is used
			return err
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}
