package manifest

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/testenv"
)

// TestJudgesAsAnAPIServerDoes checks that the reader refuses exactly what an API server refuses, in the same fields.
func TestJudgesAsAnAPIServerDoes(t *testing.T) {
	server := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/crds"}})
	client, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	const (
		class = "resourceclasses"
		grant = "accesscontrolpolicies"
	)
	goodResourceClass := `apiVersion: acp.io/v1alpha1
kind: ResourceClass
metadata: {name: redis}
spec:
  pattern: "trnv1:rsc:trip-com:redis:clusters:*"
  labelKey: com.trip/redis-cluster
  actions: [{name: "redis:connect", ports: [{port: 6379, protocol: TCP}]}]
  placement: {clusterSelector: {}}
`
	cases := map[string]struct{ resource, text, from, to string }{
		"Good":           {class, goodResourceClass, "", ""},
		"GoodGrant":      {grant, goodPolicy, "", ""},
		"Range":          {class, goodResourceClass, "port: 6379", "port: 6379, endPort: 6380"},
		"RangeBackwards": {class, goodResourceClass, "port: 6379", "port: 6379, endPort: 6378"},
		"BothPlacements": {class, goodResourceClass, "clusterSelector: {}", "clusterSelector: {}, clusters: [m1]"},
		"NoPlacement":    {class, goodResourceClass, "clusterSelector: {}", ""},
		"HTTPOverUDP":    {class, goodResourceClass, "protocol: TCP}]", `protocol: UDP}], http: [{method: GET}]`},
		"EmptyHTTP":      {class, goodResourceClass, "protocol: TCP}]", `protocol: TCP}], http: [{}]`},
		"Port0":          {class, goodResourceClass, "port: 6379", "port: 0"},
		"TextPort":       {class, goodResourceClass, "port: 6379", `port: "6379"`},
		"NoWildcard":     {class, goodResourceClass, "clusters:*", "clusters:a"},
		"NoActions":      {class, goodResourceClass, `[{name: "redis:connect", ports: [{port: 6379, protocol: TCP}]}]`, "[]"},
		"SameSubject":    {grant, goodPolicy, `app/888"]`, `app/888", "trnv1:rsc:trip-com:iam:sa:app/888"]`},
		"BadEffect":      {grant, goodPolicy, "effect: Allow", "effect: Permit"},
		"BadSID":         {grant, goodPolicy, "sid: one", "sid: -one"},
		"NoSID":          {grant, goodPolicy, "sid: one", "notAfter: null"},
		"BackwardsInTime": {
			grant,
			goodPolicy,
			"effect: Allow",
			"effect: Allow\n    notBefore: \"2026-01-02T00:00:00Z\"\n    notAfter: \"2026-01-01T00:00:00Z\"",
		},
		"BadInstant":    {grant, goodPolicy, "effect: Allow", "effect: Allow\n    notAfter: tomorrow"},
		"BadObjectName": {grant, goodPolicy, "name: grants", "name: Grants"},
		"UnknownField":  {grant, goodPolicy, "effect: Allow", "effect: Allow\n    until: never"},
		"NoStatements":  {grant, "apiVersion: acp.io/v1alpha1\nkind: AccessControlPolicy\nmetadata: {name: empty}\nspec: {}\n", "", ""},
		"NoSpec":        {grant, "apiVersion: acp.io/v1alpha1\nkind: AccessControlPolicy\nmetadata: {name: empty}\n", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := tc.text
			if tc.from != "" {
				text = strings.Replace(text, tc.from, tc.to, 1)
				if text == tc.text {
					t.Fatalf("%q is not there", tc.from)
				}
			}
			var object map[string]any
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			_, served := client.Resource(v1alpha1.GroupVersion.WithResource(tc.resource)).
				Create(context.Background(), &unstructured.Unstructured{Object: object},
					metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			read := read(t, &Reader{}, text)
			if (served != nil) != read.Failed() {
				t.Errorf("the API server says %v, the reader %v", served, issues(read))
			}
		})
	}
}
