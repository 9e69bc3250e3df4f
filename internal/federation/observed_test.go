package federation

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/message"
)

// TestWrittenByAnAgent checks that an object counts as written by a work agent as long as it has the label, whoever else changed it.
func TestWrittenByAnAgent(t *testing.T) {
	revision := Revision(func(map[string]any) string { return "r" })
	for _, labels := range []map[string]string{nil, {LabelWorkAgent: "true"}} {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "acp-x"}}}
		u.SetLabels(labels)
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "work", Time: &metav1.Time{Time: time.Unix(1, 0)}}})
		if o, err := revision.parse(u); err != nil || o.WrittenDirectly != (labels != nil) {
			t.Errorf("with the labels %v: written by another engine than KubeFed is %v, %v", labels, o.WrittenDirectly, err)
		}
	}
}

func TestRevisionCoversWhateverIsEnforced(t *testing.T) {
	asText := Revision(func(spec map[string]any) string {
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	})
	for _, c := range []struct {
		reason, object string
		same           bool
	}{
		{"as ACP wrote it", `{"metadata":{"name":"x"},"spec":{"a":1}}`, true},
		{"the dataplane's own word", `{"metadata":{"name":"x"},"spec":{"a":1},"status":{"b":1}}`, true},
		{"another spec", `{"metadata":{"name":"x"},"spec":{"a":2}}`, false},
		{"rules beside the spec", `{"metadata":{"name":"x"},"spec":{"a":1},"specs":[{"ingress":[{"fromEntities":["all"]}]}]}`, false},
		{"no spec", `{"metadata":{"name":"x"}}`, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(c.object), &u.Object); err != nil {
				t.Fatal(err)
			}
			got, err := asText.parse(u)
			if err != nil || (got.Revision == `{"a":1}`) != c.same {
				t.Errorf("revision %s, %v", got.Revision, err)
			}
		})
	}
}

// A policy counts as taken unless the operator says anything but that it is.
func TestPolicyThatTheOperatorDoesNotTake(t *testing.T) {
	for _, c := range []struct{ reason, status, want string }{
		{"nobody has said anything", `{}`, ""},
		{"it is taken", `{"conditions":[{"type":"Valid","status":"True","message":"Policy validation succeeded"}]}`, ""},
		{"it is not", `{"conditions":[{"type":"Valid","status":"False","message":"L7 rules are not supported"}]}`, "L7 rules are not supported"},
		{"it is unknown whether it is", `{"conditions":[{"type":"Valid","status":"Unknown","message":"not parsed"}]}`, "not parsed"},
		{"the status is missing", `{"conditions":[{"type":"Valid"}]}`, "cilium-operator does not accept the policy, and does not say why"},
		{"another condition", `{"conditions":[{"type":"Other","status":"False","message":"x"}]}`, ""},
	} {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"x"},"status":`+c.status+`}`), &u.Object); err != nil {
			t.Fatal(err)
		}
		if got := invalid(u); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestStatusOfIstio checks that errors of istiod's analysis make a policy invalid, and that its report about ztunnel is read.
func TestStatusOfIstio(t *testing.T) {
	asText := Revision(func(map[string]any) string { return "" })
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"metadata":{"name":"x","generation":2},"spec":{"action":"ALLOW"},"status":{
		"conditions":[{"type":"ZtunnelAccepted","status":"True","reason":"Accepted","observedGeneration":"2"}],
		"validationMessages":[{"level":"ERROR","type":{"code":"IST0106","name":"SchemaValidationError"}}]}}`), &u.Object); err != nil {
		t.Fatal(err)
	}
	got, err := asText.parse(u)
	if err != nil || !got.Ztunnel.Reported || got.Ztunnel.Problem != "" || got.Invalid != "IST0106 SchemaValidationError" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestDryRunIsNotAccepted checks that a policy that Istio only records does not count as enforced.
func TestDryRunIsNotAccepted(t *testing.T) {
	revision := Revision(func(map[string]any) string { return "r" })
	for _, c := range []struct {
		kind, annotation string
		invalid          bool
	}{
		{"AuthorizationPolicy", "true", true},
		{"AuthorizationPolicy", "1", true},
		{"AuthorizationPolicy", "false", false},
		{"AuthorizationPolicy", "no", false}, // Istio ignores what it cannot parse
		{"AuthorizationPolicy", "", false},
		{"CiliumNetworkPolicy", "true", false},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": c.kind}}
		u.SetAnnotations(map[string]string{"istio.io/dry-run": c.annotation})
		got, err := revision.parse(u)
		if err != nil || (got.Invalid == message.RejectionDryRun().Text) != c.invalid {
			t.Errorf("%s with %q: %q, %v", c.kind, c.annotation, got.Invalid, err)
		}
		if c.invalid && message.Recognize(got.Invalid, "rejection").Code != "rejection.dry-run" {
			t.Errorf("%q is not recognized", got.Invalid)
		}
	}
}
