package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/policy"
)

func TestDecodeQuery(t *testing.T) {
	const names = `"subjects":["trnv1:rsc:trip-com:iam:sa:app/888"],"resources":["trnv1:rsc:trip-com:redis:clusters:bobs-cluster"]`
	cases := map[string]struct {
		reason string
		line   string
		err    string
	}{
		"Full": {
			"every field of the issue",
			`{` + names + `,"sourceIP":"","cluster":"m1","port":6379,"protocol":"TCP","at":"2026-01-31T12:00:00Z","expect":"allowed"}`,
			"",
		},
		"ICMP":     {"it has no port", `{` + names + `,"protocol":"ICMP"}`, ""},
		"Outside":  {"an address without names", `{"sourceIP":"2001:db8::1","port":1}`, ""},
		"Misspelt": {"it would ask another question", `{` + names + `,"prot":6379,"port":1}`, `unknown field "prot"`},
		"Twice":    {"the second would win silently", `{` + names + `,"port":1,"port":2}`, `duplicate field "port"`},
		"WrongType": {
			"it names no type of the program",
			`{` + names + `,"port":"x"}`,
			"field port: a string where a whole number from 0 to 65535 is expected",
		},
		"NoPort":        {"every port would be a guess", `{` + names + `}`, "a port from 1"},
		"PortOfICMP":    {"it means nothing", `{` + names + `,"protocol":"ICMP","port":1}`, "ICMP has none"},
		"HugePort":      {"there is none", `{` + names + `,"port":65536}`, "not a query"},
		"Protocol":      {"case matters", `{` + names + `,"protocol":"tcp","port":1}`, `protocol "tcp"`},
		"Wildcard":      {"a connection is between two", `{"resources":["trnv1:rsc:trip-com:redis:clusters:*"],"port":1}`, "exact names"},
		"Range":         {"addresses go elsewhere", `{"subjects":["trnv1:rsc:trip-com:net:cidr:10.5.0.0/24"],"port":1}`, "go to sourceIP"},
		"BadName":       {"no pod can have it", `{"subjects":["888"],"port":1}`, "invalid name"},
		"Both":          {"which counts is not said", `{` + names + `,"sourceIP":"10.5.0.1","port":1}`, "give one of them"},
		"BadAddress":    {"no address", `{"sourceIP":"10.5.0.0/24","port":1}`, "not an address"},
		"BadInstant":    {"no instant", `{` + names + `,"port":1,"at":"tomorrow"}`, "not an instant"},
		"BadExpect":     {"no word of a decision", `{` + names + `,"port":1,"expect":"Allow"}`, `expect "Allow"`},
		"Two":           {"one answer per line", `{` + names + `,"port":1} {}`, "more than one"},
		"NotAnObject":   {"no query", `[]`, "not a query"},
		"NothingAtAll":  {"no query either", `null`, "a port from 1"},
		"TrailingBrace": {"half a query", `{` + names + `,"port":1}}`, "not a query"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q, _, err := decodeQuery([]byte(tc.line), goldenTime)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s: %+v, error %v, want %q", tc.reason, q, err, tc.err)
			}
		})
	}
}

func TestExamplesOfLintAreQueries(t *testing.T) {
	set, err := (&manifest.Reader{}).Read(context.Background(), "testdata/lint/classes", "testdata/lint/pairs.txt")
	if err != nil {
		t.Fatal(err)
	}
	findings, err := lint(set, goldenTime)
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for _, f := range findings {
		if f.Example == nil {
			continue
		}
		examples++
		text, err := json.Marshal(f.Example)
		if err != nil {
			t.Fatal(err)
		}
		if q, _, err := decodeQuery(text, time.Time{}); err != nil || !q.At.Equal(goldenTime) {
			t.Errorf("the example of %q is read as %+v: %v", f.Message, q, err)
		}
	}
	if examples < 2 {
		t.Errorf("%d examples in %+v, want those of two statements at least", examples, findings)
	}
}

func FuzzDecodeQuery(f *testing.F) {
	f.Add(`{"subjects":["trnv1:rsc:trip-com:iam:sa:app/888"],"resources":["trnv1:rsc:trip-com:redis:clusters:b"],"port":6379,"at":"2026-01-31T12:00:00Z"}`)
	f.Add(`{"sourceIP":"::ffff:10.5.0.1%eth0","port":1,"protocol":"SCTP","method":"GET","path":"/"}`)
	f.Add(`{"protocol":"ICMP","expect":"denied"}`)
	snapshot := policy.NewSnapshot(policy.Input{})
	f.Fuzz(func(t *testing.T, line string) {
		q, expected, err := decodeQuery([]byte(line), goldenTime)
		if err != nil {
			return
		}
		if q.Source.IsValid() && len(q.Subjects) > 0 || q.At.IsZero() && !strings.Contains(line, "0001") || q.Protocol == "" {
			t.Errorf("%q is read as %+v", line, q)
		}
		if word := snapshot.Decide(q).Verdict; word != policy.Unmanaged {
			t.Errorf("%q is %s without any object, want unmanaged (expected %s)", line, word, expected)
		}
	})
}

func TestDecideReportsUnexpectedVerdictsAndInvalidQueries(t *testing.T) {
	dir := "testdata/reference-applications"
	good := `{"subjects":["trnv1:rsc:trip-com:iam:sa:app/888"],"resources":["trnv1:rsc:trip-com:redis:clusters:bobs-cluster"],"port":6379`
	cases := map[string]struct {
		reason string
		stdin  string
		args   []string
		code   int
		out    []string
	}{
		"Fine":       {"as expected", good + `,"expect":"allowed"}`, nil, ExitFine, []string{`"decision":"allowed"`}},
		"Unexpected": {"a test of the policies fails", good + `,"expect":"denied"}`, nil, ExitFindings, []string{`"expected":"denied"`}},
		"BadLine": {"the other lines are answered, line for line", good + "}\n\nnonsense\n" + good + "}\n", nil, ExitInvalid,
			[]string{`"allowed"`, `"error":"line 3: `, `"allowed"`}},
		"Table":        {"for people", good + "}", []string{"-o", "table"}, ExitFine, []string{"LINE", "bobs-cluster/applications"}},
		"YAML":         {"a document per answer", good + "}", []string{"-o", "yaml"}, ExitFine, []string{"---", "decision: allowed"}},
		"Nothing":      {"no question, no answer", "", nil, ExitFine, nil},
		"LongLine":     {"a line that is no query", strings.Repeat("x", maxQuery+1), nil, ExitInvalid, nil},
		"AtTheCommand": {"an instant for all lines", good + "}", []string{"--at", "2026-01-01T00:00:00Z"}, ExitFine, []string{`"allowed"`}},
		"BadFormat":    {"no such format", good + "}", []string{"-o", "xml"}, ExitUsage, nil},
		"BadInstant":   {"no instant", good + "}", []string{"--at", "now"}, ExitUsage, nil},
		"BothStdin":    {"it can be read once", good + "}", []string{"-f", "-"}, ExitUsage, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errs := run(t, tc.stdin, append([]string{"decide", "-f", dir, "--queries", "-"}, tc.args...)...)
			if code != tc.code {
				t.Errorf("%s: exit code %d (%s), want %d", tc.reason, code, errs, tc.code)
			}
			rest := out
			for _, want := range tc.out {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%s: %q lacks %q", tc.reason, out, want)
				}
				rest = after
			}
		})
	}
}

// TestDecideReportsTheEffectOfRefusals checks that, if a statement is refused, decide reports the decision in the members, the decision
// by the statements as written, and the reason of the difference.
func TestDecideReportsTheEffectOfRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "objects.yaml"), []byte(`
apiVersion: acp.io/v1alpha1
kind: ResourceClass
metadata: {name: redis}
spec:
  pattern: "trnv1:rsc:o:redis:clusters:*"
  labelKey: redis
  placement: {clusterSelector: {matchLabels: {zone: a}}}
  actions: [{name: "redis:connect", ports: [{port: 6379}]}]
---
apiVersion: acp.io/v1alpha1
kind: SubjectClass
metadata: {name: application}
spec: {pattern: "trnv1:rsc:o:iam:sa:app/*", labelKey: app}
---
apiVersion: acp.io/v1alpha1
kind: ProtectedResource
metadata: {name: a}
spec: {resource: "trnv1:rsc:o:redis:clusters:a", mode: Enforce}
---
apiVersion: acp.io/v1alpha1
kind: ProtectedResource
metadata: {name: b}
spec: {resource: "trnv1:rsc:o:redis:clusters:b", mode: Enforce}
---
apiVersion: acp.io/v1alpha1
kind: AccessControlPolicy
metadata: {name: p}
spec:
  statements:
    - {sid: allow, effect: Allow, subjects: ["trnv1:rsc:o:iam:sa:app/888"], actions: ["redis:connect"], resources: ["trnv1:rsc:o:redis:clusters:a"]}
    - {sid: deny, effect: Deny, subjects: ["trnv1:rsc:o:net:cidr:10.5.0.9/24"], actions: ["redis:connect"], resources: ["trnv1:rsc:o:redis:clusters:a"]}
    - {sid: prefix, effect: Allow, subjects: ["trnv1:rsc:o:iam:sa:app/team-*"], actions: ["redis:connect"], resources: ["trnv1:rsc:o:redis:clusters:b"]}
---
apiVersion: core.kubefed.io/v1beta1
kind: KubeFedCluster
metadata: {name: m1, labels: {zone: a}}
spec: {apiEndpoint: "https://m1", secretRef: {name: m1}}
---
apiVersion: core.kubefed.io/v1beta1
kind: KubeFedCluster
metadata: {name: m2, labels: {zone: b}}
spec: {apiEndpoint: "https://m2", secretRef: {name: m2}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	names := filepath.Join(t.TempDir(), "names")
	if err := os.WriteFile(names, []byte("trnv1:rsc:o:iam:sa:app/team-7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(app, resource, cluster string) string {
		return fmt.Sprintf(
			`{"subjects":["trnv1:rsc:o:iam:sa:app/%s"],"resources":["trnv1:rsc:o:redis:clusters:%s"],"port":6379,"cluster":%q}`,
			app,
			resource,
			cluster,
		)
	}
	for name, tc := range map[string]struct {
		reason, query string
		args          []string
		code          int
		want          []string
	}{
		"Refused": {
			"a deny that is refused takes the allow", ask("888", "a", ""), nil, ExitFine,
			[]string{`"decision":"default-denied"`, `"written":"allowed"`, `"leftOut":[{"policy":"p","sid":"allow","reason":"OverriddenByRefusedDeny"`},
		},
		"NotPlaced": {"the class is not placed there", ask("888", "a", "m2"), nil, ExitFine, []string{`"decision":"unmanaged"`}},
		"NoMember": {
			"no member has the name", ask("888", "a", "m9"), nil, ExitInvalid,
			[]string{`"error":"line 1: cluster \"m9\": no member of the fleet has this name: there are m1, m2"`},
		},
		"UnknownName": {
			"a prefix stands for known names, as in render", ask("team-7", "b", "m1"), nil,
			ExitFine, []string{`"decision":"default-denied"`, `"reason":"UnknownName"`},
		},
		"KnownName": {"of which this is one", ask("team-7", "b", "m1"), []string{"--known-names", names}, ExitFine, []string{`"decision":"allowed"`}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := run(t, tc.query, append([]string{"decide", "-f", dir, "--queries", "-"}, tc.args...)...)
			if code != tc.code {
				t.Errorf("%s: exit code %d (%s), want %d", tc.reason, code, errs, tc.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s: %s lacks %s", tc.reason, out, want)
				}
			}
		})
	}
}

func TestWrongCallsAreExplained(t *testing.T) {
	cases := map[string]struct {
		args []string
		code int
		want string
	}{
		"UnknownCommand":  {[]string{"conquer"}, ExitUsage, "conquer"},
		"UnknownFlag":     {[]string{"render", "--bogus"}, ExitUsage, "--bogus"},
		"UnknownEnforcer": {[]string{"render", "-f", "testdata/diff/old", "--enforcer", "iptables"}, ExitUsage, "this build has"},
		"NoQueries":       {[]string{"decide", "-f", "testdata/diff/old"}, ExitUsage, "--queries"},
		"NoSuchQueries":   {[]string{"decide", "-f", "testdata/diff/old", "--queries", "none"}, ExitInvalid, "none"},
		"NoSuchFile":      {[]string{"render", "-f", "none"}, ExitInvalid, "none"},
		"ArgumentOnly":    {[]string{"render", "testdata"}, ExitUsage, "with -f"},
		"NoKubeconfig":    {[]string{"render", "--kubeconfig", "none"}, ExitInvalid, "the cluster cannot be used"},
		"BadFailOn":       {[]string{"lint", "-f", "testdata/diff/old", "--fail-on", "info"}, ExitUsage, "--fail-on"},
		"BadCapabilities": {[]string{"render", "-f", "testdata/diff/old", "--capabilities", "x"}, ExitUsage, "ENFORCER=FILE"},
		"DiffNothing":     {[]string{"diff"}, ExitUsage, "-f is needed"},
		"KnownNames":      {[]string{"render", "-f", "testdata/diff/old", "--known-names", "query_test.go"}, ExitInvalid, "query_test.go:1"},
		"Help":            {[]string{"--help"}, ExitFine, ""},
		"Version":         {[]string{"--version"}, ExitFine, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errs := run(t, "", tc.args...)
			if code != tc.code || !strings.Contains(errs, tc.want) {
				t.Errorf("exit code %d, errors %q, want %d and %q", code, errs, tc.code, tc.want)
			}
			if code == ExitFine && out == "" {
				t.Error("nothing is printed")
			}
		})
	}
}

func TestKnownNamesRepresentPrefixes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := dir + "/" + name
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	objects := write("objects.yaml", strings.ReplaceAll(prefixPolicy, "\t", "  "))
	names := write("names", "# seen\ntrnv1:rsc:trip-com:iam:sa:app/team-a\n\ntrnv1:rsc:trip-com:iam:sa:app/other\n")
	_, without, _ := run(t, "", "render", "-f", "testdata/diff/old/classes.yaml", "-f", objects)
	_, with, errs := run(t, "", "render", "-f", "testdata/diff/old/classes.yaml", "-f", objects, "--known-names", names)
	if strings.Contains(without, "team-a") || !strings.Contains(with, "- team-a\n") || strings.Contains(with, "other\n") {
		t.Errorf("with known names:\n%s%s\nwithout:\n%s", with, errs, without)
	}
}

const prefixPolicy = `apiVersion: acp.io/v1alpha1
kind: ProtectedResource
metadata: {name: bobs-cluster}
spec: {resource: "trnv1:rsc:trip-com:redis:clusters:bobs-cluster", mode: Enforce}
---
apiVersion: acp.io/v1alpha1
kind: AccessControlPolicy
metadata: {name: grants}
spec:
	statements:
	- {sid: team, effect: Allow, subjects: ["trnv1:rsc:trip-com:iam:sa:app/team-*"], actions: ["redis:connect"], ` +
	`resources: ["trnv1:rsc:trip-com:redis:clusters:bobs-cluster"]}
`
