package ocm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// compile compiles an expression with the limits of the agent (OCM v1.0.0, pkg/work/spoke/conditions/reader.go).
func compile(t *testing.T, expression string) cel.Program {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.Variable("result", cel.BoolType), cel.OptionalTypes(), ext.Strings())
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		t.Fatalf("an expression of %d bytes does not compile: %.400s", len(expression), err)
	}
	program, err := env.Program(ast, cel.CostLimit(celconfig.PerCallLimit))
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func evaluate(program cel.Program, object map[string]any, result bool) (any, error) {
	out, _, err := program.Eval(map[string]any{"object": object, "result": result})
	if err != nil {
		return nil, err
	}
	return out.Value(), nil
}

// isExact evaluates all expressions as the agent does: an error counts as false.
func isExact(programs []cel.Program, object map[string]any) bool {
	for _, p := range programs {
		if out, err := evaluate(p, object, false); err != nil || out != true {
			return false
		}
	}
	return true
}

// decoded returns a value as a client decodes it from JSON.
func decoded(t *testing.T, v any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func large(items, length int) map[string]any {
	var list []any
	for i := range items {
		list = append(list, map[string]any{"cidr": fmt.Sprintf("%0*d", length, i), "except": []any{"a"}})
	}
	return map[string]any{"name": "x", "list": list, "nested": map[string]any{"list": list}}
}

func TestExactlyRecognizesOnlyTheRecordedContent(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelRevision: "r1", federation.LabelKubeFed: "true"}
	special := map[string]any{"text": "a\"b'c\\d\n\t\u0001\u2028<&>é😀${x}", "number": 5, "fraction": 1.5, "negative": -7, "yes": true,
		"no": false, "empty": []any{}, "emptyMap": map[string]any{}, "mixed": []any{1, "a", map[string]any{"b": []any{}}}}
	for name, spec := range map[string]map[string]any{"special": special, "large": large(1100, 40), "huge elements": large(4, 50000), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			expressions, err := exactExpressions(spec, labels)
			if err != nil {
				t.Fatal(err)
			}
			var programs []cel.Program
			for _, e := range expressions {
				programs = append(programs, compile(t, e))
				if len(e) > 100000 {
					t.Errorf("an expression has %d bytes, which the agent refuses", len(e))
				}
			}
			object := func(change func(o, spec, labels map[string]any)) map[string]any {
				o := decoded(t, map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "x", "labels": labels,
					"ownerReferences": []any{map[string]any{"uid": "1"}}}, "spec": spec, "status": map[string]any{}})
				if change != nil {
					change(o, o["spec"].(map[string]any), o["metadata"].(map[string]any)["labels"].(map[string]any))
				}
				return o
			}
			if !isExact(programs, object(nil)) {
				t.Fatal("the recorded content is not recognized")
			}
			if !isExact(programs, object(func(_, _, labels map[string]any) { labels["other.io/label"] = "x" })) {
				t.Error("a label that nothing selects counts as a change")
			}
			for what, change := range map[string]func(o, spec, labels map[string]any){
				"another field in the spec":        func(_, spec, _ map[string]any) { spec["other"] = "x" },
				"no spec":                          func(o, _, _ map[string]any) { delete(o, "spec") },
				"another part beside the spec":     func(o, _, _ map[string]any) { o["specs"] = []any{} },
				"another revision label":           func(_, _, labels map[string]any) { labels[v1alpha1.LabelRevision] = "r2" },
				"no label of the adapter":          func(_, _, labels map[string]any) { delete(labels, v1alpha1.LabelManagedBy) },
				"no labels":                        func(o, _, _ map[string]any) { delete(o["metadata"].(map[string]any), "labels") },
				"a label that a policy may select": func(_, _, labels map[string]any) { labels["class.acp.io/x"] = "true" },
				"Istio's dry run": func(o, _, _ map[string]any) {
					o["metadata"].(map[string]any)["annotations"] = map[string]any{"istio.io/dry-run": "true"}
				},
			} {
				if isExact(programs, object(change)) {
					t.Errorf("%s is not recognized", what)
				}
			}
			for key, value := range spec {
				if isExact(programs, object(func(_, spec, _ map[string]any) { delete(spec, key) })) {
					t.Errorf("the missing field %s is not recognized", key)
				}
				list, ok := value.([]any)
				if !ok || len(list) == 0 {
					continue
				}
				for _, i := range []int{0, len(list) / 2, len(list) - 1} {
					if isExact(programs, object(func(_, spec, _ map[string]any) { spec[key].([]any)[i] = "other" })) {
						t.Errorf("another element %d of %s is not recognized", i, key)
					}
				}
				if isExact(programs, object(func(_, spec, _ map[string]any) { spec[key] = append(spec[key].([]any), "more") })) {
					t.Errorf("one more element of %s is not recognized", key)
				}
			}
		})
	}
}

func TestExactlyRefusesTextThatNoExpressionCanHave(t *testing.T) {
	if _, err := exactExpressions(map[string]any{"text": strings.Repeat("x", maxExpression+1)}, nil); err == nil {
		t.Error("it is accepted")
	}
}

func TestReportHasBoundedSizeAndTheNonce(t *testing.T) {
	object := decoded(t, map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": "7", "labels": map[string]string{
		v1alpha1.LabelRevision: "r1", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, federation.LabelKubeFed: "true"}},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Valid", "status": "False", "message": strings.Repeat("é|", 50000)}}}})
	out, err := evaluate(compile(t, reportMessage("n1")), object, true)
	if err != nil {
		t.Fatal(err)
	}
	message, _ := out.(string)
	if len([]rune(message)) > 32768 {
		t.Errorf("the message has %d characters, which the host refuses", len([]rune(message)))
	}
	r, ok := parseReport(message)
	want := report{nonce: "n1", exact: true, uid: "u", version: "7", revision: "r1", managedBy: v1alpha1.ManagedBy, kubeFed: "true", error: r.error}
	if !ok || r != want || len([]rune(r.error)) != maxText {
		t.Errorf("got %+v (%v)", r, ok)
	}
	bare := decoded(t, map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": "7"}})
	if out, err = evaluate(compile(t, reportMessage("n2")), bare, false); err != nil || out != "n2|false|u|7||||" {
		t.Errorf("an object without labels and status: got %v, %v", out, err)
	}
	silent := decoded(t, map[string]any{"metadata": map[string]any{"uid": "u", "resourceVersion": "7"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Valid", "status": "False"}, map[string]any{"type": "Other", "status": "False"}}}})
	if out, err = evaluate(compile(t, reportMessage("n3")), silent, true); err != nil || out != "n3|true|u|7||||"+noReason {
		t.Errorf("a rejection without a message: got %v, %v", out, err)
	}
	if _, ok := parseReport("no such key: spec"); ok {
		t.Error("the text of an error is a report")
	}
}
