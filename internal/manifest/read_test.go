package manifest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const goodClass = `apiVersion: acp.io/v1alpha1
kind: SubjectClass
metadata:
  name: application
spec:
  pattern: trnv1:rsc:trip-com:iam:sa:app/*
  labelKey: com.trip/appid
`

const goodPolicy = `apiVersion: acp.io/v1alpha1
kind: AccessControlPolicy
metadata:
  name: grants
spec:
  statements:
  - sid: one
    effect: Allow
    subjects: ["trnv1:rsc:trip-com:iam:sa:app/888"]
    actions: ["redis:connect"]
    resources: ["trnv1:rsc:trip-com:redis:clusters:bobs-cluster"]
`

func read(t testing.TB, r *Reader, text string) *Set {
	t.Helper()
	r.Stdin = strings.NewReader(text)
	s, err := r.Read(context.Background(), "-")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func issues(s *Set) []string {
	var out []string
	for _, i := range s.Issues {
		out = append(out, i.String())
	}
	return out
}

func TestIssues(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		strict bool
		want   []string
		failed bool
	}{
		"Good": {reason: "two documents, comments between them", text: "# first\n" + goodClass + "---\n# nothing\n---\n" + goodPolicy},
		"BadYAML": {reason: "the line is the file's, not the document's", failed: true,
			text: goodClass + "---\nkind: [\n", want: []string{"-:9 (document 2): not YAML: yaml: line 9: did not find expected node content"}},
		"DuplicateKey": {reason: "the second would win silently", failed: true,
			text: goodClass + "kind: ResourceClass\n", want: []string{`-:8 (document 1): not YAML: yaml: unmarshal errors:
  line 8: key "kind" already set in map`}},
		"NotAMap": {reason: "a list is no object", failed: true, text: "- a\n",
			want: []string{"-:1 (document 1): not an object: a document must be a map with apiVersion and kind"}},
		"NoKind": {reason: "nothing says what it is", failed: true, text: "\nmetadata: {name: x}\n",
			want: []string{"-:2 (document 1): apiVersion and kind must be set"}},
		"OtherGroup": {reason: "a folder may hold other things", text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
			want: []string{"-:1 (document 1): warning: ConfigMap/x: v1 is not one of ACP's kinds and is ignored"}},
		"OtherGroupStrict": {reason: "strict wants nothing else", strict: true, failed: true, text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
			want: []string{"-:1 (document 1): ConfigMap/x: v1 is not one of ACP's kinds and is ignored"}},
		"UnknownKind": {reason: "a misspelt kind is reported", text: strings.Replace(goodClass, "SubjectClass", "SubjectKlass", 1),
			want: []string{"-:1 (document 1): warning: SubjectKlass/application: acp.io/v1alpha1 has no such kind; it is ignored"}},
		"OtherVersion": {reason: "it would be ignored although it means something", failed: true, text: strings.Replace(goodClass, "v1alpha1", "v1", 1),
			want: []string{"-:1 (document 1): SubjectClass/application: acp.io/v1 is not served: write acp.io/v1alpha1"}},
		"DuplicateName": {reason: "which of them counts is not said", failed: true, text: goodClass + "---\n" + goodClass,
			want: []string{"-:9 (document 2): SubjectClass/application: the same name is already at -:1 (document 1): names are unique per kind"}},
		"UnknownField": {
			reason: "a misspelt field would mean nothing",
			failed: true,
			text:   strings.Replace(goodPolicy, "    effect", "    notafter: x\n    effect", 1),
			want: []string{
				"-:8 (document 1): AccessControlPolicy/grants: spec.statements[0].notafter: Forbidden: unknown field: correct its name or its indentation",
			},
		},
		"BadName": {reason: "the schema's pattern", failed: true, text: strings.Replace(goodPolicy, "app/888", "a*b", 1),
			want: []string{"-:9 (document 1): AccessControlPolicy/grants: spec.statements[0].subjects[0]: Invalid value: \"trnv1:rsc:trip-com:iam:sa:a*b\""}},
		"CEL": {reason: "the rules of the CRD are evaluated", failed: true,
			text: strings.Replace(goodPolicy, "    effect", "    notBefore: \"2026-01-02T00:00:00Z\"\n    notAfter: \"2026-01-01T00:00:00Z\"\n    effect", 1),
			want: []string{"-:7 (document 1): AccessControlPolicy/grants: spec.statements[0]: Invalid value: notAfter must be later than notBefore"}},
		"SameSID": {reason: "list maps have unique keys", failed: true, text: goodPolicy + goodPolicy[strings.Index(goodPolicy, "  - sid"):],
			want: []string{"-:12 (document 1): AccessControlPolicy/grants: spec.statements[1]: Duplicate value: {\"sid\":\"one\"}"}},
		"NoName": {reason: "an API server would refuse it", failed: true, text: strings.Replace(goodClass, "name: application", "labels: {}", 1),
			want: []string{"-:4 (document 1): SubjectClass/: metadata.name: Required value: every object needs a name"}},
		"JSONStream": {
			reason: "each value counts, as with kubectl",
			failed: true,
			text: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}` + "\n" +
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}} {"kind":"x"}` + "\n",
			want: []string{
				"-:1 (document 1): warning: ConfigMap/a: v1 is not one of ACP's kinds and is ignored",
				"-:2 (document 2): warning: ConfigMap/b: v1 is not one of ACP's kinds and is ignored",
				"-:2 (document 3): x/: apiVersion and kind must be set",
			},
		},
		"JSONKeyTwice": {reason: "the second would win silently", failed: true, text: `{"apiVersion":"v1","kind":"ConfigMap","kind":"Secret"}`,
			want: []string{`-:1 (document 1): not JSON: duplicate field "kind"`}},
		"JSONThenText": {
			reason: "what follows the object is read or refused",
			failed: true,
			text:   "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\nkind: AccessControlPolicy\n",
			want:   []string{"-:1 (document 1): not YAML: text follows the end of the document: begin another document with a line ---"},
		},
		"AfterDocumentEnd": {reason: "three dots end a document, not the file", failed: true, text: goodClass + "...\n" + goodPolicy,
			want: []string{"-:1 (document 1): not YAML: text follows the end of the document: begin another document with a line ---"}},
		"CarriageReturns": {
			reason: "they end lines, also those of comments",
			failed: true,
			text:   "# comment\r" + strings.ReplaceAll(goodClass, "\n", "\r") + "---\rkind: x\r",
			want:   []string{"-:10 (document 2): x/: apiVersion and kind must be set"},
		},
		"LineSeparator": {reason: "it ends a comment, as in the YAML parser", failed: true, text: "# comment\u2028kind: x\n",
			want: []string{"-:1 (document 1): x/: apiVersion and kind must be set"}},
		"UTF16": {reason: "it looks empty to who reads bytes", failed: true, text: "\xff\xfea\x00:\x00 \x001\x00\n\x00",
			want: []string{"-:1: not UTF-8 but UTF-16 or UTF-32: convert the file to UTF-8"}},
		"UTF16WithoutMark": {
			reason: "zero bytes are no text",
			failed: true,
			text:   "a: 1\n\x00b",
			want:   []string{"-:2: it contains a zero byte: objects are read as UTF-8 text"},
		},
		"Latin1": {
			reason: "bytes that are no text",
			failed: true,
			text:   "a: 1\nb: \xe9\n",
			want:   []string{"-:2: not UTF-8: convert the file to UTF-8"},
		},
		"ByteOrderMark": {reason: "editors write it", text: "\ufeff" + goodClass},
		"Aliases": {
			reason: "a small file must not take all memory",
			failed: true,
			text: "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
				"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
			want: []string{"-:1 (document 1): not YAML: its aliases expand to more than the document may have: write the parts out"},
		},
		"NoTypeNames": {reason: "people do not know the types of the program", failed: true, text: strings.Replace(goodClass, "\nspec:", "\nspec: []\nx:", 1),
			want: []string{"-:5 (document 1): SubjectClass/application: spec: Invalid value: \"array\": spec in body must be of type object: \"array\"",
				"-:7 (document 1): SubjectClass/application: x: Forbidden: unknown field: correct its name or its indentation"}},
		"List": {
			reason: "what kubectl get -o yaml prints",
			failed: true,
			text:   "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n- x\n",
			want: []string{
				"-:4 (document 1): warning: Secret/s: v1 is not one of ACP's kinds and is ignored",
				"-:7 (document 1): item 2 of the list is not an object",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := read(t, &Reader{Strict: tc.strict}, tc.text)
			got := issues(s)
			for i := range got { // Messages of the schema continue with the pattern.
				if i < len(tc.want) && strings.HasPrefix(got[i], tc.want[i]) {
					got[i] = tc.want[i]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || s.Failed() != tc.failed {
				t.Errorf("%s: failed %v, want %v; issues -want +got:\n%s", tc.reason, s.Failed(), tc.failed, diff)
			}
		})
	}
}

func TestPositionsOfStatements(t *testing.T) {
	s := read(t, &Reader{}, goodClass+"---\n"+goodPolicy)
	want := Position{File: "-", Document: 2, Line: 15}
	if got := s.PositionOfStatement(policy.Ref{Policy: "grants", SID: "one"}); got != want {
		t.Errorf("a statement is at %v, want %v", got, want)
	}
	if got := s.PositionOfStatement(policy.Ref{Policy: "grants", SID: "gone"}); got != (Position{File: "-", Document: 2, Line: 9}) {
		t.Errorf("an unknown statement is at %v, want its policy's place", got)
	}
}

func TestDefaultsAreThoseOfTheSchema(t *testing.T) {
	s := read(t, &Reader{}, `apiVersion: acp.io/v1alpha1
kind: ResourceClass
metadata: {name: redis}
spec:
  pattern: trnv1:rsc:trip-com:redis:clusters:*
  labelKey: com.trip/redis-cluster
  actions: [{name: "redis:connect", ports: [{port: 6379}]}]
  placement: {clusterSelector: {}}
`)
	if len(s.Issues) > 0 || len(s.Input.ResourceClasses) != 1 {
		t.Fatalf("issues %v, want none", s.Issues)
	}
	spec := s.Input.ResourceClasses[0].Spec
	if spec.Actions[0].Ports[0].Protocol != "TCP" || spec.OtherPorts != "Deny" || len(spec.Enforcers) != 1 {
		t.Errorf("spec = %+v: the API server's defaults are not there", spec)
	}
}

// writeFiles writes files into a new folder and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadFolders(t *testing.T) {
	dir := writeFiles(t, map[string]string{"class.yaml": goodClass, "sub/policy.yml": goodPolicy, "notes.txt": "not yaml: [", ".gitignore": "not yaml: ["})
	s, err := (&Reader{}).Read(context.Background(), dir, filepath.Join(dir, "class.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Issues) > 0 || len(s.Input.Policies) != 1 || len(s.Input.SubjectClasses) != 1 {
		t.Errorf("read %+v with issues %v, want one class (though named twice) and one policy", s.Input, s.Issues)
	}
	if _, err := (&Reader{}).Read(context.Background(), filepath.Join(dir, "none")); err == nil {
		t.Error("a path that is not there is read without an error")
	}
}

// TestReadFoldersAsKubectl checks that the files of a folder that `kubectl apply -R -f` applies are read. It selects them by their extension
// alone: what it applied and lint did not read would be an access that nobody reviewed.
func TestReadFoldersAsKubectl(t *testing.T) {
	files := map[string]string{
		"class.yaml":   goodClass,
		".hidden.yaml": goodPolicy,
		".yml":         strings.Replace(goodPolicy, "grants", "nameless", 1),
		".hidden/policy.yaml": strings.Replace(
			goodPolicy,
			"grants",
			"in-hidden-folder",
			1,
		),
		"sub/..policy.json": `{"apiVersion": "v1", "kind": "List", "items": []}`,
	}
	dir := writeFiles(t, files)
	got, err := expand(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for name := range files {
		want = append(want, filepath.Join(dir, name))
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("other files than kubectl applies (-kubectl, +read):\n%s", d)
	}
	s, err := (&Reader{}).Read(context.Background(), dir)
	if err != nil || len(s.Issues) > 0 || len(s.Input.Policies) != 3 {
		t.Errorf("read %d policies with issues %v, want 3: %v", len(s.Input.Policies), s.Issues, err)
	}
}

// TestReadLinks checks that links are read as kubectl reads them, and that a file with several names is read once: in the mount of a ConfigMap,
// each file is a link into a hidden folder.
func TestReadLinks(t *testing.T) {
	dir := writeFiles(t, map[string]string{"..2026_01_01/class.yaml": goodClass})
	for link, target := range map[string]string{"..data": "..2026_01_01", "class.yaml": "..data/class.yaml"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := (&Reader{}).Read(context.Background(), dir)
	if err != nil || len(s.Issues) > 0 || len(s.Input.SubjectClasses) != 1 {
		t.Errorf("read %+v with issues %v, want one class: %v", s.Input, s.Issues, err)
	}
	if s, err := (&Reader{}).Read(context.Background(), filepath.Join(dir, "..data")); err == nil {
		t.Errorf("a link to a folder is read without an error, as %+v: its objects are missing", s.Input)
	}
	if s, err := (&Reader{}).Read(context.Background(), filepath.Join(dir, "..data")+"/"); err != nil || len(s.Input.SubjectClasses) != 1 {
		t.Errorf("read %+v through a link that ends in a slash: %v", s.Input, err)
	}
}

func TestOver(t *testing.T) {
	base := read(t, &Reader{}, goodClass+"---\n"+goodPolicy)
	top := read(t, &Reader{}, strings.Replace(goodPolicy, "sid: one", "sid: two", 1))
	got := base.Over(top)
	if len(got.Input.Policies) != 1 || got.Input.Policies[0].Spec.Statements[0].SID != "two" || len(got.Input.SubjectClasses) != 1 {
		t.Errorf("got %+v, want the class of the base and the policy of the top", got.Input)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(goodClass + "---\n" + goodPolicy)
	f.Add("--- {a: b}\n---\n...\n")
	f.Add("kind: List\napiVersion: v1\nitems: [1, {kind: List, apiVersion: v1, items: []}]\n")
	f.Add("a: &a [*a]\n")
	f.Add("{\"a\":1}{\"b\":2}\n[1]")
	f.Add("{a: b} c\n...\nd: e\r---\rf: g")
	f.Add("%YAML 1.2\n---\n- \xff")
	r := &Reader{}
	f.Fuzz(func(t *testing.T, text string) {
		s := read(t, r, text)
		lines := 1
		for _, end := range []string{"\n", "\r", "\u2028", "\u2029", "\u0085"} {
			lines += strings.Count(text, end)
		}
		for _, i := range s.Issues {
			if i.Position.Line < 1 || i.Position.Line > lines+1 || i.Message.IsZero() {
				t.Errorf("issue %v of %d lines", i, lines)
			}
		}
		policy.NewSnapshot(s.Input)
	})
}

// TestIssuesInChinese checks that issues are messages that can be rendered in another language, except the words of parsers and schemas.
func TestIssuesInChinese(t *testing.T) {
	for text, want := range map[string]string{
		"\nmetadata: {name: x}\n": "-:2 (document 1): 须设置 apiVersion 和 kind",
		goodClass + "...\na: 1\n": "-:1 (document 1): 不是 YAML：文档结束之后还有文本：请用一行 --- 开始另一个文档",
		"kind: [\n":               "-:1 (document 1): 不是 YAML：yaml: line 1: did not find expected node content",
		strings.Replace(goodClass, "\nspec:", "\nx: 1\nspec:", 1): "-:5 (document 1): SubjectClass/application: x：未知的字段：请更正其名称或缩进",
	} {
		s := read(t, &Reader{}, text)
		if len(s.Issues) == 0 || s.Issues[0].Render(message.Chinese) != want {
			t.Errorf("%q has the issues %v, want %q in Chinese", text, s.Issues, want)
		}
	}
}
