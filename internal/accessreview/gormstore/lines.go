package gormstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
)

const lineColumns = "l.review, l.line, l.version, l.state, l.outcome, l.body"

// scanLine reads the columns lineColumns.
func scanLine(rows *sql.Rows) (l accessreview.Line, err error) {
	var body []byte
	var campaign, version int64
	var number int
	var state accessreview.LineState
	var outcome accessreview.Outcome
	if err := rows.Scan(&campaign, &number, &version, &state, &outcome, &body); err != nil {
		return l, err
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return l, fmt.Errorf("read line %d of access review %d: %w", number, campaign, err)
	}
	l.Campaign, l.Number, l.Version, l.State, l.Outcome = campaign, number, version, state, outcome
	return l, nil
}

// maxWords bounds the names of each end in the text that is searched, in bytes: the text is a part of an index, whose rows PostgreSQL limits to
// about 2,700 bytes. A statement can have more names, but an application or a resource has one, which is shorter.
const maxWords = 1000

// wordsOf returns the text in which LineFilter.Text is searched, in lower case.
func wordsOf(l *accessreview.Line) string {
	end := func(id string, names []string) string {
		text := strings.ToLower(strings.Join(append([]string{id}, names...), " "))
		return strings.ToValidUTF8(text[:min(len(text), maxWords)], "")
	}
	subjects, resources := l.Ends()
	return end(l.Application, subjects) + " " + end(l.Resource, resources)
}

// AddLines implements accessreview.Store.
func (s *Store) AddLines(ctx context.Context, id int64, build string, lines []accessreview.Line) error {
	var rows, reviewers [][]any
	for i := range lines {
		l := &lines[i]
		body, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("write line %d of access review %d: %w", l.Number, id, err)
		}
		pair := l.Pair()
		rows = append(rows, []any{id, l.Number, l.Version, string(l.State), string(l.Outcome), string(l.Recommendation), l.Silent, l.Target.Ticket,
			l.Target.Item, pair.ApplicationName, pair.ResourceName, wordsOf(l), string(body)})
		for _, p := range l.Reviewers {
			reviewers = append(reviewers, []any{p, id, l.Number, string(l.State)})
		}
	}
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		c, err := campaign(tx, id, database.ForUpdate(tx))
		if err != nil {
			return err
		}
		if c.State != accessreview.StatePreparing || c.Build != build {
			return accessreview.ErrNotBuilding
		}
		if _, err := database.Insert(tx, "review_lines (review, line, version, state, outcome, recommendation, silent, ticket, item, application_name, "+
			"resource_name, words, body)", "", rows); err != nil {
			return err
		}
		_, err = database.Insert(tx, "review_reviewers (person, review, line, state)", "", reviewers)
		return err
	})
}

// ChangeLines implements accessreview.Store.
func (s *Store) ChangeLines(
	ctx context.Context,
	id int64,
	numbers []int,
	change func(accessreview.Campaign, *accessreview.Line) (bool, accessreview.News, error),
) (out []accessreview.Line, failed map[int]error, err error) {
	err = s.db.Write(ctx, func(tx *gorm.DB) error {
		out, failed = nil, map[int]error{}
		c, err := campaign(tx, id, forShare(tx))
		if err != nil {
			return err
		}
		found := map[int]*accessreview.Line{}
		if err := database.Rows(tx, func(rows *sql.Rows) error {
			l, err := scanLine(rows)
			found[l.Number] = &l
			return err
		}, "SELECT "+lineColumns+" FROM review_lines l WHERE l.review = ? AND l.line IN ? ORDER BY l.line"+database.ForUpdate(tx), id, numbers); err != nil {
			return err
		}
		var news accessreview.News
		for _, number := range numbers {
			l := found[number]
			if l == nil {
				failed[number] = accessreview.ErrNotFound
				continue
			}
			before := *l
			changed, n, err := change(c, l)
			if err != nil {
				failed[number] = err
				*l = before
			} else if changed {
				l.Version++
				if err := saveLine(tx, l, before.State); err != nil {
					return err
				}
				news.Entries = append(news.Entries, n.Entries...)
				news.Notifications = append(news.Notifications, n.Notifications...)
			}
			out = append(out, *l)
		}
		if len(news.Entries)+len(news.Notifications) == 0 {
			return nil
		}
		return record(tx, news)
	})
	return out, failed, err
}

// forShare returns the clause that keeps a campaign from being changed until the transaction ends.
func forShare(tx *gorm.DB) string {
	if database.ForUpdate(tx) == "" {
		return ""
	}
	return " FOR SHARE"
}

func saveLine(tx *gorm.DB, l *accessreview.Line, before accessreview.LineState) error {
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write line %s: %w", l.Ref(), err)
	}
	if _, err := database.Exec(tx, "UPDATE review_lines SET version = ?, state = ?, outcome = ?, silent = ?, body = ? WHERE review = ? AND line = ?",
		l.Version, string(l.State), string(l.Outcome), l.Silent, string(body), l.Campaign, l.Number); err != nil || l.State == before {
		return err
	}
	_, err = database.Exec(tx, "UPDATE review_reviewers SET state = ? WHERE review = ? AND line = ?", string(l.State), l.Campaign, l.Number)
	return err
}

// Lines implements accessreview.Store.
func (s *Store) Lines(ctx context.Context, f accessreview.LineFilter) (out []accessreview.Line, err error) {
	query := page(f, s.db.Postgres())
	err = s.db.ReadOne(ctx, func(tx *gorm.DB) error {
		out = nil
		return database.Rows(tx, func(rows *sql.Rows) error {
			l, err := scanLine(rows)
			out = append(out, l)
			return err
		}, query.Text, query.Args...)
	})
	return out, err
}

// page returns the query of the lines that a filter selects, with the columns lineColumns, for SQLite or PostgreSQL.
func page(f accessreview.LineFilter, postgres bool) sqlquery.Statement {
	var where sqlquery.Conditions
	if f.Campaign > 0 {
		where.Add("l.review = ?", f.Campaign)
	}
	if f.Pair != (approval.GrantPair{}) {
		where.Add("l.application_name = ? AND l.resource_name = ?", f.Pair.ApplicationName, f.Pair.ResourceName)
	}
	switch {
	case len(f.Reviewers) > 0:
		var mine sqlquery.Conditions
		mine.Add("p.person IN ? AND p.review = l.review AND p.line = l.line", f.Reviewers)
		where.Add("EXISTS (SELECT 1 FROM review_reviewers p"+mine.Where()+")", mine.Args()...)
		fallthrough
	default:
		if len(f.States) > 0 {
			where.Add("l.state IN ?", texts(f.States))
		}
	}
	if len(f.Outcomes) > 0 {
		where.Add("l.outcome IN ?", texts(f.Outcomes))
	}
	if len(f.Recommendations) > 0 {
		where.Add("l.recommendation IN ?", texts(f.Recommendations))
	}
	if f.Text != "" {
		// Faster than LIKE in both databases, which is what a search in 100,000 lines takes.
		position := "INSTR"
		if postgres {
			position = "STRPOS"
		}
		where.Add(position+"(l.words, ?) > 0", strings.ToLower(f.Text))
	}
	if f.After != (accessreview.Position{}) {
		switch {
		case f.Campaign > 0 && f.Descending:
			where.Add("l.line < ?", f.After.Number)
		case f.Campaign > 0:
			where.Add("l.line > ?", f.After.Number)
		default:
			where.Add("(l.review < ? OR l.review = ? AND l.line > ?)", f.After.Campaign, f.After.Campaign, f.After.Number)
		}
	}
	order := "l.review DESC, l.line"
	switch {
	case f.Campaign > 0 && f.Descending:
		order = "l.line DESC"
	case f.Campaign > 0:
		order = "l.line"
	}
	// The page is found in an index alone; only its lines are read.
	query, args := "SELECT l.review, l.line FROM review_lines l"+where.Where()+" ORDER BY "+order, where.Args()
	if f.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, f.Limit)
	}
	return sqlquery.Statement{Args: args,
		Text: "SELECT " + lineColumns + " FROM (" + query + ") AS k JOIN review_lines l ON l.review = k.review AND l.line = k.line ORDER BY " + order}
}

// Count implements accessreview.Store.
func (s *Store) Count(ctx context.Context, people []string, campaigns ...int64) (map[int64]accessreview.Counts, error) {
	out := map[int64]accessreview.Counts{}
	if len(campaigns) == 0 {
		return out, nil
	}
	query := counts(people, campaigns)
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) error {
		clear(out)
		return database.Rows(tx, func(rows *sql.Rows) error {
			var id int64
			var n int
			var g group
			if err := rows.Scan(&id, &g.state, &g.outcome, &g.recommendation, &g.silent, &n); err != nil {
				return err
			}
			c := out[id]
			g.add(&c, n)
			out[id] = c
			return nil
		}, query.Text, query.Args...)
	})
	return out, err
}

// counts returns the query of the number of lines of each group, of the lines that people decide, if there are any. The order of the
// groups is that of the index review_lines_count, so that a database need not sort the lines.
func counts(people []string, campaigns []int64) sqlquery.Statement {
	from, args := "review_lines l WHERE l.review IN ?", []any{campaigns}
	if len(people) > 0 {
		from = "(SELECT DISTINCT review, line FROM review_reviewers WHERE person IN ? AND review IN ?) AS p JOIN review_lines l " +
			"ON l.review = p.review AND l.line = p.line"
		args = []any{people, campaigns}
	}
	return sqlquery.Statement{Args: args, Text: "SELECT l.review, l.state, l.outcome, l.recommendation, l.silent, COUNT(*) FROM " + from +
		" GROUP BY l.review, l.state, l.outcome, l.recommendation, l.silent"}
}

// group are lines that are counted alike.
type group struct {
	state          accessreview.LineState
	outcome        accessreview.Outcome
	recommendation accessreview.Decision
	silent         bool
}

func (g group) add(c *accessreview.Counts, n int) {
	c.Total += n
	if g.silent {
		c.Silent += n
	}
	switch g.state {
	case accessreview.LineOpen:
		c.Open += n
		switch g.recommendation {
		case accessreview.Keep:
			c.RecommendKeep += n
		case accessreview.Shorten:
			c.RecommendShorten += n
		case accessreview.Revoke:
			c.RecommendRevoke += n
		default:
			c.RecommendNone += n
		}
		return
	case accessreview.LineDecided, accessreview.LineApplying:
		c.Applying += n
		return
	}
	switch g.outcome {
	case accessreview.OutcomeKept:
		c.Kept += n
	case accessreview.OutcomeShortened:
		c.Shortened += n
	case accessreview.OutcomeRevoked:
		c.Revoked += n
	case accessreview.OutcomeEnded:
		c.Ended += n
	case accessreview.OutcomeSkipped:
		c.Skipped += n
	}
}

// Waiting implements accessreview.Store.
func (s *Store) Waiting(ctx context.Context, id int64) (map[string]int, error) {
	out := map[string]int{}
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) error {
		clear(out)
		return database.Rows(tx, func(rows *sql.Rows) error {
			var person string
			var n int
			err := rows.Scan(&person, &n)
			out[person] = n
			return err
		}, "SELECT person, COUNT(*) FROM review_reviewers WHERE review = ? AND state = ? GROUP BY person", id, string(accessreview.LineOpen))
	})
	return out, err
}

// Reviews implements accessreview.Store.
func (s *Store) Reviews(ctx context.Context, id int64, people []string) (found bool, err error) {
	if len(people) == 0 {
		return false, nil
	}
	stop := errors.New("found")
	err = s.db.ReadOne(ctx, func(tx *gorm.DB) error {
		found = false
		return database.Rows(tx, func(*sql.Rows) error { found = true; return stop },
			"SELECT 1 FROM review_reviewers WHERE person IN ? AND review = ? LIMIT 1", people, id)
	})
	if found {
		return true, nil
	}
	return false, err
}
