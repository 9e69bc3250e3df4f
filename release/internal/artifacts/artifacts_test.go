package artifacts

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
	"github.com/acp-io/acp/release/internal/image"
	"github.com/acp-io/acp/release/internal/imageset"
)

const changelog = `# Changelog

Text before.

## Unreleased

- Not yet.

## [0.2.0] - 2026-02-02

### Added

- Second ` + "`## 0.1.0`" + `.

## 0.1.0 - 2026-01-01

- First.

## 0.0.1
`

func TestNotes(t *testing.T) {
	for version, want := range map[string]string{
		"0.2.0":      "### Added\n\n- Second `## 0.1.0`.\n",
		"0.1.0":      "- First.\n",
		"Unreleased": "- Not yet.\n",
	} {
		got, err := Notes(changelog, version)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
	for _, version := range []string{"0.0.1", "0.1", "1.0.0", "0.2.0]"} {
		if got, err := Notes(changelog, version); err == nil {
			t.Errorf("%s has the notes %q", version, got)
		}
	}
}

func TestCheckRelease(t *testing.T) {
	for version, want := range map[string]bool{
		"0.1.0": true, "v0.1.0": true, "1.2.3-rc.1": true,
		"0.1": false, "1": false, "": false, "latest": false, "0.1.0+build": false,
		"01.2.3": false, "0.1.0-": false, "v": false, "80620d6-dirty": false, "vv0.1.0": false,
	} {
		if err := build.CheckRelease(version); (err == nil) != want {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// repository makes a Git repository with what a release needs: a small plugin, a small program for each image but the portal, a changelog, a license and
// charts.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	main := "package main\n\nimport \"" + build.Module + "/internal/version\"\n\nfunc main() { println(version.String()) }\n"
	files := map[string]string{
		"go.mod":                      "module " + build.Module + "\n\ngo 1.26.0\n",
		"internal/version/version.go": "package version\n\nvar version string\n\nfunc String() string { return version }\n",
		"cmd/acp-adapter/main.go":     main,
		"cmd/kubectl-acp/main.go":     main,
		"CHANGELOG.md":                changelog,
		"LICENSE":                     "license\n",
		".gitignore":                  "/dist/\n",
		"deploy/charts/acp/Chart.yaml": "apiVersion: v2\nname: acp\nversion: 0.0.0\nappVersion: \"0.0.0\"\ndependencies:\n" +
			"  - {name: acp-crds, version: 0.0.0, repository: \"file://../acp-crds\", condition: crds.enabled}\n",
		"deploy/charts/acp/values.yaml":      "crds: {enabled: true}\n",
		"deploy/charts/acp/.helmignore":      "*.gotmpl\n",
		"deploy/charts/acp/README.gotmpl":    "template\n",
		"deploy/charts/acp/templates/a.yaml": "# {{ .Chart.AppVersion }}\n",
		"deploy/charts/acp-crds/Chart.yaml":  "apiVersion: v2\nname: acp-crds\nversion: 0.0.0\nappVersion: \"0.0.0\"\n",
		"deploy/charts/other/Chart.yaml":     "apiVersion: v2\nname: other\nversion: 0.0.0\nappVersion: v9\n",
		"deploy/charts/golden_test.go":       "package charts\n",
		"deploy/charts/testdata/x.yaml":      "a: 1\n",
	}
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, root, "init", "--quiet")
	git(t, root, "add", ".")
	git(t, root, "commit", "--quiet", "--message", "first")
	return root
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(
		os.Environ(),
		"GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_CONFIG_GLOBAL=/dev/null",
	)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func options(t *testing.T, root, version string, key *attestation.Key) Options {
	t.Helper()
	s, err := build.ReadSource(t.Context(), root, version)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(build.ImagePrograms, func(p build.Program) bool { return p.Name == "acp-adapter" })
	return Options{
		Dir:       filepath.Join(t.TempDir(), "release"),
		Platforms: PluginPlatforms,
		Images: imageset.Options{
			Source:     s,
			Programs:   build.ImagePrograms[i : i+1],
			Platforms:  []build.Platform{{OS: "linux", Arch: "amd64"}},
			Repository: "registry.example/acp",
			Builder:    "https://example.com/builder",
			Key:        key,
		},
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

// TestCheck checks what a release refuses, and that a snapshot is not as strict.
func TestCheck(t *testing.T) {
	key := newKey(t)
	for name, c := range map[string]struct {
		version  string
		prepare  func(t *testing.T, root string)
		change   func(*Options)
		wants    string
		snapshot bool // whether a snapshot is made all the same
	}{
		"as it should be": {"0.1.0", nil, nil, "", true},
		"the tag is here": {"0.1.0", func(t *testing.T, root string) { git(t, root, "tag", "v0.1.0") }, nil, "", true},
		"a bad version":   {"0.1", nil, nil, "not a version that can be released", false},
		"a changed file": {"0.1.0", func(t *testing.T, root string) {
			if err := os.WriteFile(filepath.Join(root, "LICENSE"), []byte("other\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, nil, "not committed", true},
		"a new file": {"0.1.0", func(t *testing.T, root string) {
			if err := os.WriteFile(filepath.Join(root, "cmd", "acp-adapter", "more.go"), []byte("package main\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, nil, "not committed", true},
		"no key":                     {"0.1.0", nil, func(o *Options) { o.Images.Development = true }, "COSIGN_KEY", true},
		"not in the changelog":       {"0.3.0", nil, nil, "rename the section Unreleased", true},
		"an empty changelog section": {"0.0.1", nil, nil, "rename the section Unreleased", true},
		"the tag is elsewhere": {"0.1.0", func(t *testing.T, root string) {
			git(t, root, "tag", "v0.1.0")
			git(t, root, "commit", "--quiet", "--allow-empty", "--message", "second")
		}, nil, "the tag v0.1.0 is on the commit", true},
	} {
		t.Run(name, func(t *testing.T) {
			root := repository(t)
			if c.prepare != nil {
				c.prepare(t, root)
			}
			o := options(t, root, c.version, key)
			if c.change != nil {
				c.change(&o)
			}
			switch err := Check(t.Context(), o); {
			case c.wants == "" && err != nil:
				t.Error(err)
			case c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)):
				t.Errorf("the error is %v and does not say %q", err, c.wants)
			}
			o.Snapshot = true
			if err := Check(t.Context(), o); (err == nil) != c.snapshot {
				t.Errorf("a snapshot: %v", err)
			}
		})
	}
}

// TestRelease makes a release twice, compares all bytes, and looks at each kind of file.
func TestRelease(t *testing.T) {
	root, key := repository(t), newKey(t)
	o := options(t, root, "0.1.0", key)
	names, err := Release(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"RELEASE_NOTES.md",
		"SHA256SUMS",
		"SHA256SUMS.sigstore.json",
		"acp-0.1.0.tgz",
		"acp-adapter_0.1.0.oci.tar",
		"acp-adapter_0.1.0.spdx.json",
		"acp-crds-0.1.0.tgz",
		"acp.yaml",
		"cosign.pub",
		"images.json",
		"kubectl-acp_0.1.0_darwin_amd64.tar.gz",
		"kubectl-acp_0.1.0_darwin_arm64.tar.gz",
		"kubectl-acp_0.1.0_linux_amd64.tar.gz",
		"kubectl-acp_0.1.0_linux_arm64.tar.gz",
		"kubectl-acp_0.1.0_windows_amd64.zip",
		"other-0.1.0.tgz",
	}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(names))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	files := map[string][]byte{}
	for _, n := range names {
		if files[n], err = os.ReadFile(filepath.Join(o.Dir, n)); err != nil {
			t.Fatal(err)
		}
	}

	again := options(t, root, "v0.1.0", key) // with the "v" it is the same version
	if _, err := Release(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	for n, content := range files {
		second, err := os.ReadFile(filepath.Join(again.Dir, n))
		if err != nil || !bytes.Equal(content, second) {
			t.Errorf("%s differs between two runs (%v)", n, err)
		}
	}

	checkSums(t, files, key)
	checkPlugins(t, files)
	checkCharts(t, files)
	if got := string(files["RELEASE_NOTES.md"]); got != "- First.\n" {
		t.Errorf("release notes: %q", got)
	}
	checkImageArchive(t, o.Dir, files["acp-adapter_0.1.0.oci.tar"])
}

func checkSums(t *testing.T, files map[string][]byte, key *attestation.Key) {
	t.Helper()
	public, err := attestation.ParsePublicKey(files["cosign.pub"])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(files["cosign.pub"], key.PublicPEM()) {
		t.Error("the release has another public key")
	}
	if err := attestation.VerifyFile(files["SHA256SUMS.sigstore.json"], public, files["SHA256SUMS"]); err != nil {
		t.Error(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(files["SHA256SUMS"])) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	for name, content := range files {
		if slices.Contains([]string{"SHA256SUMS", "SHA256SUMS.sigstore.json", "cosign.pub"}, name) {
			continue
		}
		sum := sha256.Sum256(content)
		if sums[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("the checksum of %s is %q", name, sums[name])
		}
	}
	if len(sums) != len(files)-3 {
		t.Errorf("there are checksums of %d files, and %d files", len(sums), len(files)-3)
	}
}

// checkPlugins checks the archives and the krew manifest, by the rules that krew's index has for manifests.
func checkPlugins(t *testing.T, files map[string][]byte) {
	t.Helper()
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict(files["acp.yaml"], &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata["name"] != "acp" {
		t.Errorf("the krew manifest is a %s of %s called %s", plugin.Kind, plugin.APIVersion, plugin.Metadata["name"])
	}
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+`).MatchString(plugin.Spec.Version) || plugin.Spec.ShortDescription == "" ||
		len(plugin.Spec.ShortDescription) > 50 ||
		strings.ContainsAny(plugin.Spec.ShortDescription, "\r\n") ||
		strings.HasSuffix(plugin.Spec.ShortDescription, ".") ||
		len(plugin.Spec.Platforms) != 5 {
		t.Errorf("krew refuses %+v", plugin.Spec)
	}
	selected := map[string]bool{}
	for _, p := range plugin.Spec.Platforms {
		os, arch := p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]
		selected[os+"/"+arch] = true
		name := p.URI[strings.LastIndex(p.URI, "/")+1:]
		sum := sha256.Sum256(files[name])
		if p.SHA256 != hex.EncodeToString(sum[:]) ||
			!strings.HasPrefix(p.URI, build.Repository+"/releases/download/v0.1.0/kubectl-acp_0.1.0_"+os+"_"+arch+".") {
			t.Errorf("krew does not find %s with its checksum", p.URI)
		}
		entries := unpack(t, name, files[name])
		// krew copies the named files and runs bin below them.
		var copied []string
		for _, f := range p.Files {
			if f.To != "." || entries[f.From] == nil {
				t.Errorf("%s: %s is not in the archive", name, f.From)
			}
			copied = append(copied, f.From)
		}
		if len(entries) != 2 || !slices.Contains(copied, p.Bin) || entries[p.Bin].mode&0o111 == 0 || entries["LICENSE"].mode&0o111 != 0 {
			t.Errorf("%s has %v", name, entries)
		}
		if !bytes.Contains(entries[p.Bin].content, []byte("v0.1.0")) {
			t.Errorf("the program in %s does not have the version", name)
		}
		if want := map[string]string{"linux": "\x7fELF", "windows": "MZ", "darwin": "\xcf\xfa\xed\xfe"}[os]; !bytes.HasPrefix(
			entries[p.Bin].content,
			[]byte(want),
		) {
			t.Errorf("the program in %s is not for %s", name, os)
		}
	}
	for _, p := range PluginPlatforms {
		if !selected[p.String()] {
			t.Errorf("krew has nothing for %s", p)
		}
	}
}

type entry struct {
	mode    fs.FileMode
	content []byte
}

func unpack(t *testing.T, name string, archive []byte) map[string]*entry {
	t.Helper()
	all := map[string]*entry{}
	if strings.HasSuffix(name, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			content, err := fs.ReadFile(r, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			all[f.Name] = &entry{f.Mode(), content}
		}
		return all
	}
	var in io.Reader = bytes.NewReader(archive)
	if strings.HasSuffix(name, "gz") {
		z, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		if z.Name != "" || !z.ModTime.IsZero() {
			t.Errorf("%s records a name or a time", name)
		}
		in = z
	}
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Uname != "" || all[h.Name] != nil {
			t.Errorf("%s: %s belongs to %d (%s) or is there twice", name, h.Name, h.Uid, h.Uname)
		}
		all[h.Name] = &entry{fs.FileMode(h.Mode), content}
	}
}

func checkCharts(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, wants := range map[string][2]string{"acp": {"0.1.0", "0.1.0"}, "acp-crds": {"0.1.0", "0.1.0"}, "other": {"0.1.0", "v9"}} {
		c, err := loader.LoadArchive(bytes.NewReader(files[name+"-0.1.0.tgz"]))
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{c.Metadata.Version, c.Metadata.AppVersion}; c.Name() != name || got != wants {
			t.Errorf("%s: %s %v", name, c.Name(), got)
		}
		if name != "acp" {
			continue
		}
		if len(c.Dependencies()) != 1 || c.Dependencies()[0].Metadata.Version != "0.1.0" || c.Metadata.Dependencies[0].Version != "0.1.0" ||
			c.Metadata.Dependencies[0].Condition != "crds.enabled" {
			t.Errorf("the chart's dependencies are %+v", c.Metadata.Dependencies[0])
		}
		if len(c.Templates) != 1 || c.Values["crds"] == nil {
			t.Errorf("the chart has %d templates and the values %v", len(c.Templates), c.Values)
		}
		for _, f := range c.Raw {
			if strings.HasSuffix(f.Name, ".gotmpl") {
				t.Errorf("the package has %s, which .helmignore names", f.Name)
			}
		}
	}
}

// checkImageArchive checks that the archive is the layout.
func checkImageArchive(t *testing.T, dir string, archive []byte) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "acp-adapter")
	for name, e := range unpack(t, "acp-adapter.tar", archive) {
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, e.content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	unpacked, err := image.ReadLayout(to)
	if err != nil {
		t.Fatal(err)
	}
	written, err := image.ReadLayout(filepath.Join(dir, "images", "acp-adapter"))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked.Tag != "0.1.0" || unpacked.Descriptor.Digest != written.Descriptor.Digest || len(unpacked.Referrers) != 6 {
		t.Errorf("the archive has %s with the tag %s and %d statements", unpacked.Descriptor.Digest, unpacked.Tag, len(unpacked.Referrers))
	}
}

// TestReleaseFails checks that a release that fails leaves an earlier one as it is, and that the next one is made.
func TestReleaseFails(t *testing.T) {
	root, key := repository(t), newKey(t)
	o := options(t, root, "0.1.0", key)
	o.Platforms = PluginPlatforms[:1]
	if _, err := Release(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	sums := filepath.Join(o.Dir, "SHA256SUMS")
	before, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	check := func(wants string, o Options) {
		t.Helper()
		if _, err := Release(t.Context(), o); err == nil || !strings.Contains(err.Error(), wants) {
			t.Errorf("the error is %v and does not say %q", err, wants)
		}
		if after, err := os.ReadFile(sums); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the earlier release was changed (%v)", err)
		}
	}
	broken := o
	broken.Platforms = []build.Platform{{OS: "plan", Arch: "amd64"}}
	check("compile kubectl-acp", broken)
	// The source was another commit when the build began.
	git(t, root, "commit", "--quiet", "--allow-empty", "--message", "second")
	check("changed while the release was built", o)
	if _, err := os.Stat(o.Dir + ".partial"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a release that failed left files (%v)", err)
	}
	again := options(t, root, "0.1.0", key)
	again.Dir, again.Platforms = o.Dir, o.Platforms
	if _, err := Release(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(sums); err != nil || bytes.Equal(before, after) {
		t.Errorf("the release of another commit has the same files (%v)", err)
	}
}

// TestReleaseFolder checks that a folder with other files is left alone.
func TestReleaseFolder(t *testing.T) {
	o := options(t, repository(t), "0.1.0", newKey(t))
	o.Dir = t.TempDir()
	own := filepath.Join(o.Dir, "thesis.txt")
	if err := os.WriteFile(own, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Release(context.Background(), o); err == nil || !strings.Contains(err.Error(), "not of a release") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
}

// TestArchiveTimes checks that archives hold the time that they are given, in whole seconds.
func TestArchiveTimes(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	files := []File{{"b", 0o644, nil}, {"a", 0o755, []byte("x")}}
	tarred, err := Tar(files, when)
	if err != nil {
		t.Fatal(err)
	}
	h, err := tar.NewReader(bytes.NewReader(tarred)).Next()
	if err != nil || h.Name != "a" || !h.ModTime.Equal(when.Truncate(time.Second)) {
		t.Errorf("the first entry is %+v, %v", h, err)
	}
	zipped, err := Zip(files, when)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	if err != nil || r.File[0].Name != "a" || when.Sub(r.File[0].Modified).Abs() > 2*time.Second {
		t.Errorf("the first entry is %+v, %v", r.File[0], err)
	}
}
