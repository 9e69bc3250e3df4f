package ocm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

func recorded() *federation.Object {
	return &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x", UID: "u", Generation: 3},
		TemplateLabels: map[string]string{v1alpha1.LabelRevision: "r1"}, TemplateSpec: map[string]any{"a": "b"}, Placement: []string{"m1"}}
}

func desiredOf(t *testing.T, o *federation.Object, as purpose) desired {
	t.Helper()
	d, err := objectWork(o, "m1", as, "r1", "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// reported returns a ManifestWork of the object with a nonce, and a status.
func reported(t *testing.T, nonce, message, status, available, reason string, generation int64) *unstructured.Unstructured {
	t.Helper()
	d := desiredOf(t, recorded(), purposeApply)
	u := d.unstructured(nonce)
	u.SetGeneration(4)
	u.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{"type": "Applied", "status": "True", "observedGeneration": generation}},
		"resourceStatus": map[string]any{"manifests": []any{map[string]any{"conditions": []any{
			map[string]any{"type": "Applied", "status": "True"},
			map[string]any{"type": "Available", "status": available, "reason": reason},
			map[string]any{"type": conditionReport, "status": status, "message": message},
		}}}},
	}
	return u
}

func TestAReportCountsOnlyForTheVersionThatItWasComputedFor(t *testing.T) {
	const good = "n2|true|uid|7|r1|acp-adapter|true|"
	for _, c := range []struct {
		reason string
		work   *unstructured.Unstructured
		want   bool
	}{
		{"the agent compared this version", reported(t, "n2", good, "True", "True", "ResourceAvailable", 4), true},
		{"the report is about an earlier version", reported(t, "n3", good, "True", "True", "ResourceAvailable", 4), false},
		{"an earlier version may still be in flight", reported(t, "n2", good, "True", "True", "ResourceAvailable", 3), false},
		{"the object differs", reported(t, "n2", "n2|false|uid|7|r1|acp-adapter|true|", "False", "True", "ResourceAvailable", 4), false},
		{"the object was deleted after the report", reported(t, "n2", good, "True", "False", "ResourceNotAvailable", 4), false},
		{"the object cannot be read any more", reported(t, "n2", good, "True", "Unknown", "FetchingResourceFailed", 4), false},
		{"the comparison failed", reported(t, "n2", "no such key: spec", "False", "True", "ResourceAvailable", 4), false},
		{"message and status contradict each other", reported(t, "n2", good, "False", "True", "ResourceAvailable", 4), false},
	} {
		if w := parseWork(c.work); w.exact() != c.want {
			t.Errorf("%s: exact is %v: %+v %+v", c.reason, w.exact(), w, w.report)
		}
	}
}

// TestTextsOfTheMemberAreCut checks that every text that a member reports is cut to the length that the agent's expressions have, between characters.
func TestTextsOfTheMemberAreCut(t *testing.T) {
	long, want := strings.Repeat("é", 5*maxText), strings.Repeat("é", maxText)
	u := reported(t, "n2", strings.Join([]string{long, "true", long, long, long, long, long, long + "|" + long}, separator), "True", long, "", 4)
	manifest := u.Object["status"].(map[string]any)["resourceStatus"].(map[string]any)["manifests"].([]any)[0].(map[string]any)
	manifest["conditions"].([]any)[0] = map[string]any{"type": conditionApplied, "status": "False", "message": long}
	w := parseWork(u)
	if w.report == nil {
		t.Fatal("there is no report")
	}
	if diff := cmp.Diff(report{nonce: want, exact: true, uid: want, version: want, revision: want, managedBy: want, kubeFed: want, error: want}, *w.report,
		cmp.AllowUnexported(report{})); diff != "" {
		t.Error(diff)
	}
	if w.refused != want || w.available != want {
		t.Errorf("refused has %d bytes, available %d", len(w.refused), len(w.available))
	}
}

func TestAWorkThatOthersChangedIsWrittenAgain(t *testing.T) {
	d := desiredOf(t, recorded(), purposeApply)
	if u := d.unstructured("n1"); !d.matches(parseWork(u)) {
		t.Error("the same content, with a nonce, is another")
	}
	later := recorded()
	later.Meta.Generation++
	other := recorded()
	other.TemplateSpec = map[string]any{"a": "c"}
	next, different, held := desiredOf(t, later, purposeApply), desiredOf(t, other, purposeApply), desiredOf(t, recorded(), purposeHold)
	for reason, u := range map[string]*unstructured.Unstructured{
		"a later version of the record": next.unstructured("n1"),
		"another spec":                  different.unstructured("n1"),
		"the member was quarantined":    held.unstructured("n1"),
	} {
		if d.matches(parseWork(u)) {
			t.Errorf("%s: it counts as the same", reason)
		}
	}
	for reason, change := range map[string]func(spec map[string]any){
		"an option was added": func(spec map[string]any) {
			spec["deleteOption"] = map[string]any{"propagationPolicy": "Orphan"}
		},
		"the comparison was removed": func(spec map[string]any) { spec["manifestConfigs"] = []any{} },
	} {
		u := d.unstructured("n1")
		change(u.Object["spec"].(map[string]any))
		if d.matches(parseWork(u)) {
			t.Errorf("%s: it counts as the same", reason)
		}
	}
}

func TestOnlyWorksThatApplyChangeTheMember(t *testing.T) {
	for as, want := range map[purpose]string{purposeApply: "Update", purposeAdopt: "Update", purposeHold: "ReadOnly", purposeRead: "ReadOnly",
		purposeHeartbeat: "ReadOnly"} {
		d := desiredOf(t, recorded(), as)
		configs, _, _ := unstructured.NestedSlice(d.unstructured("n").Object, "spec", "manifestConfigs")
		if got, _, _ := unstructured.NestedString(configs[0].(map[string]any), "updateStrategy", "type"); got != want {
			t.Errorf("%s has the strategy %s, want %s", as, got, want)
		}
		if got := parseWork(d.unstructured("n")).readOnly; got != (want == "ReadOnly") {
			t.Errorf("%s: the strategy %s is parsed as read-only: %v", as, want, got)
		}
	}
	// The strategy counts, not the annotation, which does not keep the agent from writing.
	d := desiredOf(t, recorded(), purposeApply)
	u := d.unstructured("n")
	u.SetAnnotations(map[string]string{annotationPurpose: string(purposeHold)})
	if parseWork(u).readOnly {
		t.Error("a ManifestWork that lets the agent write counts as read-only because of its annotation")
	}
}
