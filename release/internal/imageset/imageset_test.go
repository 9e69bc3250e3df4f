package imageset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
	"github.com/acp-io/acp/release/internal/image"
)

var amd64 = build.Platform{OS: "linux", Arch: "amd64"}

// repositoryRoot is the folder of the main module, seen from this package.
const repositoryRoot = "../../.."

// options returns what builds images of the real programs for linux/amd64, with a fixed identity of the source.
func options(t *testing.T, root string, key *attestation.Key) Options {
	t.Helper()
	return Options{
		Source: build.Source{Root: root, Version: "v1.2.3-test+1", Commit: strings.Repeat("ab", 20), Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		Dir:    t.TempDir(), Repository: "registry.example/acp", Builder: attestation.DefaultBuilder, Platforms: []build.Platform{amd64}, Key: key,
	}
}

func newKey(t *testing.T) *attestation.Key {
	t.Helper()
	k, err := attestation.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// smallModule writes a module with a program that has the path of one of ACP's, and compiles in a second.
func smallModule(t *testing.T, dir string) string {
	t.Helper()
	files := map[string]string{
		"go.mod":                      "module " + build.Module + "\n\ngo 1.26.0\n",
		"internal/version/version.go": "package version\n\nvar version string\n\nfunc String() string { return version }\n",
		"cmd/acp-adapter/main.go":     "package main\n\nimport \"" + build.Module + "/internal/version\"\n\nfunc main() { println(version.String()) }\n",
	}
	for path, content := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func program(t *testing.T, name string) build.Program {
	t.Helper()
	i := slices.IndexFunc(build.ImagePrograms, func(p build.Program) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no image of %s", name)
	}
	return build.ImagePrograms[i]
}

// TestSameSourceSameBytes builds the adapter in two folders and expects the same layouts, byte by byte: images, bills of materials, provenance and signatures.
func TestSameSourceSameBytes(t *testing.T) {
	key := newKey(t)
	// Settings of the one who builds must change nothing.
	t.Setenv("GOFLAGS", "-ldflags=-v")
	t.Setenv("CGO_ENABLED", "1")
	t.Setenv("TZ", "Asia/Shanghai")
	first := options(t, repositoryRoot, key)
	second := options(t, copyRepository(t), key)
	var digests []map[string]string
	for _, o := range []Options{first, second} {
		o.Programs = []build.Program{program(t, "acp-adapter")}
		if _, err := Build(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		digests = append(digests, hashes(t, o.Dir))
	}
	if diff := cmp.Diff(digests[0], digests[1]); diff != "" {
		t.Errorf("the same source in another folder gave other files (-first +second):\n%s", diff)
	}
}

// copyRepository copies what Git tracks of the main module to another folder.
func copyRepository(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", repositoryRoot, "ls-files", "-z", "--", "*.go", "go.mod", "go.sum", "deploy",
		"hack/stubs", "api", "internal", "cmd", "controllers", "web/dist").
		Output()
	if err != nil {
		t.Fatalf("list the repository's files: %v", err)
	}
	to := filepath.Join(t.TempDir(), "another folder", "acp")
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		from := filepath.Join(repositoryRoot, path)
		info, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // removed and not committed yet, or a link, which no program embeds
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(to, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func hashes(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		sum := sha256.Sum256(content)
		all[strings.TrimPrefix(path, dir)] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestImages builds the image of every program and looks at what is in it, and starts the program in it.
func TestImages(t *testing.T) {
	o := options(t, repositoryRoot, newKey(t))
	o.Programs = build.ImagePrograms
	built, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]int64{"portal": 40e6, "acp-adapter": 25e6, "flow-collector": 25e6, "acp-node": 12e6}
	for i, p := range o.Programs {
		t.Run(p.Name, func(t *testing.T) {
			l, err := image.ReadLayout(filepath.Join(o.Dir, p.Name))
			if err != nil {
				t.Fatal(err)
			}
			if l.Tag != "1.2.3-test_1" || l.Descriptor.Digest.String() != built[i].Digest {
				t.Errorf("the layout has %s with the tag %s; built was %s", l.Descriptor.Digest, l.Tag, built[i].Digest)
			}
			checkVariants(t, l, amd64)
			img := platformImage(t, l, amd64)
			config, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			want := v1.Config{
				User: "65532:65532", Entrypoint: []string{"/usr/local/bin/" + p.Name}, WorkingDir: "/", Env: []string{"PATH=/usr/local/bin"},
				Labels: image.Labels(o.Source, p),
			}
			if diff := cmp.Diff(want, config.Config); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			for _, label := range []string{"version", "revision", "source", "licenses"} {
				if config.Config.Labels["org.opencontainers.image."+label] == "" {
					t.Errorf("the image has no label for its %s", label)
				}
			}
			size, err := image.PullSize(l, v1.Platform{OS: "linux", Architecture: "amd64"})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %.1f MB", p.Name, float64(size)/1e6)
			if size > limits[p.Name] {
				t.Errorf("a node downloads %.1f MB; the limit is %.0f MB", float64(size)/1e6, float64(limits[p.Name])/1e6)
			}
			files := checkFiles(t, img, p.Name)
			executable := files["usr/local/bin/"+p.Name]
			checkStatic(t, executable, elf.EM_X86_64)
			if p.UI {
				checkUI(t, executable)
				// People's time zones must work where the image has no zone files.
				if !bytes.Contains(executable, []byte("America/Argentina/ComodRivadavia")) {
					t.Error("the program has no time zones embedded")
				}
			}
			if out := runInImage(t, files, "/usr/local/bin/"+p.Name, "--version"); !strings.Contains(out, o.Source.Version) {
				t.Errorf("--version printed %q, which is not %s", out, o.Source.Version)
			}
			checkAttachments(t, l, o, p)
		})
	}
}

// TestPlatforms builds a small program for both platforms, which real programs take minutes for.
func TestPlatforms(t *testing.T) {
	arm64 := build.Platform{OS: "linux", Arch: "arm64"}
	o := options(t, smallModule(t, t.TempDir()), newKey(t))
	o.Programs, o.Platforms = []build.Program{program(t, "acp-adapter")}, []build.Platform{amd64, arm64}
	if _, err := Build(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	l, err := image.ReadLayout(filepath.Join(o.Dir, "acp-adapter"))
	if err != nil {
		t.Fatal(err)
	}
	checkVariants(t, l, amd64, arm64)
	for platform, machine := range map[build.Platform]elf.Machine{amd64: elf.EM_X86_64, arm64: elf.EM_AARCH64} {
		checkStatic(t, checkFiles(t, platformImage(t, l, platform), "acp-adapter")["usr/local/bin/acp-adapter"], machine)
	}
	checkAttachments(t, l, o, o.Programs[0])
	if len(l.Referrers) != 9 {
		t.Errorf("there are %d statements about the index and two images, and not three about each", len(l.Referrers))
	}
}

// TestPush pushes to registries with and without the referrers API, and reads the statements back as cosign looks for them.
func TestPush(t *testing.T) {
	o := options(t, smallModule(t, t.TempDir()), newKey(t))
	o.Programs = []build.Program{program(t, "acp-adapter")}
	if _, err := Build(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for label, withAPI := range map[string]bool{"referrers API": true, "referrers tag": false} {
		t.Run(label, func(t *testing.T) {
			server := httptest.NewServer(registry.New(registry.WithReferrersSupport(withAPI), registry.Logger(log.New(io.Discard, "", 0))))
			defer server.Close()
			host := strings.TrimPrefix(server.URL, "http://")
			for range 2 { // pushing again changes nothing
				pushed, err := image.Push(t.Context(), filepath.Join(o.Dir, "acp-adapter"), host+"/a/b")
				if err != nil {
					t.Fatal(err)
				}
				tag, err := name.NewTag(host + "/a/b/acp-adapter:1.2.3-test_1")
				if err != nil {
					t.Fatal(err)
				}
				d, err := remote.Get(tag, remote.WithContext(t.Context()))
				if err != nil {
					t.Fatal(err)
				}
				if got := tag.Digest(d.Digest.String()); got.String() != pushed {
					t.Errorf("the tag names %s; pushed was %s", got, pushed)
				}
				checkRemote(t, tag.Digest(d.Digest.String()), o.Key)
			}
		})
	}
}

func checkRemote(t *testing.T, ref name.Digest, key *attestation.Key) {
	t.Helper()
	list, err := remote.Referrers(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := list.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, d := range manifest.Manifests {
		referrer, err := remote.Image(ref.Context().Digest(d.Digest.String()), remote.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		// Of the manifest and not of the list, for which this registry takes the type of the configuration.
		if m, err := referrer.Manifest(); err != nil || m.ArtifactType != attestation.BundleType {
			t.Errorf("the registry has a referrer that is not a bundle: %+v, %v", m, err)
		}
		content, err := image.Content(referrer)
		if err != nil {
			t.Fatal(err)
		}
		hash, err := v1.NewHash(ref.DigestStr())
		if err != nil {
			t.Fatal(err)
		}
		kind, _, err := attestation.Verify(content, key.GetPublicKey(), hash)
		if err != nil {
			t.Fatal(err)
		}
		kinds[kind] = true
	}
	if len(manifest.Manifests) != 3 || !kinds[attestation.SignatureType] || !kinds[attestation.SBOMType] || !kinds[attestation.ProvenanceType] {
		t.Errorf("the registry lists %d statements of the types %v", len(manifest.Manifests), kinds)
	}
}

// TestDevelopmentKey checks that images that were signed with a key of one run say so.
func TestDevelopmentKey(t *testing.T) {
	o := options(t, smallModule(t, t.TempDir()), newKey(t))
	o.Programs, o.Development = []build.Program{program(t, "acp-adapter")}, true
	if _, err := Build(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, KeyFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key of one run is called %s", KeyFile)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, DevelopmentKeyFile)); err != nil {
		t.Error(err)
	}
	l, err := image.ReadLayout(filepath.Join(o.Dir, "acp-adapter"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range l.Referrers {
		m, err := r.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if m.Annotations[developmentAnnotation] != "development" {
			t.Errorf("a statement signed with a key of one run has the annotations %v", m.Annotations)
		}
	}
}

// TestBuildKeepsOtherFiles checks that a build removes what an earlier one wrote, and nothing else.
func TestBuildKeepsOtherFiles(t *testing.T) {
	o := options(t, smallModule(t, t.TempDir()), newKey(t))
	o.Programs = []build.Program{program(t, "acp-adapter")}
	for _, path := range []string{"notes.txt", "own/file", "portal/oci-layout"} {
		path = filepath.Join(o.Dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Build(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"notes.txt": true, "own/file": true, "portal": false, "acp-adapter/index.json": true, "acp-adapter.spdx.json": true,
	} {
		if _, err := os.Stat(filepath.Join(o.Dir, path)); (err == nil) != want {
			t.Errorf("%s is there: %v", path, err == nil)
		}
	}
}

// TestNoUI checks that no portal is published without its web UI.
func TestNoUI(t *testing.T) {
	o := options(t, smallModule(t, t.TempDir()), newKey(t))
	o.Programs = []build.Program{program(t, "portal")}
	if _, err := Build(context.Background(), o); err == nil || !strings.Contains(err.Error(), "make web") {
		t.Errorf("a portal without its UI was built: %v", err)
	}
}
