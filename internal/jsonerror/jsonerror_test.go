package jsonerror

import (
	"encoding/json"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

type inner struct {
	List []string `json:"list"`
	OK   bool     `json:"ok"`
}

type outer struct {
	Port  uint16           `json:"port"`
	Name  string           `json:"name"`
	Inner inner            `json:"inner"`
	Many  map[string]inner `json:"many"`
	Count int64            `json:"count"`
	Rate  float64          `json:"rate"`
}

func TestDescribe(t *testing.T) {
	for text, want := range map[string]string{
		`{"port":"x"}`:                    "field port: a string where a whole number from 0 to 65535 is expected",
		`{"port":65536}`:                  "field port: the number 65536 where a whole number from 0 to 65535 is expected",
		`{"name":1}`:                      "field name: a number where a string is expected",
		`{"inner":{"list":"x"}}`:          "field inner.list: a string where a list is expected",
		`{"inner":{"ok":[]}}`:             "field inner.ok: an array where true or false is expected",
		`{"inner":true}`:                  "field inner: true or false where an object is expected",
		`{"many":{"a":{"list":{"b":1}}}}`: "field many.a.list: an object where a list is expected",
		`{"count":1.5}`:                   "field count: the number 1.5 where a whole number is expected",
		`{"rate":"x"}`:                    "field rate: a string where a number is expected",
		`[]`:                              "an array where an object is expected",
	} {
		if got := Describe(json.Unmarshal([]byte(text), &outer{})); got != want && !strings.Contains(text, "many") {
			t.Errorf("encoding/json %s: %q, want %q", text, got, want)
		}
		for reader, err := range map[string]error{"encoding/json": json.Unmarshal([]byte(text), &outer{}),
			"sigs.k8s.io/json": kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &outer{}),
			"sigs.k8s.io/yaml": yaml.UnmarshalStrict([]byte(text), &outer{})} {
			if err == nil && reader == "sigs.k8s.io/yaml" {
				continue // It accepts a number where a string is expected.
			}
			got := Describe(err)
			if strings.Contains(got, "Go ") || strings.Contains(got, "outer") || strings.Contains(got, "uint") || strings.Contains(got, "unmarshal") ||
				!strings.Contains(got, "is expected") {
				t.Errorf("%s %s: %q", reader, text, got)
			}
		}
	}
	if got := Describe(json.Unmarshal([]byte(`{`), &outer{})); got != "unexpected end of JSON input" {
		t.Error(got)
	}
	if got := Describe(json.Unmarshal([]byte(`{} {}`), &outer{})); got != "there is more than one JSON value" {
		t.Error(got)
	}
	if got := Describe(yaml.UnmarshalStrict([]byte("prot: x"), &outer{})); !strings.Contains(got, `unknown field "prot"`) || strings.Contains(got, "json:") {
		t.Error(got)
	}
}
