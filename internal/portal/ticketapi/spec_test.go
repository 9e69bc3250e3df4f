package ticketapi

import (
	"testing"
)

func TestSpecJSON(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"YAML":       {"what people write", "a: 1\nb: [x]\n", `{"a":1,"b":["x"]}`},
		"JSON":       {"what programs write", `{"a": {"b": "c"}}`, `{"a":{"b":"c"}}`},
		"end marker": {"nothing follows", "a: 1\n...\n", `{"a":1}`},
		"asterisk": {
			"a quoted name with a wildcard is no alias", `pattern: "trnv1:rsc:o:redis:clusters:*"`,
			`{"pattern":"trnv1:rsc:o:redis:clusters:*"}`,
		},
		"plain asterisk":  {"an asterisk inside a word is none either", "pattern: trnv1:rsc:o:redis:clusters:*", `{"pattern":"trnv1:rsc:o:redis:clusters:*"}`},
		"anchor":          {"it is of no use without an alias", "a: &x 1\n", ""},
		"alias":           {"it stands for any amount of text", "a: &x 1\nb: *x\n", ""},
		"anchor of key":   {"also in a key", "&x a: 1\n", ""},
		"merge":           {"a merge is an alias", "a: &x {c: 1}\nb: {<<: *x}\n", ""},
		"twice":           {"two readers, two meanings", "a: 1\na: 2\n", ""},
		"second document": {"it would be dropped", "a: 1\n---\nb: 1\n", ""},
		"after the end":   {"it would be dropped", "a: 1\n...\nb: 1\n", ""},
		"list":            {"a spec is an object", "[1]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := specJSON(tc.text)
			if string(got) != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%s: %s %v, want %s", tc.reason, got, err, tc.want)
			}
		})
	}
}
