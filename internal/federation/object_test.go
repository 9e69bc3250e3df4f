package federation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
)

func full() *Object {
	return &Object{Kind: CiliumPolicy,
		Meta:           metav1.ObjectMeta{Name: "acp-x", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{AnnotationResource: "r"}},
		TemplateLabels: map[string]string{"c": "d"}, TemplateSpec: map[string]any{"port": int64(1)}, Placement: []string{"m1", "m2"},
		Overrides: map[string]Override{"m2": {Spec: map[string]any{"port": int64(2)}, Labels: map[string]string{"acp.io/revision": "r~2"}}}}
}

func TestObjectSurvivesTheWire(t *testing.T) {
	u, err := full().Unstructured()
	if err != nil {
		t.Fatal(err)
	}
	got := ParseObject(CiliumPolicy, u)
	if diff := cmp.Diff(full(), got, cmpopts.IgnoreFields(Object{}, "Propagation")); diff != "" {
		t.Errorf("(-written +read)\n%s", diff)
	}
	same, err := SameSpec(full(), got)
	if err != nil || !same {
		t.Errorf("what was read does not ask the same: %v", err)
	}
}

func TestEmptyPlacementIsWrittenAsAnEmptyList(t *testing.T) {
	for reason, placement := range map[string][]string{"nil": nil, "empty": {}} {
		t.Run(reason, func(t *testing.T) {
			o := full()
			o.Placement = placement
			u, err := o.Unstructured()
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(u.Object["spec"].(map[string]any)["placement"])
			if err != nil || string(text) != `{"clusters":[]}` {
				t.Errorf("placement %s (%v): anything but an explicit empty list can mean every member", text, err)
			}
		})
	}
}

func TestForeignChangesAreNoticed(t *testing.T) {
	for _, c := range []struct {
		reason  string
		spec    string
		foreign bool
	}{
		{"as ACP writes it", `{"template":{"spec":{}},"placement":{"clusters":[{"name":"m1"}]}}`, false},
		{"explicitly nowhere", `{"template":{"spec":{}},"placement":{"clusters":[]}}`, false},
		{
			"a second list of rules in the template",
			`{"template":{"spec":{},"specs":[{"ingress":[{"fromEntities":["all"]}]}]},"placement":{"clusters":[]}}`, true,
		},
		{
			"metadata in the template that ACP never writes",
			`{"template":{"metadata":{"labels":{},"ownerReferences":[]},"spec":{}},"placement":{"clusters":[]}}`, true,
		},
		{"no list of clusters", `{"template":{"spec":{}},"placement":{}}`, true},
		{"a selector beside the list", `{"template":{"spec":{}},"placement":{"clusters":[],"clusterSelector":{}}}`, true},
		{
			"an override of something else",
			`{"placement":{"clusters":[]},"overrides":[{"clusterName":"m1","clusterOverrides":[{"path":"/metadata/annotations","value":{}}]}]}`,
			true,
		},
		{
			"an override by another operation",
			`{"placement":{"clusters":[]},"overrides":[{"clusterName":"m1","clusterOverrides":[{"op":"remove","path":"/spec"}]}]}`, true,
		},
		{
			"two overrides of one member",
			`{"placement":{"clusters":[]},"overrides":[{"clusterName":"m1","clusterOverrides":[]},{"clusterName":"m1","clusterOverrides":[]}]}`,
			true,
		},
		{"something unreadable", `{"placement":{"clusters":"m1"}}`, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "acp-x", "resourceVersion": "7"}}}
			var spec map[string]any
			if err := json.Unmarshal([]byte(c.spec), &spec); err != nil {
				t.Fatal(err)
			}
			u.Object["spec"] = spec
			got := ParseObject(CiliumPolicy, u)
			if got.ForeignFields != c.foreign || got.Meta.Name != "acp-x" || got.Meta.ResourceVersion != "7" {
				t.Errorf("foreign %v, name %q, version %q", got.ForeignFields, got.Meta.Name, got.Meta.ResourceVersion)
			}
		})
	}
}

func TestPropagation(t *testing.T) {
	for _, c := range []struct {
		reason   string
		status   string
		seen, ok bool
	}{
		{"nothing said yet", `{}`, false, false},
		{"everything done", `{"observedGeneration":3,"clusters":[{"name":"m1"}]}`, true, true},
		{"an older generation", `{"observedGeneration":2,"clusters":[{"name":"m1"}]}`, false, false},
		{"some member failed", `{"observedGeneration":3,"clusters":[{"name":"m1","status":"UpdateFailed"}]}`, true, false},
		{"another member failed", `{"observedGeneration":3,"clusters":[{"name":"m1"},{"name":"m2","status":"ClusterNotReady"}]}`, true, true},
		{"the member is not listed", `{"observedGeneration":3}`, true, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(`{"kind":"X","metadata":{"name":"x","generation":3},"status":`+c.status+`}`), &u.Object); err != nil {
				t.Fatal(err)
			}
			got := ParseObject(CiliumPolicy, u).Propagation
			if got.Seen != c.seen || got.OK("m1") != c.ok {
				t.Errorf("%+v, OK %v", got, got.OK("m1"))
			}
		})
	}
}

func TestResolve(t *testing.T) {
	fleet := []Cluster{{Name: "m2", Labels: map[string]string{"zone": "b"}}, {Name: "m1", Labels: map[string]string{"zone": "a"}}}
	names := func(n ...v1alpha1.ClusterName) *[]v1alpha1.ClusterName { return &n }
	for _, c := range []struct {
		reason    string
		placement v1alpha1.Placement
		want      string
		err       error
	}{
		{"an empty selector is every member", v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}, "m1,m2", nil},
		{"a selector", v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "b"}}}, "m2", nil},
		{"names are kept, also unknown ones", v1alpha1.Placement{Clusters: names("m9", "m1")}, "m1,m9", nil},
		{"an explicit empty list is none", v1alpha1.Placement{Clusters: names()}, "", nil},
		{"nothing said is refused, not all", v1alpha1.Placement{}, "", ErrPlacement},
		{"both said is refused", v1alpha1.Placement{Clusters: names(), ClusterSelector: &metav1.LabelSelector{}}, "", ErrPlacement},
		{"a bad selector is refused", v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Near"}}}}, "", ErrPlacement},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got, err := Resolve(c.placement, fleet)
			if diff := cmp.Diff(c.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatal(diff)
			}
			if strings.Join(got, ",") != c.want {
				t.Errorf("%v, want %s", got, c.want)
			}
		})
	}
}

func TestMemberConnectionIsRefusedRatherThanWeakened(t *testing.T) {
	for _, c := range []struct {
		reason  string
		cluster Cluster
		want    string
	}{
		{"an address without scheme is https", Cluster{Name: "m1", Endpoint: "127.0.0.1:6443"}, ""},
		{"no encryption", Cluster{Name: "m1", Endpoint: "http://127.0.0.1:6443"}, "must be an https address"},
		{"no address", Cluster{Name: "m1"}, "must be an https address"},
		{"no verification", Cluster{Name: "m1", Endpoint: "127.0.0.1:6443", LaxTLS: true}, "disabledTLSValidations"},
		{"a proxy", Cluster{Name: "m1", Endpoint: "127.0.0.1:6443", ProxyURL: "http://proxy:3128"}, ""},
		{"a proxy that is none", Cluster{Name: "m1", Endpoint: "127.0.0.1:6443", ProxyURL: "http://pro xy"}, "unusable proxyURL"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			config, err := RESTConfig(c.cluster, "token")
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			case c.want == "" && (err != nil || config.Insecure || (config.Proxy != nil) != (c.cluster.ProxyURL != "")):
				t.Errorf("%v, %+v", err, config)
			}
		})
	}
}
