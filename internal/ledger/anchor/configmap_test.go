package anchor

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	portalToken = "portal-token"
	portalUser  = "system:serviceaccount:" + ConfigMapNamespace + ":acp-portal"
)

// TestConfigMap uses a real API server and the role that deploy/ gives the portal.
func TestConfigMap(t *testing.T) {
	server := testenv.Start(t, testenv.Options{Tokens: map[string]string{portalToken: portalUser}})
	admin, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ConfigMapNamespace}}); err != nil {
		t.Fatal(err)
	}
	apply(t, admin, "deploy/rbac/host/portal.yaml")
	config := *server.Config
	config.BearerToken, config.CertData, config.KeyData, config.CertFile, config.KeyFile = portalToken, nil, nil, "", ""
	api, err := typedcorev1.NewForConfig(&config)
	if err != nil {
		t.Fatal(err)
	}
	story(t, &ConfigMap{Client: api})

	if _, err := api.ConfigMaps(ConfigMapNamespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("Get of another ConfigMap: got %v, want forbidden", err)
	}
	if err := api.ConfigMaps(ConfigMapNamespace).Delete(t.Context(), ConfigMapName, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("Delete of the ConfigMap: got %v, want forbidden", err)
	}
	// Concurrent replicas lose no head and write none that is older than the previous one.
	b := &memoryLedger{}
	heads, err := (&ConfigMap{Client: api}).Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "bob", int(heads[len(heads)-1].Seq))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			k := keeper(b, io.Discard, &ConfigMap{Client: api})
			if err := k.Round(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := check(t, b, &ConfigMap{Client: api}); err != nil {
		t.Errorf("after four replicas: got %v", err)
	}
	// The ConfigMap has invalid content.
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ConfigMapName, Namespace: ConfigMapNamespace}, Data: map[string]string{configMapKey: "x\n"}}
	if err := admin.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	var form *ledger.FormatError
	if err := keeper(b, io.Discard, &ConfigMap{Client: api}).Round(t.Context()); !errors.As(err, &form) {
		t.Errorf("Round with invalid content: got %v, want an error and no change", err)
	}
}

func apply(t *testing.T, c client.Client, file string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), file))
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var o unstructured.Unstructured
		if err := dec.Decode(&o.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		if err := c.Create(t.Context(), &o); err != nil {
			t.Fatal(err)
		}
	}
}
