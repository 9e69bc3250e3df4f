package sqlquery

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestExpand(t *testing.T) {
	type state string
	for name, tc := range map[string]struct {
		in         Statement
		text, many string // for ?, for numbers
		args       []any
		numbers    []any // the values of many if they are not args
	}{
		"values": {Statement{"a = ? AND b = ?", []any{1, "x"}}, "a = ? AND b = ?", "a = $1 AND b = $2", []any{1, "x"}, nil},
		"a list between values": {Statement{"a = ? AND b IN ? AND c = ?", []any{1, []state{"x", "y"}, 2}},
			"a = ? AND b IN (?, ?) AND c = ?", "a = $1 AND b IN ($2, $3) AND c = $4", []any{1, state("x"), state("y"), 2}, nil},
		"an empty list equals nothing": {Statement{"b IN ? AND c = ?", []any{[]string{}, 2}}, "b IN (NULL) AND c = ?", "b IN (NULL) AND c = $1", []any{2}, nil},
		"a slice that is not a list":   {Statement{"data = ?", []any{[]byte("xy")}}, "data = ?", "data = $1", []any{[]byte("xy")}, nil},
		"an array of PostgreSQL": {
			Statement{"IN (SELECT * FROM unnest(CAST(? AS TEXT[])))", []any{[]string{"x"}}},
			"IN (SELECT * FROM unnest(CAST(? AS TEXT[])))", "IN (SELECT * FROM unnest(CAST($1 AS TEXT[])))", []any{[]string{"x"}}, nil,
		},
		"a limit is a part of the text for SQLite": {
			in:   Statement{"a = ? LIMIT ?", []any{1, 25}},
			text: "a = ? LIMIT 25", args: []any{1},
			many: "a = $1 LIMIT $2", numbers: []any{1, 25},
		},
		"no values": {Statement{Text: "SELECT 1"}, "SELECT 1", "SELECT 1", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for numbered, want := range map[bool]string{false: tc.text, true: tc.many} {
				got := Expand(tc.in, numbered)
				if got.Text != want {
					t.Errorf("numbered %v: got %s, want %s", numbered, got.Text, want)
				}
				args := tc.args
				if numbered && tc.numbers != nil {
					args = tc.numbers
				}
				if d := cmp.Diff(args, got.Args, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("numbered %v: -want +got\n%s", numbered, d)
				}
			}
		})
	}
}

func TestConditions(t *testing.T) {
	var c Conditions
	if c.Where() != "" || c.Having() != "" || !c.IsEmpty() {
		t.Errorf("no conditions: %q, %q", c.Where(), c.Having())
	}
	AddIn(&c, "a", []string{})
	c.Add("b = ?", 1)
	c.AddAll(Condition("(c = ? OR d)", 2))
	AddIn(&c, "e", []int{3, 4})
	c.Bind("later")
	if got, want := c.Where(), " WHERE b = ? AND (c = ? OR d) AND e IN ?"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if d := cmp.Diff([]any{1, 2, []int{3, 4}, "later"}, c.Args()); d != "" {
		t.Error(d)
	}
}
