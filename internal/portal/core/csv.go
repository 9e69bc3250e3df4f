package core

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
)

// formats are the values of the parameter format, the default first.
var formats = []string{"json", "csv"}

// WantsCSV reports whether the caller requested a table as CSV; another value than the formats is a problem.
func WantsCSV[S ~string](format *S) (bool, error) {
	value := string(Value(format))
	if value != "" && !slices.Contains(formats, value) {
		return false, &Problem{Status: http.StatusBadRequest, Code: "invalid", Message: message.CallParameterOneOf("format", formats),
			Fields: []approval.Field{{Path: "format", Code: "unknown", Message: message.FieldOneOf(formats)}}}
	}
	return value == "csv", nil
}

// Column is a column of a table of rows of the type R.
type Column[R any] struct {
	// Name is the header.
	Name string
	// Value returns the cell of a row.
	Value func(R) string
}

// Table is an answer as CSV. It is small enough to be in memory.
type Table[R any] struct {
	// Name is the name of the file, of letters, digits and "-._".
	Name    string
	Columns []Column[R]
	Rows    []R
}

// Write writes the answer.
func (t *Table[R]) Write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+fileName(t.Name)+`"`)
	w.WriteHeader(http.StatusOK)
	out := csv.NewWriter(w)
	if err := WriteColumnNames(out, t.Columns); err != nil {
		return err
	}
	for _, row := range t.Rows {
		if err := WriteRow(out, t.Columns, row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteColumnNames writes the header of a table.
func WriteColumnNames[R any](w *csv.Writer, columns []Column[R]) error {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return w.Write(names)
}

// WriteRow writes a row of a table. Texts that spreadsheets would read as formulas are made harmless.
func WriteRow[R any](w *csv.Writer, columns []Column[R], row R) error {
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = HarmlessCell(c.Value(row))
	}
	return w.Write(cells)
}

// fileName returns a name for a header, in which other characters are replaced.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r) {
			return r
		}
		return '_'
	}, name)
}

// HarmlessCell returns text of users in a form that spreadsheets do not read as a formula. Some read the wide forms of the
// signs, too.
func HarmlessCell(s string) string {
	if first, _ := utf8.DecodeRuneInString(s); s != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + s
	}
	return s
}
