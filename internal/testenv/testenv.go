// Package testenv starts real API servers for tests: an etcd and a kube-apiserver each, through controller-runtime's
// envtest. Without the binaries a test fails and says how to get them; it never skips.
package testenv

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const assets = "KUBEBUILDER_ASSETS"

const howTo = "run `make test`, or set " + assets +
	" to the output of `go run ./cmd/acp-playground parts --print kubebuilder-assets` (in playground/)"

// Start starts an API server with the CRDs in dirs, which are relative to the repository's root. It stops with the test.
func Start(t testing.TB, dirs ...string) *rest.Config {
	t.Helper()
	return StartEnvironment(t, dirs...).Config
}

// StartEnvironment is Start for tests that stop and start the server themselves.
func StartEnvironment(t testing.TB, dirs ...string) *envtest.Environment {
	t.Helper()
	folder := os.Getenv(assets)
	if folder == "" {
		t.Fatalf("%s is not set: %s", assets, howTo)
	}
	for _, binary := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(folder, binary)); err != nil {
			t.Fatalf("%s has no %s: %s", assets, binary, howTo)
		}
	}
	env := &envtest.Environment{BinaryAssetsDirectory: folder, ErrorIfCRDPathMissing: true}
	for _, d := range dirs {
		env.CRDDirectoryPaths = append(env.CRDDirectoryPaths, filepath.Join(Root(t), d))
	}
	if _, err := env.Start(); err != nil {
		t.Fatalf("start an API server: %v", err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the API server: %v", err)
		}
	})
	return env
}

// Root is the folder of the repository.
func Root(t testing.TB) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("the test's own path is unknown")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}
