package manifest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/acp-io/acp/internal/message"
)

// Position is a place in the input.
type Position struct {
	// File is the name that was given; "-" for a stream, "cluster" for a cluster.
	File string `json:"file,omitempty"`
	// Document counts from 1 in the file. 0 means the whole file.
	Document int `json:"document,omitempty"`
	// Line counts from 1 in the file. 0 means that it is unknown.
	Line int `json:"line,omitempty"`
}

// String returns "file:line (document n)" without the parts that are unknown.
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

// Issue is an error or a warning about the input.
type Issue struct {
	Position Position `json:"position"`
	// Object is "Kind/name", as far as it is known.
	Object  string          `json:"object,omitempty"`
	Message message.Message `json:"message"`
	// Warning reports whether the input can still be used; otherwise it must not be used.
	Warning bool `json:"warning,omitempty"`
}

// String returns the issue in English.
func (i Issue) String() string { return i.Render(message.English) }

// Render returns the position, the object and the message in a language.
func (i Issue) Render(language message.Language) string {
	s := i.Position.String() + ": "
	if i.Warning {
		s += "warning: "
	}
	if i.Object != "" {
		s += i.Object + ": "
	}
	return s + i.Message.Render(language)
}

func sortIssues(issues []Issue) {
	slices.SortStableFunc(issues, func(a, b Issue) int { return comparePositions(a.Position, b.Position) })
}
