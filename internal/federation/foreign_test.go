package federation

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation/foreignpolicy"
)

// A kind that the member does not serve has no objects there; of one that it does not let be listed nothing is known.
func TestPresent(t *testing.T) {
	resource := clusterNetworkPolicy.TargetResource.GroupResource()
	for _, c := range []struct {
		reason           string
		alive            bool
		why              error
		reachable, known bool
	}{
		{"it is not served", false, apierrors.NewNotFound(resource, ""), true, true},
		{"it is forbidden", false, apierrors.NewForbidden(resource, "", errors.New("no")), false, true},
		{"the member is gone", false, errors.New("connection refused"), false, true},
		{"the member was not asked yet", false, errNotProbed, false, false},
		{"it is being listed", true, nil, false, false},
	} {
		m := &member[policyObject]{cluster: Cluster{Name: "m1"}, kind: clusterNetworkPolicy, alive: c.alive, why: c.why}
		m.watch = NewWatch(
			nil,
			"clusternetworkpolicies",
			logr.Discard(),
			func(u *unstructured.Unstructured) (policyObject, error) {
				return policyObject{Policy: foreignpolicy.Parse(u)}, nil
			},
			func(string) {},
		)
		f := &fleet[policyObject]{members: map[string]*member[policyObject]{"m1": m}}
		o, _ := f.present("m1")
		if o.Reachable != c.reachable || o.Unknown == c.known || !o.Reachable && o.Message.IsZero() {
			t.Errorf("%s: %+v", c.reason, o)
		}
	}
}

func TestParseGroup(t *testing.T) {
	group := func(name string, cidrs ...any) foreignpolicy.Group {
		g, err := parseGroup(
			&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"externalCIDRs": cidrs}}},
		)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if g := group("theirs", "10.0.0.0/8", "10.1.1.1"); len(g.Prefixes) != 2 || g.Prefixes[1].Bits() != 32 {
		t.Errorf("%v", g.Prefixes)
	}
	if g := group("theirs", "ten"); len(g.Prefixes) != 2 || g.Prefixes[0].Bits() != 0 {
		t.Errorf("of others, and unreadable: %v", g.Prefixes)
	}
	if g := group("acp-888", "ten"); len(g.Prefixes) != 0 {
		t.Errorf("ACP's, and unreadable: %v", g.Prefixes)
	}
}

// TestOwnPoliciesSelectTheirPods checks that an object with a name of ACP counts as a policy of others if it selects other pods than ACP's
// object on the host, in the first spec or in a further one.
func TestOwnPoliciesSelectTheirPods(t *testing.T) {
	selector := func(value string) map[string]any {
		return map[string]any{"matchLabels": map[string]any{"any:com.trip/redis": value}}
	}
	open := func(value string) map[string]any {
		return map[string]any{"endpointSelector": selector(value), "ingress": []any{map[string]any{"fromEntities": []any{"all"}}}}
	}
	managed := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	host := &Object{Meta: metav1.ObjectMeta{Name: "acp-x", Labels: managed}, TemplateSpec: open("x"),
		Overrides: map[string]Override{"m1": {Spec: open("y")}}}
	wildcard := &Object{Meta: metav1.ObjectMeta{Name: "acp-w", Labels: managed, Annotations: map[string]string{AnnotationResource: "trnv1:rsc:o:s:t:w*"}},
		TemplateSpec: open("w")}
	f := &ForeignPolicies{revision: testRevision, own: func(name string) (*Object, bool) {
		if name == wildcard.Meta.Name {
			return wildcard, true
		}
		return host, name == host.Meta.Name
	}}
	closed := map[string]any{"endpointSelector": selector("w")}
	labeled := func(revision map[string]any, spec map[string]any) map[string]any {
		return map[string]any{"spec": spec, "metadata": map[string]any{"labels": map[string]any{v1alpha1.LabelRevision: testRevision(revision)}}}
	}
	for reason, c := range map[string]struct {
		name   string
		object map[string]any
		own    bool
	}{
		"as on the host":                   {"acp-x", map[string]any{"spec": open("x")}, true},
		"as a member's own part":           {"acp-x", map[string]any{"spec": open("y")}, true},
		"the unit repairs other rules":     {"acp-x", map[string]any{"spec": map[string]any{"endpointSelector": selector("x")}}, true},
		"a wildcard's":                     {"acp-w", labeled(open("w"), open("w")), true},
		"a wildcard's of another revision": {"acp-w", labeled(closed, closed), true},
		"a wildcard's that was altered":    {"acp-w", labeled(closed, open("w")), false},
		"other pods":                       {"acp-x", map[string]any{"spec": open("z")}, false},
		"all pods":                         {"acp-x", map[string]any{"spec": map[string]any{"endpointSelector": map[string]any{}}}, false},
		"nodes":                            {"acp-x", map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{}}}, false},
		"other pods, too":                  {"acp-x", map[string]any{"spec": open("x"), "specs": []any{open("z")}}, false},
		"more that cannot be read":         {"acp-x", map[string]any{"spec": open("x"), "specs": "z"}, false},
		"not on the host":                  {"acp-z", map[string]any{"spec": open("x")}, false},
		"a name that ACP never gives":      {"theirs", map[string]any{"spec": open("x")}, false},
		"a label of ACP and another name":  {"theirs", map[string]any{"spec": open("x"), "metadata": map[string]any{}}, false},
	} {
		u := &unstructured.Unstructured{Object: c.object}
		u.SetName(c.name)
		p := f.parse(u, CiliumPolicy)
		if p.own != c.own {
			t.Errorf("%s: own %t", reason, p.own)
		}
		// An object may be parsed before the host's is known.
		early := (&ForeignPolicies{revision: testRevision, own: func(string) (*Object, bool) { return nil, false }}).parse(u, CiliumPolicy)
		if early.own || (early.selection != "" && f.isOwn(c.name, early.ownName)) != c.own {
			t.Errorf("%s: parsed before the host's object was known: %t", reason, early.own)
		}
	}
}

// TestClusterwidePoliciesAreReadOnce checks that the policies of others are found among those that are read back, and that no copy of ACP's own
// is stored for them.
func TestClusterwidePoliciesAreReadOnce(t *testing.T) {
	host := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		clusterResource: "KubeFedClusterList", secretResource: "SecretList", CiliumPolicy.FederatedResource: "List"})
	config := FleetConfig{Host: host, KubeFedNamespace: "kubefed", CredentialsNamespace: "acp", Kind: CiliumPolicy, Revision: testRevision,
		Changed: func(string, string) {}}
	policy := func(name, selects string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"endpointSelector": map[string]any{"matchLabels": map[string]any{"any:com.trip/redis": selects}},
			"ingress":          []any{map[string]any{"fromEntities": []any{"all"}}}}}}
		u.SetName(name)
		u.SetResourceVersion("1")
		return u
	}
	own := NewObjects(host, CiliumPolicy, logr.Discard(), func(string, string) {})
	_ = own.watch.store(policy("acp-x", ""), &Object{Kind: CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-x",
		Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}}, TemplateSpec: policy("", "x").Object["spec"].(map[string]any)}, false)
	fleet, err := NewFleet(config)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewForeignPolicies(config, own, fleet)
	if err != nil {
		t.Fatal(err)
	}
	m := &member[Observed]{cluster: Cluster{Name: "m1"}, kind: CiliumPolicy, alive: true}
	m.watch = NewWatch(nil, "policies", logr.Discard(), fleet.parse, func(string) {})
	m.watch.synced, m.watch.group = true, fleet.group
	fleet.members["m1"] = m
	for _, u := range []*unstructured.Unstructured{policy("acp-x", "x"), policy("theirs", "x"), policy("acp-y", "y")} {
		m.watch.Offer(u)
	}
	names := func() (out []string) {
		found, _ := f.In("m1")
		for _, p := range found {
			out = append(out, p.Name)
		}
		slices.Sort(out)
		return out
	}
	if got := names(); !slices.Equal(got, []string{"acp-y", "theirs"}) {
		t.Errorf("policies of others: %v", got)
	}
	if o := fleet.Observe("m1", "acp-x").Object; o == nil || o.foreign != nil {
		t.Errorf("ACP's own policy was stored as one of others: %+v", o)
	}
	m.watch.Offer(policy("acp-x", "z")) // somebody made it select other pods
	if got := names(); !slices.Equal(got, []string{"acp-x", "acp-y", "theirs"}) {
		t.Errorf("policies of others after a change of ACP's: %v", got)
	}
}

// TestSelectsByLabels checks which policies of Istio select the same pods as ACP's object.
func TestSelectsByLabels(t *testing.T) {
	spec := func(labels map[string]any) map[string]any {
		return map[string]any{"selector": map[string]any{"matchLabels": labels}}
	}
	host := &Object{TemplateSpec: spec(map[string]any{"a": "1", "b": "2"}), Overrides: map[string]Override{"m1": {Spec: spec(map[string]any{"a": "3"})}}}
	for reason, c := range map[string]struct {
		labels []Label
		want   bool
	}{
		"as on the host":          {[]Label{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}, true},
		"as a member's own part":  {[]Label{{Key: "a", Value: "3"}}, true},
		"fewer labels":            {[]Label{{Key: "a", Value: "1"}}, false},
		"another value":           {[]Label{{Key: "a", Value: "1"}, {Key: "b", Value: "3"}}, false},
		"another key":             {[]Label{{Key: "a", Value: "1"}, {Key: "c", Value: "2"}}, false},
		"all pods of a namespace": {nil, false},
	} {
		if got := host.isOf(&IstioAllow{labels: c.labels}); got != c.want {
			t.Errorf("%s: %t", reason, got)
		}
	}
}

// testRevision describes a spec.
func testRevision(spec map[string]any) string { return fmt.Sprint(spec) }
