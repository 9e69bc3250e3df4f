package artifacts

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
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
