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

// Table is an answer as CSV. It is small enough to be in memory.
type Table struct {
	// Name is the name of the file, of letters, digits and "-._".
	Name    string
	Columns []string
	Rows    [][]string
}

// Write writes the answer. Texts that spreadsheets would read as formulas are made harmless.
func (t *Table) Write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+fileName(t.Name)+`"`)
	w.WriteHeader(http.StatusOK)
	out := csv.NewWriter(w)
	if err := out.Write(t.Columns); err != nil {
		return err
	}
	for _, row := range t.Rows {
		safe := make([]string, len(row))
		for i := range row {
			safe[i] = HarmlessCell(row[i])
		}
		if err := out.Write(safe); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
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
