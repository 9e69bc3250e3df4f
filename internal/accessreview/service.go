package accessreview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// Grants are the accesses, which the approval service has. It is the only way to change them.
type Grants interface {
	Actor(ctx context.Context, a approval.Actor) (approval.Actor, error)
	StandingGrants(ctx context.Context) ([]approval.StandingGrant, error)
	StandingGrant(ctx context.Context, of approval.Target) (approval.StandingGrant, bool, error)
	RevokeReviewed(ctx context.Context, of approval.Target, d approval.ReviewDecision) (approval.ReviewResult, error)
	ShortenReviewed(ctx context.Context, of approval.Target, d approval.ReviewDecision) (approval.ReviewResult, error)
	// ChangedGrants returns the names of the applications and resources of the grants that were changed at or after an
	// instant, and the versions of their tickets. It leaves out tickets that have the version in known.
	ChangedGrants(ctx context.Context, since time.Time, known map[int64]int64) ([]approval.GrantPair, map[int64]int64, error)
}

// Config is the configuration of a Service; all fields are required.
type Config struct {
	Store   Store
	Grants  Grants
	Catalog func() *catalog.Catalog
	// ClassOf returns the class of a name of a resource, or of a prefix of names; empty if no class covers it. It is called only while HostKnown
	// reports true.
	ClassOf func(resource string) string
	// HostKnown reports whether the classes and policies of the host cluster were read.
	HostKnown func() bool
	Now       func() time.Time
	// Requeue makes the worker check the reviews at once.
	Requeue func()
}

// Service contains what people do with campaigns.
type Service struct {
	Config
	bounds bounds
}

// NewService returns a Service.
func NewService(c Config) *Service { return &Service{Config: c, bounds: defaultBounds} }

// Input is the wanted campaign.
type Input struct {
	Name        string
	Scope       Scope
	Rules       []Rule
	Silence     Silence
	Grace       time.Duration
	Deadline    time.Time
	WindowDays  int // 0 means DefaultWindow
	RemindEvery time.Duration
}

// check sets the defaults of an input, and returns the first error of it.
func (s *Service) check(in *Input, now time.Time) error {
	in.setDefaults()
	if err := in.checkLimits(now); err != nil {
		return err
	}
	return in.checkNames(s.Catalog())
}

// setDefaults sets what the caller left out. The rules default to the owner of the resource.
func (in *Input) setDefaults() {
	in.Name = strings.TrimSpace(in.Name)
	if len(in.Rules) == 0 {
		in.Rules = []Rule{RuleResourceOwner}
	}
	if in.WindowDays == 0 {
		in.WindowDays = DefaultWindow
	}
	if in.Silence != SilenceShorten {
		in.Grace = 0
	}
}

// checkLimits returns the error of the first field that is outside of its limits.
func (in *Input) checkLimits(now time.Time) error {
	length := in.Deadline.Sub(now)
	switch {
	case in.Name == "" || utf8.RuneCountInString(in.Name) > MaxName:
		return invalid("name", message.ReviewNameLength(MaxName))
	case len(in.Scope.Classes) > MaxScope || len(in.Scope.Teams) > MaxScope || len(in.Scope.Sensitivities) > 3:
		return invalid("scope", message.ReviewScopeTooLong(MaxScope))
	case in.Scope.OlderThan < 0 || in.Scope.OlderThan > MaxOlderThan:
		return invalid("scope.olderThanDays", message.FieldRange(0, int(MaxOlderThan/(24*time.Hour))))
	case len(in.Rules) > MaxRules:
		return invalid("reviewers", message.ReviewScopeTooLong(MaxRules))
	case !in.Silence.Valid():
		return invalid("silence", message.ReviewSilenceUnknown())
	case in.Silence == SilenceShorten && (in.Grace < MinGrace || in.Grace > MaxGrace):
		return invalid("graceDays", message.FieldRange(1, 180))
	case length < MinLength || length > MaxLength:
		return invalid("deadline", message.ReviewDeadlineRange())
	case in.WindowDays < MinWindow || in.WindowDays > MaxWindow:
		return invalid("windowDays", message.FieldRange(MinWindow, MaxWindow))
	case in.RemindEvery != 0 && (in.RemindEvery < time.Hour || in.RemindEvery > MaxLength):
		return invalid("remindEveryDays", message.FieldRange(1, 180))
	}
	return nil
}

// checkNames returns the error of the first value that is neither one of the API's nor a name of the catalog.
func (in *Input) checkNames(c *catalog.Catalog) error {
	for _, x := range in.Scope.Sensitivities {
		if x != catalog.SensitivityLow && x != catalog.SensitivityMedium && x != catalog.SensitivityHigh {
			return invalid("scope.sensitivities", message.ReviewSensitivityUnknown())
		}
	}
	for _, team := range in.Scope.Teams {
		if _, ok := c.Group(team); !ok {
			return invalid("scope.teams", message.ReviewGroupUnknown(team))
		}
	}
	for i, r := range in.Rules {
		if !r.valid(c) {
			return invalid(fmt.Sprintf("reviewers[%d]", i), message.ReviewRuleUnknown(string(r)))
		}
	}
	return nil
}

// mayGovern returns an error unless an actor may create and end campaigns.
func mayGovern(a approval.Actor) error {
	switch {
	case a.Auditor:
		return approval.AuditorsOnlyRead()
	case !a.Security:
		return fail(approval.CodeForbidden, message.AccessSecurityOnly())
	}
	return nil
}

// Preview counts the lines that a campaign with some settings would have if it were created now.
type Preview struct {
	Accesses    int
	Reviewers   int
	Unreviewed  int          // accesses that no reviewer may decide; what the campaign does with undecided lines applies to them
	ByRule      map[Rule]int // accesses by the rule that names their reviewers
	Permanent   int          // accesses without an end
	Busiest     string       // the reviewer with the most lines, and their number
	BusiestHas  int
	Examples    []Example
	Sensitivity map[catalog.Sensitivity]int
}

// Example is one access of a preview.
type Example struct {
	ApplicationName, ResourceName string                   // empty for a statement
	Scope                         *approval.StatementScope // of a statement; nil for a grant
	Since                         time.Time
	Reviewers                     []string
}

// maxExamples bounds the accesses that a preview shows.
const maxExamples = 10

// Preview counts the lines that the campaign would have, without creating it.
func (s *Service) Preview(ctx context.Context, a approval.Actor, in Input) (Preview, error) {
	if err := mayGovern(a); err != nil {
		return Preview{}, err
	}
	now := s.Now()
	if err := s.check(&in, now); err != nil {
		return Preview{}, err
	}
	c := s.Catalog()
	lines, err := s.collect(ctx, c, Campaign{Scope: in.Scope, Rules: in.Rules}, now)
	if err != nil {
		return Preview{}, err
	}
	out := Preview{Accesses: len(lines), ByRule: map[Rule]int{}, Sensitivity: map[catalog.Sensitivity]int{}}
	by := map[string]int{}
	for i := range lines {
		l := &lines[i]
		out.ByRule[l.Rule]++
		out.Sensitivity[l.Sensitivity]++
		if l.End.IsZero() {
			out.Permanent++
		}
		if len(l.Reviewers) == 0 {
			out.Unreviewed++
		}
		for _, p := range l.Reviewers {
			by[p]++
		}
		if len(out.Examples) < maxExamples {
			out.Examples = append(out.Examples, Example{l.ApplicationName, l.ResourceName, l.Scope, l.Since, l.Reviewers})
		}
	}
	out.Reviewers = len(by)
	for p, n := range by {
		if n > out.BusiestHas || n == out.BusiestHas && p < out.Busiest {
			out.Busiest, out.BusiestHas = p, n
		}
	}
	return out, nil
}

// collect returns the lines of a campaign, statements first, ordered by resource and application, without evidence and numbers. It returns an
// error if they exceed the bounds, which a large group as reviewers of many accesses does.
func (s *Service) collect(ctx context.Context, c *catalog.Catalog, x Campaign, now time.Time) ([]Line, error) {
	if !s.HostKnown() {
		return nil, approval.HostUnknown() // without classes, a scope by class would select nothing
	}
	grants, err := s.Grants.StandingGrants(ctx)
	if err != nil {
		return nil, err
	}
	var out []Line
	assignments := 0
	for _, g := range grants {
		l := Line{Campaign: x.ID, State: LineOpen, Target: g.Target, Application: g.Application, ApplicationName: g.ApplicationName,
			Resource: g.Resource, ResourceName: g.ResourceName, Scope: g.Scope, Actions: g.Actions, Since: g.Since, End: g.End,
			Requesters: g.Requesters, SIDs: g.SIDs, Grant: g.Version, Recommendation: None}
		about := accessOf(c, &l)
		if !x.Scope.includes(about, s.ClassOf, g, now) {
			continue
		}
		l.Class, l.Sensitivity = strings.Join(about.classes(s.ClassOf, g), ", "), about.sensitivity()
		l.Rule, l.Reviewers = about.reviewers(x.Rules)
		out = append(out, l)
		if assignments += len(l.Reviewers); len(out) > s.bounds.lines || assignments > s.bounds.assignments {
			return nil, invalid("scope", message.ReviewTooLarge(s.bounds.lines, s.bounds.assignments))
		}
	}
	slices.SortStableFunc(out, func(a, b Line) int {
		if a.Scope != nil && b.Scope != nil {
			return cmp.Or(slices.Compare(a.Scope.Resources, b.Scope.Resources), slices.Compare(a.Scope.Subjects, b.Scope.Subjects))
		}
		return strings.Compare(a.ResourceName+"\x00"+a.ApplicationName, b.ResourceName+"\x00"+b.ApplicationName)
	})
	return out, nil
}

// Create creates a campaign, whose lines the worker collects.
func (s *Service) Create(ctx context.Context, a approval.Actor, in Input) (Campaign, error) {
	if err := mayGovern(a); err != nil {
		return Campaign{}, err
	}
	now := s.Now().UTC()
	if err := s.check(&in, now); err != nil {
		return Campaign{}, err
	}
	if _, err := s.collect(ctx, s.Catalog(), Campaign{Scope: in.Scope, Rules: in.Rules}, now); err != nil {
		return Campaign{}, err
	}
	x := Campaign{State: StatePreparing, CreatedAt: now, Name: in.Name, CreatedBy: a.ID, Scope: in.Scope, Rules: in.Rules, Silence: in.Silence,
		Grace: in.Grace, Deadline: in.Deadline.UTC(), WindowDays: in.WindowDays, RemindEvery: in.RemindEvery, Swept: now}
	made, err := s.Store.Create(ctx, x, func(x Campaign) News {
		rules := make([]string, len(x.Rules))
		for i, r := range x.Rules {
			rules[i] = string(r)
		}
		d := map[string]string{
			"name":      x.Name,
			"deadline":  x.Deadline.Format(time.RFC3339),
			"silence":   string(x.Silence),
			"reviewers": strings.Join(rules, ", "),
		}
		ledger.SetMessage(d, "scope", x.Scope.text())
		if x.Grace > 0 {
			d["grace"] = x.Grace.String()
		}
		return News{Entries: []ledger.Entry{{At: now, Actor: a.ID, Action: "review.created", Object: FormatID(x.ID), Details: d}}}
	})
	if err == nil {
		s.Requeue()
	}
	return made, err
}

// text returns the scope for the ledger.
func (s Scope) text() message.Message {
	var parts []message.Message
	add := func(of func(names []string) message.Message, names []string) {
		if len(names) > 0 {
			parts = append(parts, of(names))
		}
	}
	add(message.ReviewScopeClasses, s.Classes)
	add(message.ReviewScopeTeams, s.Teams)
	var list []string
	for _, x := range s.Sensitivities {
		list = append(list, string(x))
	}
	add(message.ReviewScopeSensitivities, list)
	if s.OlderThan > 0 {
		parts = append(parts, message.ReviewScopeOlder(s.OlderThan.String()))
	}
	if len(parts) == 0 {
		return message.ReviewScopeAll()
	}
	return message.ReviewScope(parts)
}

// End ends a campaign before its deadline: lines that are not decided are skipped.
func (s *Service) End(ctx context.Context, a approval.Actor, id int64, reason string) (Campaign, error) {
	if err := mayGovern(a); err != nil {
		return Campaign{}, err
	}
	reason = strings.TrimSpace(reason)
	if reason == "" || utf8.RuneCountInString(reason) > approval.MaxText {
		return Campaign{}, invalid("reason", message.ReviewEndReasonNeeded())
	}
	x, err := s.Store.Change(ctx, id, func(c *Campaign) (News, error) {
		if c.State == StateClosed || !c.EndedAt.IsZero() {
			return News{}, fail(approval.CodeConflict, message.ReviewClosed())
		}
		now := s.Now().UTC()
		c.EndedAt, c.EndedBy, c.EndReason, c.NextReminder = now, a.ID, reason, time.Time{}
		return News{
			Entries: []ledger.Entry{{At: now, Actor: a.ID, Action: "review.ended", Object: FormatID(c.ID), Details: map[string]string{"reason": reason}}},
		}, nil
	})
	if err != nil {
		return Campaign{}, notFound(err)
	}
	s.Requeue()
	return x, nil
}

// Visible returns a campaign that an actor may see, with the people whose lines they may see; nil means all.
func (s *Service) Visible(ctx context.Context, a approval.Actor, id int64) (Campaign, []string, error) {
	x, err := s.Store.Campaign(ctx, id)
	if err != nil {
		return x, nil, notFound(err)
	}
	people, err := s.Reviewers(ctx, a)
	if err != nil || people == nil {
		return x, nil, err
	}
	ok, err := s.Store.Reviews(ctx, id, people)
	if err != nil {
		return x, nil, err
	}
	if !ok {
		return Campaign{}, nil, fail(approval.CodeNotFound, message.ReviewNotFound())
	}
	return x, people, nil
}

// Reviewers returns the people whose lines an actor may see: nil means all, for the security team and auditors.
func (s *Service) Reviewers(ctx context.Context, a approval.Actor) ([]string, error) {
	if a.Security || a.Auditor {
		return nil, nil
	}
	a, err := s.Grants.Actor(ctx, a)
	if err != nil {
		return nil, err
	}
	return append([]string{a.ID}, a.StandsFor...), nil
}

func notFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return &approval.Error{Code: approval.CodeNotFound, Message: message.ReviewNotFound(), Err: err}
	}
	return err
}

func fail(code approval.Code, m message.Message) error {
	return &approval.Error{Code: code, Message: m}
}

func invalid(field string, m message.Message) error {
	return &approval.Error{Code: approval.CodeInvalid, Message: m, Fields: []approval.Field{{Path: field, Code: "invalid", Message: m}}}
}
