package approval

import (
	"encoding/json"
	"fmt"
	"strings"
)

// shown are the lines that an item brings now. Of access they are what the dataplanes get, of an object what changes.
func (s *Service) shown(kind Kind, it Item) (Shown, error) {
	switch {
	case kind.Access():
		lines, err := s.Host.Compiled(it)
		if err != nil {
			return Shown{}, err
		}
		return NewShown(append(lines, StatementLines(it)...)), nil
	case kind == KindRevoke:
		return NewShown([]string{fmt.Sprintf("revoke %s: %s may not use %s of %s any more", SID(it.Target.Ticket, it.Target.Item),
			it.ApplicationName, strings.Join(it.Actions, ", "), it.ResourceName)}), nil
	}
	return NewShown(changedLines(*it.Change)), nil
}

// StatementLines are what an item's statement says, whatever it is compiled to.
func StatementLines(it Item) []string {
	end := "until revoked"
	if it.Duration > 0 {
		end = "for " + it.Duration.String()
	}
	lines := make([]string, 0, len(it.Actions))
	for _, a := range it.Actions {
		lines = append(lines, fmt.Sprintf("allow %s: %s on %s %s", it.ApplicationName, a, it.ResourceName, end))
	}
	return lines
}

// changedLines has a line for each value of an object that is added, removed or changed.
func changedLines(c Change) []string {
	lines := []string{fmt.Sprintf("%s %s %s", c.Verb, c.Kind, c.Name)}
	before, after := map[string]string{}, map[string]string{}
	flatten(before, "spec", c.Before)
	flatten(after, "spec", c.After)
	for at, was := range before {
		switch now, stays := after[at]; {
		case !stays:
			lines = append(lines, fmt.Sprintf("- %s: %s", at, was))
		case now != was:
			lines = append(lines, fmt.Sprintf("~ %s: %s -> %s", at, was, now))
		}
	}
	for at, now := range after {
		if _, had := before[at]; !had {
			lines = append(lines, fmt.Sprintf("+ %s: %s", at, now))
		}
	}
	return lines
}

// flatten writes each value of a JSON text under its path.
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
