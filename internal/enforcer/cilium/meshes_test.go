package cilium

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// A member that would miss a denied subject denies every address the ports, beside what the unit says; only in Enforce.
func TestMembersOfOtherMeshesDenyAllAddresses(t *testing.T) {
	tcp := []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}
	u := policy.Unit{
		ID:           "x",
		Resource:     "r",
		LabelKey:     "k",
		LabelValue:   "v",
		Mode:         v1alpha1.ModeEnforce,
		ClusterModes: map[string]v1alpha1.Mode{"m3": v1alpha1.ModeAudit},
		Rules: []policy.Rule{
			{Effect: policy.Allow, Anyone: true, Ports: tcp}, {Effect: policy.Allow, Anyone: true, Ports: tcp, HTTP: []v1alpha1.HTTPMatch{{Method: "GET"}}},
			{Effect: policy.Deny, Subjects: []policy.SubjectSelector{{LabelKey: "a", Values: []string{"1"}}}, Ports: tcp}},
	}
	e := Enforcer{Members: map[string]Member{"m1": {}, "m2": {}, "m3": {}, "m4": {NoHTTP: message.Verbatim("off")}}}.
		DenyingAddresses(map[string][]v1alpha1.Port{"m2": tcp, "m3": tcp, "m4": tcp})
	r, err := e.Render(u)
	if err != nil {
		t.Fatal(err)
	}
	const all = `"fromCIDRSet":[{"cidr":"0.0.0.0/0"},{"cidr":"::/0"}]`
	for member, want := range map[string]bool{"m1": false, "m2": true, "m3": false, "m4": true} {
		spec, ok := r.Objects[0].Overrides[member]
		if !ok {
			spec = r.Objects[0].Object.Spec
		}
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), all); got != want {
			t.Errorf("%s denies all addresses: %v\n%s", member, got, text)
		}
		if http := strings.Contains(string(text), `"http"`); http != (member == "m1" || member == "m2") {
			t.Errorf("%s has rules about requests: %v", member, http)
		}
	}
}
