package accessreview

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// MaxChoices is the maximum number of lines that are decided at once.
const MaxChoices = 200

// Choice is the decision of a person about one line.
type Choice struct {
	Line     int
	Version  int64 // of the line that was shown
	Decision Decision
	Days     int // until the new end, of Shorten
	Comment  string
}

// Result is what became of a choice.
type Result struct {
	Line Line
	Err  error
}

// Decide records decisions about lines of a campaign, each for itself. A decision counts only for the line and the grant
// that were shown: if one of them has changed since, the line is brought up to date and the error is CodeStale.
func (s *Service) Decide(ctx context.Context, a approval.Actor, id int64, choices []Choice) ([]Result, error) {
	if a.Auditor {
		return nil, approval.AuditorsOnlyRead()
	}
	if len(choices) == 0 || len(choices) > MaxChoices {
		return nil, invalid("decisions", message.ReviewTooManyChoices(MaxChoices))
	}
	a, err := s.Grants.Actor(ctx, a)
	if err != nil {
		return nil, err
	}
	x, _, err := s.Visible(ctx, a, id)
	if err != nil {
		return nil, err
	}
	now := s.Now().UTC()
	if !x.Deciding(now) {
		return nil, fail(approval.CodeConflict, message.ReviewNotOpen())
	}
	byLine, numbers, err := choicesByLine(choices)
	if err != nil {
		return nil, err
	}
	// The grants are read before the lines are locked; what changes after this is found by the worker.
	grants, standing, err := s.grantsOf(ctx, id, numbers)
	if err != nil {
		return nil, err
	}
	staleGrants := map[int]error{}
	lines, failed, err := s.Store.ChangeLines(ctx, id, numbers, func(x Campaign, l *Line) (bool, News, error) {
		delete(staleGrants, l.Number) // the transaction may run again
		c := byLine[l.Number]
		behalf, err := s.checkDecidable(x, a, l, c.Version, now)
		if err != nil {
			return false, News{}, err
		}
		if g := grants[l.Number]; !standing[l.Number] || g.Version != l.Grant {
			if l.State == LineDone { // kept, and changed since: the outcome stays
				return false, News{}, fail(approval.CodeConflict, message.ReviewKeptAndChanged())
			}
			staleGrants[l.Number] = fail(approval.CodeStale, message.ReviewGrantChanged())
			changed, news := l.follow(&x, g, standing[l.Number], now)
			return changed, news, nil
		}
		if err := l.decide(c, a.ID, behalf, now); err != nil {
			return false, News{}, err
		}
		return true, News{Entries: []ledger.Entry{l.entry(now, a.ID, "review.decided")}}, nil
	})
	if err != nil {
		return nil, notFound(err)
	}
	found := map[int]Line{}
	for _, l := range lines {
		found[l.Number] = l
	}
	out := make([]Result, len(numbers))
	for i, n := range numbers {
		out[i] = Result{Line: found[n], Err: notFound(failed[n])}
		out[i].Line.Number, out[i].Line.Campaign = n, id
		if out[i].Err == nil {
			out[i].Err = staleGrants[n]
		}
	}
	s.Requeue()
	return out, nil
}

// choicesByLine checks the form of choices, and returns them by line, with the numbers of the lines in the order of the choices.
func choicesByLine(choices []Choice) (map[int]Choice, []int, error) {
	byLine, numbers := map[int]Choice{}, make([]int, 0, len(choices))
	for i, c := range choices {
		if err := c.check(fmt.Sprintf("decisions[%d].", i)); err != nil {
			return nil, nil, err
		}
		if _, twice := byLine[c.Line]; twice {
			return nil, nil, invalid(fmt.Sprintf("decisions[%d].line", i), message.ReviewLineTwice(c.Line))
		}
		byLine[c.Line] = c
		numbers = append(numbers, c.Line)
	}
	return byLine, numbers, nil
}

// checkDecidable returns the error if an actor may not decide a line now, or was shown another version of it; otherwise the person on whose
// behalf they decide, or "".
func (s *Service) checkDecidable(x Campaign, a approval.Actor, l *Line, version int64, now time.Time) (behalf string, err error) {
	behalf, ok := capacity(s.Catalog(), a, l)
	switch {
	case !x.Deciding(now):
		return "", fail(approval.CodeConflict, message.ReviewNotOpen())
	case !ok && !s.Shows(a, l):
		return "", ErrNotFound
	case !ok:
		return "", fail(approval.CodeForbidden, message.ReviewNotReviewer())
	case !l.decidable():
		return "", fail(approval.CodeConflict, message.ReviewLineDecided())
	case l.Version != version:
		return "", fail(approval.CodeStale, message.ReviewLineChanged())
	}
	return behalf, nil
}

// decide records a choice in a line whose grant is as it was shown. With an error the line is unchanged.
func (l *Line) decide(c Choice, person, behalf string, now time.Time) error {
	if err := c.reasoned(l); err != nil {
		return err
	}
	until := now.AddDate(0, 0, c.Days).Truncate(time.Second)
	if c.Decision == Shorten && !l.End.IsZero() && !until.Before(l.End) {
		return invalid("days", message.ReviewEndsEarlier())
	}
	l.Decision, l.DecidedBy, l.OnBehalfOf, l.DecidedAt, l.Comment, l.Silent, l.Until = c.Decision, person, behalf, now, c.Comment, false, time.Time{}
	l.State, l.Outcome, l.OutcomeAt = LineDecided, "", time.Time{}
	switch c.Decision {
	case Shorten:
		l.Until = until
	case Keep:
		l.done(OutcomeKept, now)
	}
	return nil
}

// MayDecide reports whether an actor may decide a line while its campaign takes decisions.
func (s *Service) MayDecide(a approval.Actor, l *Line) bool {
	_, ok := capacity(s.Catalog(), a, l)
	return ok && l.decidable()
}

// Shows reports whether an actor may see a line.
func (s *Service) Shows(a approval.Actor, l *Line) bool {
	if a.Security || a.Auditor {
		return true
	}
	for _, p := range l.Reviewers {
		if p == a.ID {
			return true
		}
		for _, q := range a.StandsFor {
			if p == q {
				return true
			}
		}
	}
	return false
}

// check returns the error of the form of a choice.
func (c *Choice) check(path string) error {
	c.Comment = strings.TrimSpace(c.Comment)
	switch {
	case !c.Decision.Valid():
		return invalid(path+"decision", message.ReviewDecisionUnknown())
	case utf8.RuneCountInString(c.Comment) > approval.MaxText:
		return invalid(path+"comment", message.FieldMaxCharacters(approval.MaxText))
	case c.Decision == Shorten && (c.Days < 1 || c.Days > 366):
		return invalid(path+"days", message.FieldRange(1, 366))
	}
	return nil
}

// reasoned returns an error if a decision needs a reason and has none: everything that takes access away, and keeping what
// the evidence recommends to end.
func (c *Choice) reasoned(l *Line) error {
	if c.Comment != "" || c.Decision == Keep && (l.Recommendation == Keep || l.Recommendation == None) {
		return nil
	}
	return invalid("comment", message.ReviewCommentNeeded())
}

// grantsOf returns the grants of lines as they are now, and which of them stand.
func (s *Service) grantsOf(ctx context.Context, id int64, numbers []int) (map[int]approval.StandingGrant, map[int]bool, error) {
	grants, standing := map[int]approval.StandingGrant{}, map[int]bool{}
	for _, n := range numbers {
		lines, err := s.Store.Lines(ctx, LineFilter{Campaign: id, After: Position{Campaign: id, Number: n - 1}, Limit: 1})
		if err != nil {
			return nil, nil, err
		}
		if len(lines) == 0 || lines[0].Number != n {
			continue // ChangeLines reports it
		}
		g, ok, err := s.Grants.StandingGrant(ctx, lines[0].Target)
		if err != nil {
			return nil, nil, err
		}
		grants[n], standing[n] = g, ok
	}
	return grants, standing, nil
}
