package gormstore

import (
	"database/sql"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/notify"
)

// supersede stores the outcome of tickets with the messages that were made for their earlier versions. A message that is being sent keeps its
// lease, and becomes a retraction when it was sent; see Sent. A retraction that is in progress loses its lease, so that it is repeated with
// the new outcome.
func supersede(tx *gorm.DB, changed []*notify.Supersession) error {
	answerable, err := ticketsWithControls(tx, changed)
	if err != nil {
		return err
	}
	for _, x := range changed {
		if !answerable[x.Ticket] {
			continue
		}
		outcome := x.Outcome.Encode()
		const outdated = " WHERE ticket = ? AND answer_version > 0 AND answer_version < ? AND outcome <> ?"
		if _, err := database.Exec(
			tx,
			"UPDATE notifications SET outcome = ?"+outdated+" AND (state IN ? OR person IN ?)",
			outcome, x.Ticket, x.Version, outcome, []string{queued, dead}, x.Except,
		); err != nil {
			return err
		}
		if _, err := database.Exec(
			tx,
			"UPDATE notifications SET outcome = ?, state = ?, run_after = ?, attempts = 0, worker = '', lease_until = 0, problem = ''"+outdated+
				" AND state IN ? AND receipt <> ''",
			outcome, retract, database.Micros(x.At), x.Ticket, x.Version, outcome, []string{sent, retract},
		); err != nil {
			return err
		}
	}
	return nil
}

// ticketsWithControls returns which of the tickets have messages in which they could be decided. Most have none.
func ticketsWithControls(tx *gorm.DB, changed []*notify.Supersession) (map[int64]bool, error) {
	if len(changed) == 0 {
		return nil, nil
	}
	numbers := make([]int64, 0, len(changed))
	for _, x := range changed {
		numbers = append(numbers, x.Ticket)
	}
	out := map[int64]bool{}
	err := database.Rows(tx, func(rows *sql.Rows) error {
		var n int64
		err := rows.Scan(&n)
		out[n] = true
		return err
	}, "SELECT DISTINCT ticket FROM notifications WHERE ticket IN ? AND answer_version > 0", numbers)
	return out, err
}
