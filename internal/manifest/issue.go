package manifest

import (
	"cmp"
	"fmt"
	"slices"
)

// Position is a place in what was read.
type Position struct {
	// File as it was named; "-" for a stream, "cluster" for a cluster.
	File string `json:"file,omitempty"`
	// Document counts from 1 in the file; 0: the file as a whole.
	Document int `json:"document,omitempty"`
	// Line counts from 1 in the file; 0: not known.
	Line int `json:"line,omitempty"`
}

// String is "file:line (document n)", as far as it is known.
func (p Position) String() string {
	s := p.File
	if p.Line > 0 {
		s += fmt.Sprintf(":%d", p.Line)
	}
	if p.Document > 0 {
		s += fmt.Sprintf(" (document %d)", p.Document)
	}
	return s
}

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Document, b.Document), cmp.Compare(a.Line, b.Line))
}

// Issue is something wrong, or odd, with what was read.
type Issue struct {
	Position Position `json:"position"`
	// Object is "Kind/name", as far as it is known.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
	// Warning tells that the input can still be used; otherwise it must not.
	Warning bool `json:"warning,omitempty"`
}

func (i Issue) String() string {
	s := i.Position.String() + ": "
	if i.Warning {
		s += "warning: "
	}
	if i.Object != "" {
		s += i.Object + ": "
	}
	return s + i.Message
}

func sortIssues(issues []Issue) {
	slices.SortStableFunc(issues, func(a, b Issue) int { return comparePositions(a.Position, b.Position) })
}
