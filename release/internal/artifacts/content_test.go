package artifacts

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
	"github.com/acp-io/acp/release/internal/image"
)

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
