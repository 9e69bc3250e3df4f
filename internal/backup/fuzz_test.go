package backup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/acp-io/acp/internal/database/databasetest"
)

// FuzzOpen: whatever a file contains, it is an archive whose parts can be read, or an error.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("PK\x05\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("hello"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := Open(path)
		if err != nil {
			return
		}
		for _, err := range ledgerLines(a) {
			if err != nil {
				break
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzParseRow: a row has one value of the column's type for each column, or NULL, or there is an error.
func FuzzParseRow(f *testing.F) {
	cols := []column{{"a", "integer"}, {"b", "boolean"}, {"c", "text"}}
	for _, seed := range []string{`[1,true,"x"]`, `[null,null,null]`, `[1.5,0,{}]`, `[9223372036854775808,false,""]`, `[]`, `{`, `[1,true,"\ud800"]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		row, err := parseRow(text, cols)
		if err != nil {
			return
		}
		if len(row) != len(cols) {
			t.Fatalf("%d values for %d columns", len(row), len(cols))
		}
		for i, v := range row {
			ok := v == nil
			switch cols[i].Type {
			case "integer":
				_, is := v.(int64)
				ok = ok || is
			case "boolean":
				_, is := v.(bool)
				ok = ok || is
			default:
				_, is := v.(string)
				ok = ok || is
			}
			if !ok {
				t.Errorf("the value of %s is %T", cols[i].Name, v)
			}
		}
	})
}

// TestOpenReadsWhatItWrote keeps FuzzOpen's property for a whole archive, which is too large for a seed.
func TestOpenReadsWhatItWrote(t *testing.T) {
	db := databasetest.Open(t, databasetest.SQLite(t))
	a, err := Open(backedUp(t, db))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tables() {
		n := 0
		for _, err := range a.records(tableFile(x.name)) {
			if err != nil {
				t.Errorf("%s: %v", x.name, err)
			}
			n++
		}
		if n == 0 {
			t.Errorf("%s has no header", x.name)
		}
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
