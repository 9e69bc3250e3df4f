//go:build cosign

package imageset

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
	"github.com/acp-io/acp/release/internal/image"
)

// TestCosign signs an image and a file with a key that cosign made, and has cosign check the signature, the bill of materials and the provenance: in the layout
// and in registries with and without the referrers API. The commands are those of docs/operations/install-without-helm.md.
func TestCosign(t *testing.T) {
	cosign := os.Getenv("COSIGN")
	if cosign == "" {
		t.Fatal("COSIGN does not name the cosign program; run `make verify-images`")
	}
	dir := t.TempDir()
	t.Setenv("COSIGN_PASSWORD", "secret")
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), cosign, args...)
		cmd.Dir = dir
		// Without a network and without the trust roots of the public Sigstore services.
		cmd.Env = append(os.Environ(), "TUF_ROOT="+filepath.Join(dir, "tuf"), "HTTPS_PROXY=http://127.0.0.1:9")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, name := range []string{"cosign", "other"} {
		if out, err := run("generate-key-pair", "--output-key-prefix", name); err != nil {
			t.Fatalf("make a key: %v\n%s", err, out)
		}
	}
	key, err := attestation.LoadKey(filepath.Join(dir, "cosign.key"), "secret")
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, smallModule(t, t.TempDir()), key)
	o.Programs = []build.Program{program(t, "acp-adapter")}
	if _, err := Build(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	layout := filepath.Join(o.Dir, "acp-adapter")
	check := func(t *testing.T, target ...string) {
		t.Helper()
		for _, command := range [][]string{{"verify"}, {"verify-attestation", "--type", "spdxjson"}, {"verify-attestation", "--type", "slsaprovenance1"}} {
			for public, want := range map[string]bool{"cosign.pub": true, "other.pub": false} {
				args := append(append(append([]string{}, command...), "--key", public, "--insecure-ignore-tlog=true"), target...)
				if out, err := run(args...); (err == nil) != want {
					t.Errorf("cosign %s: %v\n%s", strings.Join(args, " "), err, out)
				}
			}
		}
		args := append([]string{"verify-attestation", "--type", "cyclonedx", "--key", "cosign.pub", "--insecure-ignore-tlog=true"}, target...)
		if out, err := run(args...); err == nil {
			t.Errorf("cosign found a statement that was not made:\n%s", out)
		}
	}
	t.Run("layout", func(t *testing.T) { check(t, "--local-image", layout) })
	for label, withAPI := range map[string]bool{"referrers API": true, "referrers tag": false} {
		t.Run(label, func(t *testing.T) {
			server := httptest.NewServer(registry.New(registry.WithReferrersSupport(withAPI), registry.Logger(log.New(io.Discard, "", 0))))
			defer server.Close()
			host := strings.TrimPrefix(server.URL, "http://")
			digest, err := image.Push(t.Context(), layout, host+"/acp")
			if err != nil {
				t.Fatal(err)
			}
			check(t, host+"/acp/acp-adapter:1.2.3-test_1")
			check(t, digest)
			l, err := image.ReadLayout(layout)
			if err != nil {
				t.Fatal(err)
			}
			manifest, err := l.Index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range manifest.Manifests {
				check(t, host+"/acp/acp-adapter@"+d.Digest.String())
			}
		})
	}
	t.Run("file", func(t *testing.T) {
		content := []byte("0123  file\n")
		bundle, err := attestation.SignFile(t.Context(), key, content)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string][]byte{"SHA256SUMS": content, "changed": append(content, ' '), "SHA256SUMS.sigstore.json": bundle} {
			if err := os.WriteFile(filepath.Join(dir, name), c, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range map[string]bool{"SHA256SUMS": true, "changed": false} {
			if out, err := run(
				"verify-blob",
				"--key",
				"cosign.pub",
				"--bundle",
				"SHA256SUMS.sigstore.json",
				"--insecure-ignore-tlog=true",
				name,
			); (err == nil) != want {
				t.Errorf("cosign verify-blob %s: %v\n%s", name, err, out)
			}
		}
	})
}
