package federation

import (
	"testing"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{
			"the pods of one are there, and it selects them", "{selector: {matchLabels: {app: fraud}}, rules: [{}]}",
			cilium, []map[string]string{fraud, risk}, true, false,
		},
		{"all in the namespace", "{rules: [{}]}", cilium, []map[string]string{fraud, risk}, true, true},
		{"only those that are there", "{rules: [{}]}", cilium, []map[string]string{risk, web}, false, true},
		{"by a label that others have", "{selector: {matchLabels: {app: web}}, rules: [{}]}", cilium, []map[string]string{fraud, risk, web}, false, false},
		{"by one that no identity has", "{selector: {matchLabels: {version: v1}}, rules: [{}]}", cilium, []map[string]string{fraud, web}, true, false},
		{"identities without namespaces do not contain where their pods are", "{rules: [{}]}", cilium, []map[string]string{{key: "fraud"}}, true, false},
		{
			"without identities it may be any that the selector does not rule out",
			"{selector: {matchLabels: {com.trip/grpc: fraud}}, rules: [{}]}", cilium, nil, true, false,
		},
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
			o, err := ParseIstioAllow(u)
			if err != nil {
				t.Fatal(err)
			}
			found := FindIstioExposure([]IstioAllow{o}, nil, c.keys, func(do func([]Handle)) {
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
				if got := found.OpenedBy(key, value); got != by {
					t.Errorf("%s is opened by %q, want %q", value, got, by)
				}
			}
			if by := found.OpenedBy("another/key", "fraud"); by != "" || !found.Equal(found) || found.Equal(IstioExposure{}) {
				t.Errorf("of no class, and opened by %q", by)
			}
		})
	}
}

// A policy that allows only sources that ACP's policies allow to the same pods opens nothing, whether these pods are known or not.
func TestOpenedBesideOwn(t *testing.T) {
	const key = "com.trip/grpc"
	parse := func(text string) map[string]any {
		var spec map[string]any
		if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		return spec
	}
	object := func(name, spec string, placement ...string) *Object {
		return &Object{Kind: IstioPolicy, Meta: metav1.ObjectMeta{Name: name}, Placement: placement, TemplateSpec: parse(spec)}
	}
	own := []*Object{
		object(
			"acp-fraud",
			`{action: ALLOW, selector: {matchLabels: {com.trip/grpc: fraud}}, rules: [{from: [{source: {principals: ["*/sa/app-888"]}}], `+
				`to: [{operation: {ports: ["9000"]}}]}]}`,
			"m1",
			"m2",
		),
		object("acp-risk", `{action: ALLOW, selector: {matchLabels: {com.trip/grpc: risk}}}`, "m1", "m2"),
		object("acp-risk-denies", `{action: DENY, selector: {matchLabels: {com.trip/grpc: risk}}, rules: [{}]}`, "m1", "m2"),
	}
	own[0].Overrides = map[string]Override{"m2": {Spec: parse(`{action: ALLOW, selector: {matchLabels: {com.trip/grpc: fraud}}}`)}}
	const granted = `rules: [{from: [{source: {principals: [cluster.local/ns/web/sa/app-888]}}], to: [{operation: {ports: ["9000"]}}]}]`
	for _, c := range []struct {
		reason, member, policy string
		fraud, risk            bool
	}{
		{"what ACP lets in to one is not let in to the other", "m1", granted, false, true},
		{"only to that one", "m1", "selector: {matchLabels: {com.trip/grpc: fraud}}, " + granted, false, false},
		{"in a member where ACP lets it in to nobody", "m2", granted, true, true},
		{"where nothing of ACP is", "m3", granted, true, true},
		{"another client", "m1", `rules: [{from: [{source: {principals: ["*/sa/app-777"]}}], to: [{operation: {ports: ["9000"]}}]}]`, true, true},
		{"everybody", "m1", "rules: [{}]", true, true},
		{
			"a field that is not known", "m1",
			`rules: [{from: [{source: {principals: ["*/sa/app-888"], waypoints: [x]}}], to: [{operation: {ports: ["9000"]}}]}]`, true, true,
		},
	} {
		for _, known := range []bool{true, false} {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": parse("{" + c.policy + "}")}}
			u.SetKind(IstioPolicy.Target.Kind)
			u.SetNamespace("pay")
			u.SetName("theirs")
			o, err := ParseIstioAllow(u)
			if err != nil {
				t.Fatal(err)
			}
			allows := &OwnAllows{}
			lets := allows.from(c.member, own)
			if again := allows.from(c.member, own); len(again) != len(lets) || len(lets) > 0 && again[0] != lets[0] {
				t.Error("what did not change was read again")
			}
			found := FindIstioExposure([]IstioAllow{o}, lets, map[string]bool{key: true}, func(do func([]Handle)) {
				for _, value := range []string{"fraud", "risk"} {
					if known {
						do([]Handle{unique.Make(Label{Key: key, Value: value}), unique.Make(Label{Key: namespaceKey, Value: "pay"})})
					}
				}
			})
			if fraud, risk := found.OpenedBy(key, "fraud") != "", found.OpenedBy(key, "risk") != ""; fraud != c.fraud || risk != c.risk {
				t.Errorf("%s, pods known %v: fraud %v, risk %v", c.reason, known, fraud, risk)
			}
			if everything := FindIstioExposure(
				[]IstioAllow{o}, nil, map[string]bool{key: true}, func(func([]Handle)) {},
			); !known && !c.fraud && found.Equal(everything) {
				t.Errorf("%s: it is the same as without ACP's policies", c.reason)
			}
		}
	}
}
