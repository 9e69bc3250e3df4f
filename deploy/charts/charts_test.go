package charts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/testenv/golden"
)

var charts = []string{"acp", "acp-crds", "acp-kubefed", "acp-member"}

// namespaces are those that the charts are installed into.
var namespaces = map[string]string{"acp": "acp-system", "acp-crds": "acp-system", "acp-kubefed": "kube-federation-system", "acp-member": "acp-system"}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // Helm's, which reports each symbolic link
	code := m.Run()
	if binaries != "" {
		_ = os.RemoveAll(binaries)
	}
	os.Exit(code)
}

func load(t testing.TB, name string) *chart.Chart {
	t.Helper()
	c, err := loader.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// values reads a file of values, or returns none for "".
func values(t testing.TB, file string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if file == "" {
		return out
	}
	text, err := os.ReadFile(file) //nolint:gosec // it is in the repository
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

// render renders a chart as helm template does, with all kinds that the charts look for.
func render(t testing.TB, name string, v map[string]any) (*release.Release, error) {
	t.Helper()
	cfg := &action.Configuration{}
	cfg.SetLogger(slog.DiscardHandler)
	i := action.NewInstall(cfg)
	i.DryRunStrategy = action.DryRunClient
	i.ReleaseName, i.Namespace, i.Replace = name, namespaces[name], true
	i.APIVersions = common.VersionSet{"core.kubefed.io/v1beta1"}
	i.KubeVersion = &common.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}
	r, err := i.Run(load(t, name), v)
	if err != nil {
		return nil, err
	}
	return r.(*release.Release), nil
}

func objects(t testing.TB, manifest string) []*unstructured.Unstructured {
	t.Helper()
	d := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		if err := d.Decode(u); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("what is rendered is not YAML: %v", err)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

func rendered(t testing.TB, name string, v map[string]any) []*unstructured.Unstructured {
	t.Helper()
	r, err := render(t, name, v)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, r.Manifest)
}

func id(u *unstructured.Unstructured) string {
	return strings.TrimPrefix(u.GetNamespace()+"/", "/") + u.GetKind() + "/" + u.GetName()
}

// sets returns the files of values for a chart: testdata/CHART/*.values.yaml.
func sets(t testing.TB, name string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", name, "*.values.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no sets of values: %v", name, err)
	}
	return files
}

func TestLint(t *testing.T) {
	for _, name := range charts {
		for _, set := range sets(t, name) {
			l := action.NewLint()
			l.Namespace, l.Strict = namespaces[name], true
			result := l.Run([]string{name}, values(t, set))
			for _, err := range result.Errors {
				t.Errorf("%s: %v", set, err)
			}
		}
	}
}

// TestValuesThatCannotWorkAreRefused tries values that would be rendered into names of images that no registry has, and into files that nobody
// reads.
func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	registry := func(value string) map[string]any { return map[string]any{"image": map[string]any{"registry": value}} }
	catalog := func(file string) map[string]any {
		return map[string]any{"portal": map[string]any{"catalog": map[string]any{"files": map[string]any{file: "id,title\n"}}}}
	}
	for _, c := range []struct {
		reason, chart string
		values        map[string]any
		refused       string // the name of the value, empty if it is accepted
	}{
		{"a scheme", "acp", registry("https://registry.example.com/acp"), "registry"},
		{"a slash at the end", "acp-kubefed", registry("registry.example.com/acp/"), "registry"},
		{"an IPv6 address", "acp", registry("[fd00::1]:5000/acp"), ""},
		{"a port and folders", "acp", registry("registry.example.com:5000/team/acp"), ""},
		{"a registry without folder", "acp-kubefed", registry("localhost:5000"), ""},
		{"a mistyped file", "acp", catalog("peoples.csv"), "peoples.csv"},
		{"a file of the catalog", "acp", catalog("people.csv"), ""},
		{"entities under any name", "acp", catalog("shop.entities.yaml"), ""},
	} {
		_, err := render(t, c.chart, c.values)
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: got %v, want a refusal of %q", c.reason, err, c.refused)
		}
	}
}

// TestUnknownValuesAreRefused puts an unknown key beside every key of the default values.
func TestUnknownValuesAreRefused(t *testing.T) {
	for _, name := range charts {
		open := map[string]bool{"global": true} // what other charts hand down
		schema := values(t, filepath.Join(name, "values.schema.json"))
		tried := 0
		var walk func(path []string, v, s map[string]any)
		walk = func(path []string, v, s map[string]any) {
			if properties, _ := s["properties"].(map[string]any); properties == nil || open[strings.Join(path, ".")] {
				if len(path) != 0 && properties == nil {
					return
				}
			} else {
				given := map[string]any{"noSuchValue": "x"}
				for _, key := range slices.Backward(path) {
					given = map[string]any{key: given}
				}
				tried++
				if _, err := render(t, name, given); err == nil || !strings.Contains(err.Error(), "noSuchValue") {
					t.Errorf("%s: %s.noSuchValue is not refused by its name: %v", name, strings.Join(path, "."), err)
				}
			}
			for key, child := range v {
				properties, _ := s["properties"].(map[string]any)
				below, _ := properties[key].(map[string]any)
				if m, ok := child.(map[string]any); ok && below != nil {
					walk(append(slices.Clone(path), key), m, deref(schema, below))
				}
			}
		}
		walk(nil, values(t, filepath.Join(name, "values.yaml")), schema)
		if tried == 0 {
			t.Errorf("%s: nothing was tried", name)
		}
	}
}

// deref follows a reference to a definition.
func deref(schema, s map[string]any) map[string]any {
	ref, ok := s["$ref"].(string)
	if !ok {
		return s
	}
	definitions, _ := schema["$defs"].(map[string]any)
	out, _ := definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	return out
}

// TestEveryValueHasADefault checks that every value of the schema is in values.yaml, from which the documentation is generated.
func TestEveryValueHasADefault(t *testing.T) {
	free := regexp.MustCompile(`(^|\.)(settings|resources|global|acp-crds)$`)
	for _, name := range charts {
		schema := values(t, filepath.Join(name, "values.schema.json"))
		var walk func(path string, v any, s map[string]any)
		walk = func(path string, v any, s map[string]any) {
			properties, _ := deref(schema, s)["properties"].(map[string]any)
			if free.MatchString(path) {
				return
			}
			defaults, _ := v.(map[string]any)
			for key, p := range properties {
				at := strings.TrimPrefix(path+"."+key, ".")
				d, ok := defaults[key]
				if !ok && !free.MatchString(at) {
					t.Errorf("%s: %s is in the schema and not in values.yaml", name, at)
				}
				walk(at, d, p.(map[string]any))
			}
		}
		walk("", values(t, filepath.Join(name, "values.yaml")), schema)
	}
}

// TestWhatCannotWorkIsRefused: each refusal says what to do.
func TestWhatCannotWorkIsRefused(t *testing.T) {
	for reason, c := range map[string]struct {
		chart, values string
		want          []string
	}{
		"SQLite has one writer": {"acp", `portal: {replicas: 2}`, []string{"portal.replicas is 2", "portal.database.existingSecret"}},
		"a SQLite file is on one node": {
			"acp",
			`{portal: {replicas: 2, database: {existingSecret: db}}, collector: {enabled: true, hubble: {relays: {m1: "r:4245"}, ` +
				`tls: {existingSecret: h, serverName: s}}}}`,
			[]string{"flow store", "flowStore.existingSecret"},
		},
		"collectors share on ClickHouse": {
			"acp", `collector: {enabled: true, replicas: 2, hubble: {relays: {m1: "r:4245"}, tls: {existingSecret: h, serverName: s}}}`,
			[]string{"collector.replicas is 2", "ClickHouse"},
		},
		"no relays": {"acp", `collector: {enabled: true}`, []string{"collector.hubble.relays", "collector.hubble.registrations"}},
		"registrations without certificates": {
			"acp", `collector: {enabled: true, hubble: {registrations: true}}`, []string{"collector.hubble.tls.existingSecret"},
		},
		"no certificate for the relays": {
			"acp", `collector: {enabled: true, hubble: {relays: {m1: "r:4245"}}}`, []string{"collector.hubble.tls.existingSecret"},
		},
		"two databases":                    {"acp", `portal: {database: {url: "postgres://a@b/c", existingSecret: x}}`, []string{"give one of them"}},
		"a password in a value":            {"acp", `portal: {database: {url: "postgres://a:secret@b/c"}}`, []string{"/portal/database/url"}},
		"a password in a query":            {"acp", `flowStore: {url: "clickhouse://a@b:9000/c?password=secret"}`, []string{"/flowStore/url"}},
		"a mode without its Secret":        {"acp", `portal: {tls: {mode: existingSecret}}`, []string{"portal.tls.existingSecret"}},
		"a Secret without its mode":        {"acp", `portal: {tls: {existingSecret: x}}`, []string{"set the mode to existingSecret"}},
		"plain HTTP for everybody":         {"acp", `portal: {tls: {mode: proxy}}`, []string{"portal.tls.trustedProxies"}},
		"a browser would not send cookies": {"acp", `portal: {publicURL: "http://acp.example.com"}`, []string{"/portal/publicURL"}},
		"a webhook without its authority":  {"acp", `adapter: {webhook: {tls: {mode: existingSecret, existingSecret: x}}}`, []string{"caBundle"}},
		"a route without a Gateway":        {"acp", `portal: {publicURL: "https://acp.example.com", gateway: {enabled: true}}`, []string{"parentRefs"}},
		"an Ingress for localhost":         {"acp", `portal: {ingress: {enabled: true}}`, []string{"portal.publicURL"}},
		"two monitors": {
			"acp", `monitoring: {podMonitor: {enabled: true}, serviceMonitor: {enabled: true}}`, []string{"enable one of them"},
		},
		"closed without the API servers": {"acp", `networkPolicy: {egress: {enabled: true}}`, []string{"networkPolicy.egress.common"}},
		"closed without the trace collector": {
			"acp", `{tracing: {endpoint: "https://otel:4318"}, networkPolicy: {egress: {enabled: true, common: [{}]}}}`,
			[]string{"networkPolicy.egress.tracing"},
		},
		"traces that others can read":             {"acp", `tracing: {endpoint: "http://otel:4318"}`, []string{"tracing.insecure"}},
		"headers for nobody":                      {"acp", `tracing: {existingSecret: otel}`, []string{"tracing.endpoint"}},
		"a password in the collector's URL":       {"acp", `tracing: {endpoint: "https://u:p@otel:4318"}`, []string{"/tracing/endpoint"}},
		"a page without the trace":                {"acp", `tracing: {traceURL: "https://jaeger.example.com/"}`, []string{"/tracing/traceURL"}},
		"a setting that the chart makes":          {"acp", `portal: {settings: {listen: ":80"}}`, []string{"/portal/settings", "listen"}},
		"a setting with a wrong value":            {"acp", `adapter: {settings: {push-lag: soon}}`, []string{"/adapter/settings/push-lag"}},
		"a webhook that is neither open nor shut": {"acp", `adapter: {webhook: {failurePolicy: Maybe}}`, []string{"failurePolicy"}},
		"a label that is none":                    {"acp-member", `guard: {classLabels: ["a b"]}`, []string{"/guard/classLabels/0"}},
		"a template without the id":               {"acp-member", `guard: {serviceAccountTemplates: [app]}`, []string{"/guard/serviceAccountTemplates/0"}},
		"a release without objects":               {"acp-member", `member: {enabled: false}`, []string{"node.enabled"}},
		"no workers":                              {"acp-kubefed", `config: {maxConcurrentReconciles: 0}`, []string{"maxConcurrentReconciles"}},
	} {
		t.Run(reason, func(t *testing.T) {
			var v map[string]any
			if err := yaml.Unmarshal([]byte(c.values), &v); err != nil {
				t.Fatal(err)
			}
			_, err := render(t, c.chart, v)
			if err == nil {
				t.Fatal("it is accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error has no %q: %v", want, err)
				}
			}
		})
	}
}

// TestMemberNamespace: the guard and the host know the accounts in one namespace only.
func TestMemberNamespace(t *testing.T) {
	was := namespaces["acp-member"]
	namespaces["acp-member"] = "elsewhere"
	defer func() { namespaces["acp-member"] = was }()
	if _, err := render(t, "acp-member", nil); err == nil || !strings.Contains(err.Error(), "--namespace acp-system") {
		t.Errorf("another namespace: %v", err)
	}
}

// TestGolden compares what the sets of values render with testdata/CHART/SET.golden.yaml; -update writes these again. Definitions of kinds,
// dashboards and alerts are named only, and generated certificates are left out.
func TestGolden(t *testing.T) {
	for _, name := range charts {
		for _, set := range sets(t, name) {
			t.Run(set, func(t *testing.T) {
				r, err := render(t, name, values(t, set))
				if err != nil {
					t.Fatal(err)
				}
				var b bytes.Buffer
				all := objects(t, r.Manifest)
				slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(id(a), id(b)) })
				for _, o := range all {
					shorten(o)
					text, err := yaml.Marshal(o.Object)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&b, "---\n%s", text)
				}
				if r.Info.Notes != "" {
					fmt.Fprintf(&b, "---\n# NOTES.txt\n%s\n", regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSpace(r.Info.Notes), "# "))
				}
				golden.Compare(t, strings.TrimSuffix(set, ".values.yaml")+".golden.yaml", b.String())
			})
		}
	}
}

const generated = "(generated)"

// shorten leaves out what is random or tested elsewhere.
func shorten(o *unstructured.Unstructured) {
	switch o.GetKind() {
	case "CustomResourceDefinition", "PrometheusRule":
		o.Object["spec"] = generated
	case "Secret":
		data, _ := o.Object["data"].(map[string]any)
		for k := range data {
			data[k] = generated
		}
	case "ConfigMap":
		data, _ := o.Object["data"].(map[string]any)
		for k := range maps.Clone(data) {
			if strings.HasSuffix(k, ".json") || k == "ca.crt" || strings.HasSuffix(o.GetName(), "-alerts") {
				data[k] = generated
			}
		}
	case "ValidatingWebhookConfiguration":
		for _, w := range o.Object["webhooks"].([]any) {
			client := w.(map[string]any)["clientConfig"].(map[string]any)
			if client["caBundle"] != nil {
				client["caBundle"] = generated
			}
		}
	}
}
