package demo

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
)

type entity struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Owner    string   `json:"owner"`
		MemberOf []string `json:"memberOf"`
	} `json:"spec"`
}

func catalog(t *testing.T) []entity {
	t.Helper()
	files, err := filepath.Glob("../../demo/catalog/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no catalog: %v", err)
	}
	var out []entity
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			var e entity
			if err := dec.Decode(&e); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			out = append(out, e)
		}
	}
	return out
}

// The users of the provider must be those of the catalog, with the same groups, and every owner must exist.
func TestPeopleAreInTheCatalog(t *testing.T) {
	users, known := map[string][]string{}, map[string]bool{}
	for _, e := range catalog(t) {
		known[strings.ToLower(e.Kind)+":"+e.Metadata.Name] = true
		if e.Kind == "User" {
			users[e.Metadata.Name] = e.Spec.MemberOf
		}
	}
	logins := map[string][]string{}
	for _, p := range People() {
		logins[p.Username] = p.Groups
	}
	if diff := cmp.Diff(users, logins); diff != "" {
		t.Errorf("-catalog +logins\n%s", diff)
	}
	for _, e := range catalog(t) {
		if e.Spec.Owner != "" && !known[e.Spec.Owner] {
			t.Errorf("%s %s is owned by %s, who is not in the catalog", e.Kind, e.Metadata.Name, e.Spec.Owner)
		}
	}
}

func TestLoadPeople(t *testing.T) {
	others, err := LoadPeople("../../demo/catalog/company/people.csv")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range append(People(), others...) {
		if known[p.Username] || p.Name == "" || len(p.Groups) == 0 || p.Groups[0] == "" {
			t.Errorf("%+v is there twice, or has no name or team", p)
		}
		known[p.Username] = true
	}
	if len(known) < 55 {
		t.Errorf("a company has more than %d people", len(known))
	}
	bad := filepath.Join(t.TempDir(), "people.csv")
	for content, reason := range map[string]string{"": "empty", "id,groups\na,b\n": "other columns", "id,title\n\"": "no CSV"} {
		if err := os.WriteFile(bad, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadPeople(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: got %v, want an error that names the file", reason, err)
		}
	}
}

func TestWorkloadsFile(t *testing.T) {
	workloads, err := LoadWorkloads("../../demo/workloads.yaml")
	if err != nil {
		t.Fatal(err)
	}
	apps := map[string][]string{}
	for _, w := range workloads {
		if app := w.Labels["com.trip/appid"]; app != "" {
			apps[app] = w.Clusters
		}
	}
	if diff := cmp.Diff([]string{"101", "204", "206", "503", "602", "603", "777", "858", "888", "889"}, slices.Sorted(maps.Keys(apps))); diff != "" {
		t.Errorf("the applications of the demo: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m1", "m2"}, apps["888"]); diff != "" {
		t.Errorf("888 runs in both members: -want +got\n%s", diff)
	}
}

func TestLoadWorkloadsRefuses(t *testing.T) {
	for name, content := range map[string]string{
		"UnknownField": "workloads: [{name: a, namespace: n, clusters: [m1], replicas: 1, replica: 2}]",
		"NoReplicas":   "workloads: [{name: a, namespace: n, clusters: [m1]}]",
		"NotYAML":      "workloads: [",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "w.yaml")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadWorkloads(path); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want an error that names the file", err)
			}
		})
	}
}

func TestFreeAddress(t *testing.T) {
	taken := map[string]bool{}
	first, err := freeAddress("m2", "ns/a", taken)
	if err != nil || !netip.MustParsePrefix("10.2.0.0/16").Contains(netip.MustParseAddr(first)) {
		t.Fatalf("%s, %v: m2 has 10.2.0.0/16", first, err)
	}
	again, err := freeAddress("m2", "ns/a", map[string]bool{})
	if err != nil || again != first {
		t.Errorf("a pod keeps its address: %s, then %s, %v", first, again, err)
	}
	if other, err := freeAddress("m2", "ns/a", taken); err != nil || other == first {
		t.Errorf("an address is given once: %s twice, %v", other, err)
	}
	if _, err := freeAddress("somewhere", "ns/a", taken); err == nil {
		t.Error("a cluster without range must be an error")
	}
}
