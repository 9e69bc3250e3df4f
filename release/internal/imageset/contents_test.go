package imageset

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
	"github.com/acp-io/acp/release/internal/image"
	"github.com/acp-io/acp/release/internal/sbom"
)

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
			if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(time.Unix(0, 0)) || len(h.PAXRecords) > 0 ||
				h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
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
	// The expected modules come from `go list`, independently of the build information from which the document was made.
	if o.Source.Root == repositoryRoot {
		list := exec.CommandContext(
			t.Context(),
			"go",
			"list",
			"-deps",
			"-f",
			"{{with .Module}}{{if not .Main}}{{with .Replace}}{{.Path}} {{.Version}}{{else}}{{.Path}} {{.Version}}{{end}}{{end}}{{end}}",
			"./cmd/"+p.Name,
		)
		list.Dir = repositoryRoot
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=-tags=grpcnotrace", "GOWORK=off")
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
	if d.BuildType != attestation.BuildType || d.ExternalParameters.Commit != o.Source.Commit || d.ExternalParameters.Version != o.Source.Version ||
		p.RunDetails.Builder.ID != o.Builder {
		t.Errorf("provenance: %s", predicate)
	}
	if len(d.ResolvedDependencies) < 2 || d.ResolvedDependencies[0].Digest["gitCommit"] != o.Source.Commit {
		t.Errorf("the provenance does not name the commit and the tools: %s", predicate)
	}
}
