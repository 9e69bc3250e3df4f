package rules

import (
	"bytes"
	"os"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
)

// The playground's own policies must say what their comments say.
func TestDemoPolicies(t *testing.T) {
	data, err := os.ReadFile("../../../playground/demo/objects/approvals.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]*Policy{}
	for _, document := range bytes.Split(data, []byte("\n---\n")) {
		o := &v1alpha1.ApprovalPolicy{}
		if err := yaml.UnmarshalStrict(document, o); err != nil {
			t.Fatal(err)
		}
		p, problems := Compile(o)
		if len(problems) > 0 || len(p.Warnings()) > 0 {
			t.Errorf("%s: %v %v", o.Name, problems, p.Warnings())
		}
		policies[o.Name] = p
	}
	staging := Entity{ID: "s", Environment: "staging", Sensitivity: "low"}
	for name, tc := range map[string]struct {
		reason       string
		request      Request
		policy       string
		matches, yes bool
	}{
		"Staging": {"for trying out, soon over", Request{Kind: "grant", Resource: staging, Duration: 24 * time.Hour}, "for-trying-out", true, true},
		"TooLong": {
			"somebody is asked for more than a week",
			Request{Kind: "grant", Resource: staging, Duration: 169 * time.Hour}, "for-trying-out", true, false,
		},
		"Permanent": {"what does not end is not for trying out", Request{Kind: "grant", Resource: staging, Permanent: true}, "for-trying-out", true, false},
		"Production": {
			"production is not for trying out",
			Request{Kind: "grant", Resource: Entity{Environment: "production", Sensitivity: "low"}}, "for-trying-out", false, false,
		},
		"HighInStaging": {
			"nor is what is sensitive", Request{Kind: "grant", Resource: Entity{Environment: "staging", Sensitivity: "high"}},
			"for-trying-out", false, false,
		},
		"High": {"two of security", Request{Kind: "grant", Resource: Entity{Sensitivity: "high"}}, "highly-sensitive", true, false},
		"Mode": {"a mode is no grant", Request{Kind: "mode", Resource: Entity{Sensitivity: "high"}}, "highly-sensitive", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := policies[tc.policy]
			matches, err := p.Matches(&tc.request)
			if err != nil || matches != tc.matches {
				t.Errorf("%s: matches %v, %v", tc.reason, matches, err)
			}
			if !matches {
				return
			}
			if yes, err := p.Auto(0, &tc.request); err != nil || yes != tc.yes {
				t.Errorf("%s: approves by itself %v, %v", tc.reason, yes, err)
			}
		})
	}
}
