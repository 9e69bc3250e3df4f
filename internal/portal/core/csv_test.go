package core

import (
	"net/http/httptest"
	"testing"
)

// TestTable checks that each cell is under the header of its column, and that a text of a user is harmless in a spreadsheet.
func TestTable(t *testing.T) {
	type row struct{ application, reason string }
	table := Table[row]{
		Name:    "a b.csv",
		Columns: []Column[row]{{"reason", func(r row) string { return r.reason }}, {"application", func(r row) string { return r.application }}},
		Rows:    []row{{"orders", "=1+1"}, {"cart", "because, of"}},
	}
	w := httptest.NewRecorder()
	if err := table.Write(w); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Body.String(), "reason,application\n'=1+1,orders\n\"because, of\",cart\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := w.Header().Get("Content-Disposition"), `attachment; filename="a_b.csv"`; got != want {
		t.Errorf("the name of the file is in %q, want %q", got, want)
	}
}

func TestHarmlessCell(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "orders": "orders", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1",
		"＝1+1": "'＝1+1", "＠SUM(A1)": "'＠SUM(A1)", "缓存": "缓存", "a=b": "a=b",
	} {
		if got := HarmlessCell(in); got != want {
			t.Errorf("HarmlessCell(%q) = %q, want %q", in, got, want)
		}
	}
}
