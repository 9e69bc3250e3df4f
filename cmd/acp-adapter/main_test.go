package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/testenv"
	"github.com/acp-io/acp/internal/testenv/eventually"
	"github.com/acp-io/acp/internal/version"
)

func TestWrongCallsAreExplained(t *testing.T) {
	closed := testenv.WriteKubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"})
	malformed := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(malformed, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		{"help", []string{"--help"}, 0, "--kubefed-namespace"},
		{"version", []string{"--version"}, 0, "acp-adapter " + version.String()},
		{"an unknown flag", []string{"--bogus"}, 2, "--bogus"},
		{"an argument", []string{"now"}, 2, `unexpected argument "now"`},
		{"an address without port", []string{"--health-address", "localhost"}, 2, "HOST:PORT"},
		{"a format that is none", []string{"--log-format", "xml"}, 2, "use text or json"},
		{"a webhook without certificate", []string{"--webhook-address", "127.0.0.1:0"}, 2, "needed together"},
		{"a webhook without port", []string{"--webhook-address", "localhost", "--webhook-tls-cert-file", "c", "--webhook-tls-key-file", "k"}, 2, "HOST:PORT"},
		{"half a certificate", []string{"--metrics-tls-cert-file", "c"}, 2, "needed together"},
		{"no time to end", []string{"--shutdown-grace", "0s"}, 2, "--shutdown-grace"},
		{"no namespace of its own", []string{"--namespace", ""}, 2, "must not be empty"},
		{"an empty namespace", []string{"--kubefed-namespace", ""}, 2, "must not be empty"},
		{"a lease that ends before its holder", []string{"--leader-elect-lease-duration", "5s"}, 2, "two could write at the same time"},
		{"a holder that tries once", []string{"--leader-elect-retry-period", "5s"}, 2, "--leader-elect-renew-deadline"},
		{"a holder that never rests", []string{"--leader-elect-retry-period", "0"}, 2, "less than 100ms"},
		{"nothing may be in flight", []string{"--push-in-flight", "0"}, 2, "less than 1"},
		{"a timeout that is over at once", []string{"--push-in-flight-timeout", "0s"}, 2, "less than 100ms"},
		{"a lag longer than the timeout", []string{"--push-lag", "1m"}, 2, "--push-in-flight-timeout"},
		{"a rate that is no number", []string{"--push-rate", "NaN"}, 2, "objects a second"},
		{"everything is kept for urgent changes", []string{"--push-reserve", "30"}, 2, "--push-burst"},
		{"nobody works", []string{"--workers", "0"}, 2, "between 1 and"},
		{"too many writes at once", []string{"--direct-writes", "100000"}, 2, "between 1 and"},
		{"a level that is none", []string{"--log-level", "loud"}, 2, "--log-level"},
		{"no such kubeconfig", []string{"--kubeconfig", filepath.Join(t.TempDir(), "absent")}, 1, "cannot be used"},
		{"profiles for other machines", []string{"--pprof-address", ":6060"}, 2, "not a loopback address"},
		{"a malformed kubeconfig", []string{"--kubeconfig", malformed}, 1, "cannot be used"},
		{"a host that is down", []string{"--kubeconfig", closed}, 1, "does not answer at https://127.0.0.1:1"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var out bytes.Buffer
			if code := newProgram().Run(context.Background(), c.args, &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("code %d, %q; want code %d and %q", code, out.String(), c.code, c.want)
			}
		})
	}
}

func TestHostWithoutTheKindsIsExplainedInOneLine(t *testing.T) {
	server := testenv.Start(t, testenv.Options{})
	kubeconfig := testenv.WriteKubeconfig(t, server.Config)
	var out bytes.Buffer
	code := newProgram().Run(context.Background(), []string{"--kubeconfig", kubeconfig}, &out, &out)
	if code != 1 || !strings.Contains(out.String(), "kubectl apply -f deploy/crds/") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("code %d, %q", code, out.String())
	}
}

// TestHostWithOlderDefinitionsIsExplained checks that the adapter does not start while the host cluster would drop a part of the statuses,
// and that it starts once the definitions were applied.
func TestHostWithOlderDefinitionsIsExplained(t *testing.T) {
	server := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/crds"}})
	kubeconfig := testenv.WriteKubeconfig(t, server.Config)
	definitions, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	crds := definitions.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const name = "protectedresources.acp.io"
	current, err := crds.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	older := current.DeepCopy()
	versions := older.Object["spec"].(map[string]any)["versions"].([]any)
	properties := []string{"schema", "openAPIV3Schema", "properties", "status", "properties"}
	for _, field := range []string{"groups", "members"} {
		unstructured.RemoveNestedField(versions[0].(map[string]any), append(slices.Clone(properties), field)...)
	}
	if older, err = crds.Update(t.Context(), older, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server publishes the older schema a moment after it serves it.
	eventually.True(t, "the older schema is published", func() bool {
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := statusesAreKept(short, server.Config)
		return err != nil && strings.Contains(err.Error(), "status.groups")
	})
	var out bytes.Buffer
	code := newProgram().Run(t.Context(), []string{"--kubeconfig", kubeconfig, "--health-address", "0", "--metrics-address", "0"}, &out, &out)
	if told := out.String(); code != 1 || !strings.Contains(told, "ProtectedResource.status.groups, ProtectedResource.status.members") ||
		!strings.Contains(told, "kubectl apply -f deploy/crds/") ||
		strings.Count(told, "\n") != 1 {
		t.Errorf("code %d, %q", code, told)
	}
	older.Object["spec"] = current.Object["spec"]
	if _, err := crds.Update(t.Context(), older, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := statusesAreKept(ctx, server.Config); err != nil {
		t.Errorf("with the present definitions: %v", err)
	}
}
