// Package sqlquery composes SQL statements for every database of ACP: text that the program contains as constants, and
// the values of its placeholders. Nothing that a caller has sent becomes part of a text. A statement is written as SQL;
// Conditions add the parts that depend on a filter. The package depends on no driver and executes nothing.
package sqlquery

import (
	"reflect"
	"strconv"
	"strings"
)

// Statement is the text of a statement with the values of its placeholders.
type Statement struct {
	Text string
	Args []any
}

// Conditions collects the conditions that a row must all meet, with the values of their placeholders. The zero value has
// none. Copies must not be extended, because they share memory; use AddAll.
type Conditions struct {
	texts []string
	args  []any
}

// Condition returns Conditions with one condition.
func Condition(text string, args ...any) Conditions {
	var c Conditions
	c.Add(text, args...)
	return c
}

// Add adds a condition. A text with OR must be in brackets.
func (c *Conditions) Add(text string, args ...any) {
	c.texts = append(c.texts, text)
	c.args = append(c.args, args...)
}

// AddAll adds the conditions of another list.
func (c *Conditions) AddAll(other Conditions) {
	c.texts = append(c.texts, other.texts...)
	c.args = append(c.args, other.args...)
}

// Bind adds a value to the arguments without a condition, for a named placeholder that stands elsewhere in the statement.
func (c *Conditions) Bind(args ...any) { c.args = append(c.args, args...) }

// Args returns the values, in the order in which they were added.
func (c *Conditions) Args() []any { return c.args }

// IsEmpty reports whether there are no conditions.
func (c *Conditions) IsEmpty() bool { return len(c.texts) == 0 }

// And returns the conditions joined by AND; empty if there are none.
func (c *Conditions) And() string { return strings.Join(c.texts, " AND ") }

// Where returns the WHERE clause with a space before it; empty if there are no conditions.
func (c *Conditions) Where() string { return c.clause(" WHERE ") }

// Having returns the HAVING clause with a space before it; empty if there are no conditions.
func (c *Conditions) Having() string { return c.clause(" HAVING ") }

func (c *Conditions) clause(keyword string) string {
	if c.IsEmpty() {
		return ""
	}
	return keyword + c.And()
}

// AddIn adds the condition that a column has one of the values. It adds none if there are no values.
func AddIn[T any](c *Conditions, column string, values []T) {
	if len(values) > 0 {
		c.Add(column+" IN ?", values)
	}
}

// Expand returns a statement in the form that a driver accepts. "IN ?" with a slice becomes a list with a placeholder
// for each element, which no value equals if the slice is empty. If numbered is set, for PostgreSQL, the placeholders
// become $1, $2 and so on. Otherwise, for SQLite, "LIMIT ?" with an int contains the number itself: SQLite plans with
// it, and would prepare the statement a second time once a value is bound. A ? must not occur in the text otherwise.
func Expand(s Statement, numbered bool) Statement {
	if !numbered && !strings.Contains(s.Text, "IN ?") && !strings.Contains(s.Text, "LIMIT ?") {
		return s
	}
	var text strings.Builder
	args := make([]any, 0, len(s.Args))
	placeholder := func() {
		if numbered {
			text.WriteString("$" + strconv.Itoa(len(args)))
		} else {
			text.WriteByte('?')
		}
	}
	rest := s.Text
	for _, arg := range s.Args {
		before, after, found := strings.Cut(rest, "?")
		if !found {
			args = append(args, arg) // the driver rejects a value too many
			continue
		}
		text.WriteString(before)
		rest = after
		if limit, ok := arg.(int); ok && !numbered && strings.HasSuffix(before, "LIMIT ") {
			text.WriteString(strconv.Itoa(limit))
			continue
		}
		list := reflect.ValueOf(arg)
		if !strings.HasSuffix(before, "IN ") || list.Kind() != reflect.Slice {
			args = append(args, arg)
			placeholder()
			continue
		}
		text.WriteByte('(')
		for i := range list.Len() {
			if i > 0 {
				text.WriteString(", ")
			}
			args = append(args, list.Index(i).Interface())
			placeholder()
		}
		if list.Len() == 0 {
			text.WriteString("NULL")
		}
		text.WriteByte(')')
	}
	text.WriteString(rest)
	return Statement{text.String(), args}
}
