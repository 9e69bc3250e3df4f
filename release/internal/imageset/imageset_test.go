package imageset

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	intoto "github.com/in-toto/attestation/go/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
	"github.com/acp-io/acp/release/internal/image"
	"github.com/acp-io/acp/release/internal/sbom"
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
	out, err := exec.CommandContext(t.Context(), "git", "-C", repositoryRoot, "ls-files", "-z", "--", "*.go", "go.mod", "go.sum", "deploy", "hack/stubs", "api", "internal", "cmd", "controllers", "web/dist").Output()
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
	limits := map[string]int64{"portal": 40e6, "acp-adapter": 25e6, "flow-collector": 30e6}
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

// checkVariants checks that an index has exactly the platforms.
func checkVariants(t *testing.T, l image.Layout, platforms ...build.Platform) {
	t.Helper()
	manifest, err := l.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range manifest.Manifests {
		got = append(got, d.Platform.String())
	}
	var want []string
	for _, p := range platforms {
		want = append(want, p.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

func platformImage(t *testing.T, l image.Layout, p build.Platform) v1.Image {
	t.Helper()
	manifest, err := l.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest.Manifests {
		if d.Platform.OS == p.OS && d.Platform.Architecture == p.Arch {
			img, err := l.Index.Image(d.Digest)
			if err != nil {
				t.Fatal(err)
			}
			config, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if config.OS != p.OS || config.Architecture != p.Arch {
				t.Errorf("the image of %s says that it is for %s/%s", p, config.OS, config.Architecture)
			}
			return img
		}
	}
	t.Fatalf("there is no image for %s", p)
	return nil
}

// checkFiles checks the names, owners and modes of an image's files, and returns their contents.
func checkFiles(t *testing.T, img v1.Image, program string) map[string][]byte {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files, modes := map[string][]byte{}, map[string]int64{}
	for _, layer := range layers {
		r, err := layer.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewReader(z)
		for {
			h, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(time.Unix(0, 0)) || len(h.PAXRecords) > 0 || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
				t.Errorf("%s: owner %d:%d, time %s, type %q, records %v", h.Name, h.Uid, h.Gid, h.ModTime, h.Typeflag, h.PAXRecords)
			}
			modes[h.Name] = h.Mode
			if files[h.Name], err = io.ReadAll(archive); err != nil {
				t.Fatal(err)
			}
		}
	}
	// No shell, no libraries, and nothing that is setuid (04000), setgid (02000) or writable by others, but for /tmp.
	want := map[string]int64{
		"etc/": 0o755, "etc/group": 0o644, "etc/passwd": 0o644, "etc/ssl/": 0o755, "etc/ssl/certs/": 0o755, "etc/ssl/certs/ca-certificates.crt": 0o644,
		"tmp/": 0o1777, "usr/": 0o755, "usr/local/": 0o755, "usr/local/bin/": 0o755, "usr/local/bin/" + program: 0o755,
	}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("files and their modes (-want +got):\n%s", diff)
	}
	if n := bytes.Count(files["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("the image has %d certificate authorities", n)
	}
	return files
}

func checkStatic(t *testing.T, executable []byte, machine elf.Machine) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(executable))
	if err != nil {
		t.Fatal(err)
	}
	if f.Machine != machine {
		t.Errorf("the executable is for %s and not for %s", f.Machine, machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the executable is linked dynamically (%s)", p.Type)
		}
	}
}

// checkUI checks that every file of the web UI's build is in the executable.
func checkUI(t *testing.T, executable []byte) {
	t.Helper()
	dist := filepath.Join(repositoryRoot, "web", "dist")
	n := 0
	err := filepath.WalkDir(dist, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && !bytes.Contains(executable, content) {
			t.Errorf("%s is not in the executable", path)
		}
		n++
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 10 {
		t.Errorf("%s has %d files; run `make web`", dist, n)
	}
}

// runInImage starts a program with the image's files as its root, as the image's user where the test may do so, and returns what it prints.
func runInImage(t *testing.T, files map[string][]byte, args ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, files[name], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/local/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65532, Gid: 65532}
		if err := os.Chmod(root, 0o755); err != nil {
			t.Fatal(err)
		}
	} else {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 65532, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("start %v in the image: %v (needs root, or user namespaces that anybody may make)\n%s", args, err, out)
	}
	return string(out)
}

// checkAttachments checks that the index and each platform's image have a signature, a bill of materials and provenance that verify, and what these say.
func checkAttachments(t *testing.T, l image.Layout, o Options, p build.Program) {
	t.Helper()
	index, err := l.Index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	subjects := []v1.Hash{l.Descriptor.Digest}
	for _, d := range index.Manifests {
		subjects = append(subjects, d.Digest)
	}
	found := map[string]map[string]json.RawMessage{}
	for _, referrer := range l.Referrers {
		manifest, err := referrer.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		content, err := image.Content(referrer)
		if err != nil {
			t.Fatal(err)
		}
		kind, predicate, err := attestation.Verify(content, o.Key.GetPublicKey(), manifest.Subject.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if manifest.ArtifactType != attestation.BundleType || manifest.Annotations["dev.sigstore.bundle.predicateType"] != kind {
			t.Errorf("a statement of the type %s is stored as %s with annotations %v", kind, manifest.ArtifactType, manifest.Annotations)
		}
		if found[manifest.Subject.Digest.String()] == nil {
			found[manifest.Subject.Digest.String()] = map[string]json.RawMessage{}
		}
		found[manifest.Subject.Digest.String()][kind] = predicate
	}
	if len(found) != len(subjects) {
		t.Errorf("there are statements about %d images and not about %d", len(found), len(subjects))
	}
	for _, subject := range subjects {
		statements := found[subject.String()]
		if len(statements) != 3 || statements[attestation.SignatureType] == nil {
			t.Errorf("%s has statements of the types %v", subject, slices.Collect(maps.Keys(statements)))
		}
		checkSBOM(t, statements[attestation.SBOMType], o, p)
		checkProvenance(t, statements[attestation.ProvenanceType], o, subject)
	}
}

// checkSBOM checks that a document has every module that the Go command finds in the executable, and every npm package of the UI.
func checkSBOM(t *testing.T, document json.RawMessage, o Options, p build.Program) {
	t.Helper()
	doc, err := spdxjson.Read(bytes.NewReader(document))
	if err != nil {
		t.Fatalf("read the SPDX document: %v", err)
	}
	if doc.SPDXVersion != "SPDX-2.3" || doc.DataLicense != "CC0-1.0" || doc.CreationInfo == nil || doc.DocumentNamespace == "" {
		t.Errorf("the document's head is incomplete: %+v", doc)
	}
	urls, ids, versions := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, pkg := range doc.Packages {
		if ids[string(pkg.PackageSPDXIdentifier)] {
			t.Errorf("two packages are called %s", pkg.PackageSPDXIdentifier)
		}
		ids[string(pkg.PackageSPDXIdentifier)] = true
		versions[pkg.PackageName] = pkg.PackageVersion
		for _, r := range pkg.PackageExternalReferences {
			urls[r.Locator] = true
		}
		if pkg.PackageName == "" || pkg.PackageVersion == "" || pkg.PackageDownloadLocation == "" {
			t.Errorf("a package lacks its name, version or location: %+v", pkg)
		}
	}
	related := map[string]bool{}
	for _, r := range doc.Relationships {
		related[string(r.RefB.ElementRefID)] = true
		if from := string(r.RefA.ElementRefID); from != "DOCUMENT" && !ids[from] || !ids[string(r.RefB.ElementRefID)] {
			t.Errorf("relationship between packages that are not there: %+v", r)
		}
	}
	for id := range ids {
		if !related[id] {
			t.Errorf("%s is related to nothing", id)
		}
	}
	// What the Go command says is linked, for the packages of this program: independent of the build information that the document was made from.
	if o.Source.Root == repositoryRoot {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{with .Replace}}{{.Path}} {{.Version}}{{else}}{{.Path}} {{.Version}}{{end}}{{end}}{{end}}", "./cmd/"+p.Name)
		list.Dir = repositoryRoot
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=", "GOWORK=off")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("list the modules of %s: %v", p.Name, err)
		}
		modules := map[string]bool{}
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, ".") {
				modules[line] = true
			}
		}
		if len(modules) < 30 {
			t.Errorf("the Go command lists only %d modules", len(modules))
		}
		for module := range modules {
			path, version, _ := strings.Cut(module, " ")
			if !urls["pkg:golang/"+path+"@"+version] {
				t.Errorf("the document lacks the Go module %s", module)
			}
		}
	}
	if versions["stdlib"] == "" || versions["golang.org/x/crypto/x509roots/fallback"] == "" || versions[build.Module] != o.Source.Version {
		t.Errorf("the document lacks the standard library, the certificate authorities or ACP itself: %v", versions)
	}
	if !p.UI {
		return
	}
	bundled, err := sbom.ReadBundled(repositoryRoot)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range bundled.Packages {
		name := key[strings.LastIndex(key, "node_modules/")+len("node_modules/"):]
		if !urls["pkg:npm/"+strings.Replace(name, "@", "%40", 1)+"@"+versions[name]] {
			t.Errorf("the document lacks the npm package %s", name)
		}
	}
	// Direct dependencies of which every page has code, styles or fonts.
	for _, name := range []string{"react", "react-dom", "@mantine/core", "@fontsource-variable/inter", "i18next"} {
		if versions[name] == "" {
			t.Errorf("the document lacks the npm package %s", name)
		}
	}
}

func checkProvenance(t *testing.T, predicate json.RawMessage, o Options, subject v1.Hash) {
	t.Helper()
	encoded, err := attestation.Statement("x", subject, attestation.ProvenanceType, predicate)
	if err != nil {
		t.Fatal(err)
	}
	var s intoto.Statement
	if err := protojson.Unmarshal(encoded, &s); err != nil {
		t.Fatalf("read the statement: %v", err)
	}
	if err := s.Validate(); err != nil {
		t.Errorf("the statement is not valid: %v", err)
	}
	var p struct {
		BuildDefinition struct {
			BuildType            string
			ExternalParameters   struct{ Commit, Version, Program string }
			ResolvedDependencies []struct {
				Name   string
				Digest map[string]string
			}
		}
		RunDetails struct{ Builder struct{ ID string } }
	}
	if err := json.Unmarshal(predicate, &p); err != nil {
		t.Fatal(err)
	}
	d := p.BuildDefinition
	if d.BuildType != attestation.BuildType || d.ExternalParameters.Commit != o.Source.Commit || d.ExternalParameters.Version != o.Source.Version || p.RunDetails.Builder.ID != o.Builder {
		t.Errorf("provenance: %s", predicate)
	}
	if len(d.ResolvedDependencies) < 2 || d.ResolvedDependencies[0].Digest["gitCommit"] != o.Source.Commit {
		t.Errorf("the provenance does not name the commit and the tools: %s", predicate)
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
	for path, want := range map[string]bool{"notes.txt": true, "own/file": true, "portal": false, "acp-adapter/index.json": true, "acp-adapter.spdx.json": true} {
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
