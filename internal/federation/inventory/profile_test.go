package inventory

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/federation"
)

func authority(of string) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(of)})
}

func encoded(of string) string { return base64.StdEncoding.EncodeToString(authority(of)) }

func parse(t *testing.T, text string) Profile {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	p, err := Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const head = "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ClusterProfile\n" +
	"metadata: {namespace: fleet, name: m1, generation: 3}\nspec: {clusterManager: {name: manager}}\n"

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		reason, conditions string
		want               metav1.ConditionStatus
	}{
		{"no condition", "[]", metav1.ConditionUnknown},
		{"another condition", `[{type: Joined, status: "True"}]`, metav1.ConditionUnknown},
		{"a condition without a generation", `[{type: ControlPlaneHealthy, status: "True"}]`, metav1.ConditionTrue},
		{"a condition of the generation", `[{type: ControlPlaneHealthy, status: "False", observedGeneration: 3}]`, metav1.ConditionFalse},
		{"a condition of an earlier generation", `[{type: ControlPlaneHealthy, status: "True", observedGeneration: 2}]`, metav1.ConditionUnknown},
		{"a condition that is unknown", `[{type: ControlPlaneHealthy, status: Unknown}]`, metav1.ConditionUnknown},
	} {
		if p := parse(t, head+"status: {conditions: "+c.conditions+"}"); p.Healthy != c.want || p.Manager != "manager" || p.Name.String() != "fleet/m1" {
			t.Errorf("%s: got %+v, want %s", c.reason, p, c.want)
		}
	}
}

func TestUse(t *testing.T) {
	provider := func(name, server, more string) string {
		return "{name: " + name + ", cluster: {server: '" + server + "'" + more + "}}"
	}
	ca := ", certificate-authority-data: " + encoded("one")
	one := Access{Provider: "a", Endpoint: "https://one:6443", CABundle: authority("one")}
	for _, c := range []struct {
		reason, status, provider string
		want                     Access
		problem                  string
	}{
		{"one provider", "{accessProviders: [" + provider("a", "https://one:6443", ca) + "]}", "", one, ""},
		{"the deprecated field", "{credentialProviders: [" + provider("a", "https://one:6443", ca) + "]}", "a", one, ""},
		{"the deprecated field does not count beside the other one", "{credentialProviders: [" + provider("a", "https://old:6443", "") +
			"], accessProviders: [" + provider("a", "https://one:6443", ca) + "]}", "", one, ""},
		{"two providers with the same address", "{accessProviders: [" + provider("b", "https://one:6443/", ca) + ", " +
			provider("a", "https://one:6443", ca) + "]}", "", one, ""},
		{"two providers with different addresses", "{accessProviders: [" + provider("b", "https://two:6443", ca) + ", " +
			provider("a", "https://one:6443", ca) + "]}", "", Access{}, "choose one: a, b"},
		{"one of two providers", "{accessProviders: [" + provider("b", "https://two:6443", ca) + ", " +
			provider("a", "https://one:6443", ca) + "]}", "a", one, ""},
		{"two providers with different authorities", "{accessProviders: [" + provider("b", "https://one:6443", "") + ", " +
			provider("a", "https://one:6443", ca) + "]}", "", Access{}, "choose one"},
		{"no provider", "{}", "", Access{}, "no address"},
		{"no such provider", "{accessProviders: [" + provider("a", "https://one:6443", ca) + "]}", "c", Access{}, `no access provider "c", but a`},
		{"a certificate that is not to be verified", "{accessProviders: [" + provider("a", "https://one:6443", ", insecure-skip-tls-verify: true") + "]}", "",
			Access{}, "not to verify"},
		{"a certificate of another name", "{accessProviders: [" + provider("a", "https://one:6443", ", tls-server-name: other") + "]}", "", Access{},
			"tls-server-name"},
	} {
		got, err := parse(t, head+"status: "+c.status).Use(c.provider)
		if c.problem == "" && err != nil || c.problem != "" && (!errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%s: got error %v", c.reason, err)
		}
		if err == nil && cmp.Diff(c.want, got) != "" {
			t.Errorf("%s: %s", c.reason, cmp.Diff(c.want, got))
		}
	}
	deleted := Profile{Deleting: true, Access: []Access{one}}
	if _, err := deleted.Use(""); !errors.Is(err, ErrUnusable) {
		t.Errorf("a profile that is being deleted: got error %v", err)
	}
}

func TestHas(t *testing.T) {
	p := Profile{Access: []Access{{Endpoint: "https://one:6443", CABundle: authority("one")}, {Endpoint: "https://two:6443", ProxyURL: "http://proxy"}}}
	for _, c := range []struct {
		reason string
		member federation.Cluster
		want   bool
	}{
		{"the same way", federation.Cluster{Endpoint: "https://one:6443", CABundle: authority("one")}, true},
		{"another form", federation.Cluster{Endpoint: "one:6443/", CABundle: append([]byte("# text\n"), authority("one")...)}, true},
		{"another authority", federation.Cluster{Endpoint: "https://one:6443", CABundle: authority("two")}, false},
		{"another proxy", federation.Cluster{Endpoint: "https://two:6443"}, false},
		{"no authority in the profile", federation.Cluster{Endpoint: "https://two:6443", ProxyURL: "http://proxy", CABundle: authority("two")}, true},
		{"another address", federation.Cluster{Endpoint: "https://three:6443"}, false},
	} {
		if got := p.Has(c.member); got != c.want {
			t.Errorf("%s: got %t", c.reason, got)
		}
	}
	if (Profile{}).Has(federation.Cluster{Endpoint: "https://one:6443"}) {
		t.Error("a profile without addresses has one")
	}
}

func TestParseName(t *testing.T) {
	for text, want := range map[string]bool{
		"fleet/m1": true, "fleet/m1.example": true, "m1": false, "/m1": false, "fleet/": false, "a/b/c": false, "": false, "A/b": false,
	} {
		if _, err := ParseName(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
