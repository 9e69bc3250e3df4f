package core

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzCheckJSON checks that accepted JSON decodes to the same value with every decoder.
func FuzzCheckJSON(f *testing.F) {
	for _, s := range []string{`{}`, `[1,{"a":null}]`, `{"a":1,"a":2}`, `{"a":{"a":1}}`, `"\ud800"`, `1e999`, `{"a":1}x`, strings.Repeat("[", 40)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if CheckJSON(data) != nil {
			return
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("accepted what is no JSON: %v", err)
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckJSON(again); err != nil {
			t.Errorf("%s passes, its canonical form %s does not: %v", data, again, err)
		}
	})
}
