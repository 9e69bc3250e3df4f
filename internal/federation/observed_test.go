package federation

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
