package approval

import (
	"slices"
	"strconv"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// setStatementKind changes the kind of a request for extensions to KindStatement if what it extends are statements.
func (x *planner) setStatementKind() error {
	r := &x.request
	if r.Kind != KindExtend || r.Items[0].Target == nil {
		return nil
	}
	t, err := x.Store.Get(x.ctx, r.Items[0].Target.Ticket)
	if CodeOf(err) == CodeNotFound {
		return nil // the item says so
	}
	if err == nil && t.Kind == KindStatement {
		r.Kind = KindStatement
	}
	return err
}

// statement plans a statement that no pair of catalog entities expresses, or the extension of one.
func (x *planner) statement(r RequestItem, path string) (Item, error) {
	if r.Target != nil {
		return x.statementExtension(r, path)
	}
	return x.newStatement(r, path)
}

func (x *planner) newStatement(r RequestItem, path string) (Item, error) {
	s := r.Scope
	switch {
	case s == nil:
		return Item{}, invalid(path+"scope", message.RequestStatementMissing())
	case s.Effect != v1alpha1.EffectAllow && s.Effect != v1alpha1.EffectDeny:
		return Item{}, invalid(path+"scope.effect", message.RequestStatementEffect())
	case len(s.Subjects) == 0 || len(s.Subjects) > MaxScopeNames:
		return Item{}, invalid(path+"scope.subjects", message.FieldCount(MaxScopeNames))
	case len(s.Resources) == 0 || len(s.Resources) > MaxScopeNames:
		return Item{}, invalid(path+"scope.resources", message.FieldCount(MaxScopeNames))
	case r.Duration != 0 && (r.Duration < MinDuration || r.Duration > MaxDuration):
		return Item{}, invalid(path+"durationSeconds", message.RequestDurationRange())
	}
	scope := &StatementScope{Effect: s.Effect}
	pairs := !s.Denies()
	for i, name := range s.Subjects {
		full, exact, err := x.scopeSubject(name)
		if err != nil {
			return Item{}, withField(path+"scope.subjects["+strconv.Itoa(i)+"]", err)
		}
		scope.Subjects, pairs = append(scope.Subjects, full), pairs && exact
	}
	actions := slices.Compact(slices.Sorted(slices.Values(r.Actions)))
	for i, name := range s.Resources {
		full, exact, err := x.scopeResource(name, actions, path)
		if err != nil {
			return Item{}, withField(path+"scope.resources["+strconv.Itoa(i)+"]", err)
		}
		scope.Resources, pairs = append(scope.Resources, full), pairs && exact
	}
	slices.Sort(scope.Subjects)
	slices.Sort(scope.Resources)
	scope.Subjects, scope.Resources = slices.Compact(scope.Subjects), slices.Compact(scope.Resources)
	if pairs {
		return Item{}, invalid(path+"scope", message.RequestStatementPair())
	}
	if !x.actor.Security && !scope.OwnedInPart(x.c, x.actor.ID) {
		return Item{}, fail(CodeForbidden, message.RequestStatementNotOwner())
	}
	if err := x.checkScopeClasses(scope); err != nil {
		return Item{}, err
	}
	hours, err := normalHours(r.Hours, path)
	if err != nil {
		return Item{}, err
	}
	return Item{Scope: scope, Actions: actions, Duration: r.Duration, Hours: hours}, nil
}

// withField returns an error about a field of the request, or the error itself if it has a code: it is then not about the field, or has its
// field already.
func withField(path string, err error) error {
	if CodeOf(err) != "" {
		return err
	}
	return invalid(path, message.Of(err))
}

// scopeSubject returns the full name of a subject, which may be given by the id of an application in the catalog. exact reports whether it is
// the name of an application, rather than a prefix, a range of addresses or anyone.
func (x *planner) scopeSubject(name string) (full string, exact bool, err error) {
	name = strings.TrimSpace(name)
	if name == anyone {
		return name, false, nil
	}
	if app, ok := x.c.Application(name); ok {
		name = app.Name
	}
	n, err := policy.ParseName(name)
	if err != nil && !strings.Contains(name, ":") { // meant as the id of an entity
		return "", false, message.RequestStatementUnknown(name).Err()
	}
	if err != nil {
		return "", false, err
	}
	if n.IsPrefix() {
		_, err := n.ParsePrefix()
		return name, false, err
	}
	if !n.Wildcard {
		if app, ok := x.c.ByName(name); !ok || !x.isApplication(app.ID, name) {
			return "", false, message.RequestStatementUnknown(name).Err()
		}
	}
	ok, err := x.Host.SubjectCovered(exampleName(name))
	switch {
	case err != nil:
		return "", false, err
	case !ok && n.Wildcard:
		return "", false, message.RequestStatementClass(name).Err()
	case !ok:
		return "", false, message.RequestNoSubjectClass(name).Err()
	}
	return name, !n.Wildcard, nil
}

func (x *planner) isApplication(id, name string) bool {
	app, ok := x.c.Application(id)
	return ok && app.Name == name
}

// scopeResource returns the full name of a resource, which may be given by its id in the catalog. exact reports whether it is the name of one
// resource, rather than a prefix. The class of the resource must have the actions.
func (x *planner) scopeResource(name string, actions []string, path string) (full string, exact bool, err error) {
	name = strings.TrimSpace(name)
	if res, ok := x.c.Resource(name); ok {
		name = res.Name
	}
	n, err := policy.ParseName(name)
	if err != nil && !strings.Contains(name, ":") { // meant as the id of an entity
		return "", false, message.RequestStatementUnknown(name).Err()
	}
	if err != nil {
		return "", false, err
	}
	if !n.Wildcard {
		res, ok := x.c.ByName(name)
		if found, is := x.c.Resource(res.ID); !ok || !is || found.Name != name {
			return "", false, message.RequestStatementUnknown(name).Err()
		}
		_, err := x.knownActions(res, actions, path)
		return name, true, err
	}
	known, ok, err := x.Host.ResourceActions(exampleName(name))
	switch {
	case err != nil:
		return "", false, err
	case !ok:
		return "", false, message.RequestStatementClass(name).Err()
	case len(actions) == 0:
		return "", false, invalid(path+"actions", message.RequestNoAction(strings.Join(known, ", ")))
	}
	for _, a := range actions {
		if !slices.Contains(known, a) {
			return "", false, invalid(path+"actions", message.RequestUnknownAction(name, a, strings.Join(known, ", ")))
		}
	}
	return name, false, nil
}

// exampleName returns a name that a prefix covers, or the name itself if it is exact. A class that covers the example covers the whole prefix:
// the pattern of a class of a prefix with a type never begins with the added character.
func exampleName(name string) string {
	if stem, ok := strings.CutSuffix(name, "*"); ok {
		return stem + "0"
	}
	return name
}

// statementExtension plans a later end of a statement that is in force.
func (x *planner) statementExtension(r RequestItem, path string) (Item, error) {
	t, had, err := x.target(r, path)
	if err != nil {
		return Item{}, err
	}
	if had.Scope == nil {
		return Item{}, invalid(path+"target", message.RequestNoSuchGrant(t.ID()))
	}
	if had.State != StateEffective && had.State != StateApplying {
		return Item{}, fail(CodeConflict, message.RequestExtendNotEffective(t.ID(), string(had.State)))
	}
	it, err := x.newStatement(RequestItem{Scope: had.Scope, Actions: had.Actions, Duration: r.Duration, Hours: had.Hours}, path)
	if err != nil {
		return Item{}, err
	}
	if had.End().IsZero() {
		return Item{}, fail(CodeConflict, message.RequestHasAccess(t.ID()))
	}
	if it.Duration != 0 && !x.Now().Add(it.Duration).After(had.End()) {
		return Item{}, invalid(path+"durationSeconds", message.RequestHasLongerAccess(t.ID()))
	}
	it.Target = r.Target
	it.continueWhole(t, r.Target.Item)
	return it, x.continueGrant(&it, t, r.Target.Item)
}
