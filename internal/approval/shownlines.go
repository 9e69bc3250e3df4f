package approval

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shown returns the lines that describe what an item grants now: its statement or the changes of its object, and what they
// are compiled to for every enforcer. An approval policy, an access package and an organization have no
// compiled lines.
func (s *Service) shown(kind Kind, it Item) (Shown, error) {
	var lines []string
	if it.Change == nil || !slices.Contains([]string{ObjectApprovalPolicy, ObjectAccessPackage, ObjectOrganization}, it.Change.Kind) {
		var err error
		if lines, err = s.Host.Compiled(it); err != nil {
			return Shown{}, err
		}
	}
	switch {
	case it.Scope != nil:
		return it.statementShown(kind, lines), nil
	case kind.Access():
		return NewShown(append(lines, StatementLines(it)...)), nil
	case kind == KindRevoke:
		for i, l := range lines {
			lines[i] = lineTakesAway + l
		}
		return NewShown(append(lines, fmt.Sprintf("revoke %s: %s may not use %s of %s any more", SID(it.Target.Ticket, it.Target.Item),
			it.ApplicationName, strings.Join(it.Actions, ", "), it.ResourceName))), nil
	}
	if it.Change == nil {
		return Shown{}, fmt.Errorf("an item of the kind %s has no change of an object", kind)
	}
	return NewShown(append(lines, changedLines(*it.Change)...)), nil
}

// WithoutClients returns the lines that do not name clients.
func WithoutClients(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		for _, sign := range []string{LineAdded, LineRemoved, lineNoLonger} {
			l = strings.TrimPrefix(l, sign)
		}
		return strings.HasPrefix(l, LineAllow) || strings.HasPrefix(l, LineDeny)
	})
}

// StatementLines returns the lines that describe an item's statement, without compiled lines.
func StatementLines(it Item) []string {
	if it.Scope != nil {
		return it.statementLines()
	}
	end := "until revoked"
	if it.Duration > 0 {
		end = "for " + it.Duration.String()
	}
	lines := make([]string, 0, len(it.Actions))
	for _, a := range it.Actions {
		lines = append(lines, fmt.Sprintf(LineAllow+"%s: %s on %s %s", it.ApplicationName, a, it.ResourceName, end))
	}
	if it.Hours != nil {
		lines = append(lines, lineHours+it.Hours.String())
	}
	if p := it.Package; p != nil {
		lines = append(lines, fmt.Sprintf("%s%s version %d: %s", linePackage, p.Name, p.Version, p.Digest))
		if p.HolderUpdate {
			lines = append(lines, lineGiven+FormatID(p.Ticket))
		}
	}
	return lines
}

// changedLines returns a line for each value of an object that is added, removed or changed.
func changedLines(c Change) []string {
	lines := []string{fmt.Sprintf("%s %s %s", c.Verb, c.Kind, c.Name)}
	before, after := map[string]string{}, map[string]string{}
	flatten(before, "spec", c.Before)
	flatten(after, "spec", c.After)
	if c.Kind == ObjectAccessPackage {
		// The list of holders says what a version changes for them. It is compared with what they have, and not with the list of the version before.
		maps.DeleteFunc(before, func(path, _ string) bool { return isHolderValue(path) })
		maps.DeleteFunc(after, func(path, _ string) bool { return isHolderValue(path) })
		lines = append(lines, holderLines(c)...)
	}
	for at, was := range before {
		switch now, stays := after[at]; {
		case !stays:
			lines = append(lines, fmt.Sprintf(LineRemoved+"%s: %s", at, was))
		case now != was:
			lines = append(lines, fmt.Sprintf("~ %s: %s -> %s", at, was, now))
		}
	}
	for at, now := range after {
		if _, had := before[at]; !had {
			lines = append(lines, fmt.Sprintf(LineAdded+"%s: %s", at, now))
		}
	}
	return lines
}

// flatten stores each value of a JSON text under its path.
func flatten(into map[string]string, path string, text json.RawMessage) {
	if len(text) == 0 {
		return
	}
	var list []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal(text, &object) == nil && len(object) > 0:
		for k, v := range object {
			flatten(into, path+"."+k, v)
		}
	case json.Unmarshal(text, &list) == nil && len(list) > 0:
		for i, v := range list {
			flatten(into, fmt.Sprintf("%s[%d]", path, i), v)
		}
	default:
		into[path] = string(text)
	}
}
