package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/testenv"
)

// TestOnACluster checks that objects read from a cluster mean the same as the files they were created from, and that the API server
// rejects the same objects as the reader of files.
func TestOnACluster(t *testing.T) {
	server := testenv.Start(t, testenv.Options{CRDs: []string{"deploy/crds"}})
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	set, err := (&manifest.Reader{}).Read(ctx, "testdata/diff/old")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(set) {
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig := writeKubeconfig(t, server.Config)

	files, fromFiles, _ := run(t, "", "render", "-f", "testdata/diff/old")
	cluster, fromCluster, errs := run(t, "", "render", "--kubeconfig", kubeconfig)
	if files != cluster || fromFiles != fromCluster || !strings.Contains(fromCluster, "acp-redis-bobs-") {
		t.Errorf("exit code %d from files and %d from the cluster (%s); rendered\n%s\nand\n%s", files, cluster, errs, fromFiles, fromCluster)
	}
	if code, out, errs := run(t, "", "diff", "-f", "testdata/diff/old", "--kubeconfig", kubeconfig); code != ExitFine || out != "" {
		t.Errorf("the cluster differs from its own files: code %d\n%s%s", code, out, errs)
	}
	code, out, errs := run(t, "", "diff", "-f", "testdata/diff/new", "--kubeconfig", kubeconfig)
	if code != ExitFindings || !strings.Contains(out, "grants/every") {
		t.Errorf("a change against the cluster: code %d\n%s%s", code, out, errs)
	}
	if code, _, errs := run(t, "", "lint", "--kubeconfig", kubeconfig, "--context", "none"); code != ExitInvalid || !strings.Contains(errs, "none") {
		t.Errorf("a context that is not there: code %d, %s", code, errs)
	}
}

func TestOnAClusterWithoutTheKinds(t *testing.T) {
	server := testenv.Start(t, testenv.Options{})
	code, _, errs := run(t, "", "lint", "--kubeconfig", writeKubeconfig(t, server.Config))
	if code != ExitInvalid || !strings.Contains(errs, "apply deploy/crds") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func objects(set *manifest.Set) []client.Object {
	var out []client.Object
	for _, o := range set.Input.ResourceClasses {
		out = append(out, o)
	}
	for _, o := range set.Input.SubjectClasses {
		out = append(out, o)
	}
	for _, o := range set.Input.Resources {
		out = append(out, o)
	}
	for _, o := range set.Input.Policies {
		out = append(out, o)
	}
	return out
}

func writeKubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}
	text, err := clientcmd.Write(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
