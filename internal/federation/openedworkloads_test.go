package federation

import (
	"testing"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestOpened(t *testing.T) {
	const key = "com.trip/grpc"
	fraud := map[string]string{key: "fraud", "app": "fraud", namespaceKey: "pay"}
	risk := map[string]string{key: "risk", "app": "risk", namespaceKey: "pay"}
	web := map[string]string{"app": "web", namespaceKey: "web"}
	// Istio's class has an enforcer that takes the key into identities; the other one has none.
	cilium, alone := map[string]bool{key: true}, map[string]bool{key: false}
	for _, c := range []struct {
		reason, policy string
		keys           map[string]bool
		identities     []map[string]string
		fraud, risk    bool
	}{
		{"the pods of one are there, and it selects them", "{selector: {matchLabels: {app: fraud}}, rules: [{}]}", cilium, []map[string]string{fraud, risk}, true, false},
		{"all in the namespace", "{rules: [{}]}", cilium, []map[string]string{fraud, risk}, true, true},
		{"only those that are there", "{rules: [{}]}", cilium, []map[string]string{risk, web}, false, true},
		{"by a label that others have", "{selector: {matchLabels: {app: web}}, rules: [{}]}", cilium, []map[string]string{fraud, risk, web}, false, false},
		{"by one that no identity has", "{selector: {matchLabels: {version: v1}}, rules: [{}]}", cilium, []map[string]string{fraud, web}, true, false},
		{"identities without namespaces do not tell where their pods are", "{rules: [{}]}", cilium, []map[string]string{{key: "fraud"}}, true, false},
		{"without identities it may be any that the selector does not rule out", "{selector: {matchLabels: {com.trip/grpc: fraud}}, rules: [{}]}", cilium, nil, true, false},
		{"any", "{selector: {matchLabels: {app: web}}, rules: [{}]}", cilium, nil, true, true},
		{"pods of the class would have identities with the key", "{rules: [{}]}", cilium, []map[string]string{web}, false, false},
		{"pods of the class may be there all the same", "{rules: [{}]}", alone, []map[string]string{web}, true, true},
		{"the key is in identities, whoever put it there", "{rules: [{}]}", alone, []map[string]string{web, risk}, false, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(c.policy), &spec); err != nil {
				t.Fatal(err)
			}
			u.Object["spec"] = spec
			u.SetKind(IstioPolicy.Target.Kind)
			u.SetNamespace("pay")
			u.SetName("theirs")
			o, err := parseOpening(u)
			if err != nil {
				t.Fatal(err)
			}
			found := FindOpened([]Opening{o}, c.keys, func(do func([]Handle)) {
				for _, identity := range c.identities {
					var labels []Handle
					for k, v := range identity {
						labels = append(labels, unique.Make(Label{Key: k, Value: v}))
					}
					do(labels)
				}
			})
			for value, want := range map[string]bool{"fraud": c.fraud, "risk": c.risk} {
				by := ""
				if want {
					by = "AuthorizationPolicy pay/theirs"
				}
				if got := found.By(key, value); got != by {
					t.Errorf("%s is opened by %q, want %q", value, got, by)
				}
			}
			if by := found.By("another/key", "fraud"); by != "" || !found.Equal(found) || found.Equal(Opened{}) {
				t.Errorf("of no class, and opened by %q", by)
			}
		})
	}
}
