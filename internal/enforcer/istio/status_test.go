package istio

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// read parses an object as the adapter reads it from a member.
func read(t *testing.T, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

// TestZtunnelStatus checks which reports of istiod mean that ztunnel gets the current version of a policy as it is written.
func TestZtunnelStatus(t *testing.T) {
	for _, c := range []struct {
		reason, action, conditions string
		want                       ZtunnelStatus
	}{
		{"istiod has not reported", "ALLOW", `[]`, ZtunnelStatus{}},
		{"ztunnel gets it", "ALLOW", `[{"type":"ZtunnelAccepted","status":"True","reason":"Accepted","observedGeneration":3}]`, ZtunnelStatus{Reported: true}},
		{
			"the generation is a text, as istiod's encoder writes it", "DENY",
			`[{"type":"Other","status":"False"},{"type":"ZtunnelAccepted","status":"True","reason":"Accepted","observedGeneration":"3"}]`,
			ZtunnelStatus{Reported: true},
		},
		{"the report is about an earlier version", "ALLOW", `[{"type":"ZtunnelAccepted","status":"False","observedGeneration":"2"}]`, ZtunnelStatus{}},
		{"the report names no version", "ALLOW", `[{"type":"ZtunnelAccepted","status":"True","reason":"Accepted"}]`, ZtunnelStatus{}},
		{
			"a part is left out", "ALLOW",
			`[{"type":"ZtunnelAccepted","status":"True","reason":"UnsupportedValue","message":"no HTTP","observedGeneration":"3"}]`,
			ZtunnelStatus{Reported: true, Problem: "no HTTP"},
		},
		{
			"it is rejected without a message", "DENY", `[{"type":"ZtunnelAccepted","status":"False","reason":"UnsupportedValue","observedGeneration":"3"}]`,
			ZtunnelStatus{Reported: true, Problem: "UnsupportedValue"},
		},
		{
			"it is rejected without a reason", "DENY", `[{"type":"ZtunnelAccepted","status":"False","observedGeneration":"3"}]`,
			ZtunnelStatus{Reported: true, Problem: "ZtunnelAccepted"},
		},
		{
			"a policy that decides nothing is missing nowhere", "AUDIT",
			`[{"type":"ZtunnelAccepted","status":"False","message":"ztunnel does not support the AUDIT action","observedGeneration":"3"}]`,
			ZtunnelStatus{Reported: true},
		},
	} {
		object := read(t, `{"metadata":{"generation":3},"spec":{"action":"`+c.action+`"},"status":{"conditions":`+c.conditions+`}}`)
		if got := ZtunnelStatusOf(object); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.reason, got, c.want)
		}
	}
	if got := ZtunnelStatusOf(nil); got != (ZtunnelStatus{}) {
		t.Errorf("nothing: %+v", got)
	}
}

// TestWaypointStatus checks which reports of istiod mean that the Gateway of a policy exists.
func TestWaypointStatus(t *testing.T) {
	const targets = `{"action":"ALLOW","targetRefs":[{"kind":"Gateway","name":"x"}]}`
	for _, c := range []struct {
		reason, spec, conditions string
		want                     WaypointStatus
	}{
		{"istiod has not reported", targets, `[]`, WaypointStatus{}},
		{"the Gateway exists", targets,
			`[{"type":"WaypointAccepted","status":"True","reason":"Accepted","observedGeneration":"3"}]`, WaypointStatus{Bound: true, Current: true}},
		{"it existed when istiod reported about an earlier version", targets,
			`[{"type":"WaypointAccepted","status":"True","reason":"Accepted","observedGeneration":"2"}]`, WaypointStatus{Bound: true}},
		{"only some targets exist", targets, `[{"type":"WaypointAccepted","status":"True","reason":"PartiallyInvalid","message":"some"}]`,
			WaypointStatus{Problem: "some"}},
		{"it does not", targets, `[{"type":"Other","status":"True"},
			{"type":"WaypointAccepted","status":"False","reason":"TargetNotFound","message":"not bound"}]`,
			WaypointStatus{Problem: "not bound"}},
		{"a policy of pods has no waypoint", `{"action":"ALLOW"}`, `[{"type":"WaypointAccepted","status":"True","reason":"Accepted"}]`, WaypointStatus{}},
	} {
		object := read(t, `{"metadata":{"generation":3},"spec":`+c.spec+`,"status":{"conditions":`+c.conditions+`}}`)
		if got := WaypointStatusOf(object); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.reason, got, c.want)
		}
		if got := ZtunnelStatusOf(object); c.spec == targets && got != (ZtunnelStatus{Reported: true}) {
			t.Errorf("%s: ztunnel does not get it, and %+v", c.reason, got)
		}
	}
}

// TestAnalysisError checks that only errors of istiod's analysis count.
func TestAnalysisError(t *testing.T) {
	for _, c := range []struct{ reason, messages, want string }{
		{"no analysis", `[]`, ""},
		{"a warning", `[{"level":"WARNING","type":{"code":"IST0127","name":"NoMatchingWorkloadsFound"}}]`, ""},
		{"an error", `[{"level":"ERROR","type":{"code":"IST0106","name":"SchemaValidationError"}}]`, "IST0106 SchemaValidationError"},
		{"two", `[{"level":"ERROR","type":{"code":"IST0106"}},{"level":"ERROR","type":{"code":"IST0101"}}]`, "IST0106, IST0101"},
	} {
		if got := AnalysisError(read(t, `{"status":{"validationMessages":`+c.messages+`}}`)); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
