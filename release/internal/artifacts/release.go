package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
	"github.com/acp-io/acp/release/internal/imageset"
)

// PluginPlatforms lists the platforms for which the kubectl plugin is published.
var PluginPlatforms = []build.Platform{
	{OS: "linux", Arch: "amd64"},
	{OS: "linux", Arch: "arm64"},
	{OS: "darwin", Arch: "amd64"},
	{OS: "darwin", Arch: "arm64"},
	{OS: "windows", Arch: "amd64"},
}

// The names of files in a release.
const (
	checksumsFile    = "SHA256SUMS"
	signatureFile    = "SHA256SUMS.sigstore.json"
	notesFile        = "RELEASE_NOTES.md"
	krewManifestFile = "acp.yaml"
	imagesFolder     = "images"
)

// Options say what to release.
type Options struct {
	// Images say how images are built; their Dir is not used.
	Images imageset.Options
	// Dir is the folder to write to, which is emptied first.
	Dir string
	// Snapshot is a release that nobody publishes: the work tree may differ from the commit, the changelog may lack the version, and the key may be of this
	// run.
	Snapshot bool
	// Platforms are those of the plugin.
	Platforms []build.Platform
}

// Check reports why a release may not be made, before anything is built.
func Check(ctx context.Context, o Options) error {
	s := o.Images.Source
	if err := build.CheckRelease(s.Version); err != nil {
		return err
	}
	if o.Snapshot {
		return nil
	}
	if s.Modified {
		return errors.New(
			"the work tree has changes that are not committed, so nobody could build the same; commit or stash them, or set SNAPSHOT=1 for files " +
				"that are not published",
		)
	}
	if o.Images.Development {
		return errors.New(
			"a release is signed; set COSIGN_KEY to the file of the private key and COSIGN_PASSWORD to its password, or set SNAPSHOT=1 for files " +
				"that are not published",
		)
	}
	tagged, err := exec.CommandContext(ctx, "git", "-C", s.Root, "rev-parse", "--quiet", "--verify", "refs/tags/"+s.Version+"^{commit}").Output()
	if commit := strings.TrimSpace(string(tagged)); err == nil && commit != s.Commit {
		return fmt.Errorf("the tag %s is on the commit %s, and the work tree on %s; check the tag out, or choose another version", s.Version, commit, s.Commit)
	}
	_, err = notes(o)
	return err
}

// notes returns the changelog's section of the version, and for a snapshot that lacks one what is not released yet.
func notes(o Options) (string, error) {
	changelog, err := os.ReadFile(filepath.Join(o.Images.Source.Root, "CHANGELOG.md"))
	if err != nil {
		return "", fmt.Errorf("read the changelog: %w", err)
	}
	text, err := Notes(string(changelog), strings.TrimPrefix(o.Images.Source.Version, "v"))
	if err != nil && o.Snapshot {
		return Notes(string(changelog), "Unreleased")
	}
	return text, err
}

// Release makes all files of a release and returns their names, in the order in which they were made. An earlier release is replaced only when all are made.
func Release(ctx context.Context, o Options) ([]string, error) {
	if err := Check(ctx, o); err != nil {
		return nil, err
	}
	if err := checkFolder(o.Dir); err != nil {
		return nil, err
	}
	partial := filepath.Clean(o.Dir) + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return nil, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return nil, fmt.Errorf("make a folder for the release: %w", err)
	}
	defer func() { _ = os.RemoveAll(partial) }()
	names, err := makeFiles(ctx, o, partial)
	if err != nil {
		return nil, err
	}
	// A commit that is checked out meanwhile is built in part, and the provenance would not say so.
	now, err := build.ReadSource(ctx, o.Images.Source.Root, o.Images.Source.Version)
	if err != nil {
		return nil, err
	}
	if now.Commit != o.Images.Source.Commit || now.Modified != o.Images.Source.Modified {
		return nil, errors.New("the work tree was changed while the release was built; build it again")
	}
	if err := os.RemoveAll(o.Dir); err != nil {
		return nil, fmt.Errorf("remove the earlier release: %w", err)
	}
	if err := os.Rename(partial, o.Dir); err != nil {
		return nil, fmt.Errorf("put the release in its place: %w", err)
	}
	return names, nil
}

// makeFiles writes all files of a release to a folder: first what takes no time and may fail.
func makeFiles(ctx context.Context, o Options, dir string) ([]string, error) {
	s := o.Images.Source
	version := strings.TrimPrefix(s.Version, "v")
	r := &writer{dir: dir}

	text, err := notes(o)
	if err != nil {
		return nil, err
	}
	r.write(notesFile, []byte(text))

	charts, err := Charts(filepath.Join(s.Root, "deploy", "charts"), version, s.Time)
	if err != nil {
		return nil, err
	}
	for _, c := range charts {
		r.write(c.Name, c.Content)
	}

	archives, err := plugins(ctx, s, o.Platforms)
	if err != nil {
		return nil, err
	}
	for _, a := range archives {
		r.write(a.Name, a.Content)
	}
	manifest, err := KrewManifest(s.Version, archives)
	if err != nil {
		return nil, err
	}
	r.write(krewManifestFile, manifest)

	images := o.Images
	images.Dir = filepath.Join(dir, imagesFolder)
	built, err := imageset.Build(ctx, images)
	if err != nil {
		return nil, err
	}
	for _, b := range built {
		files, err := Folder(filepath.Join(images.Dir, b.Name), "")
		if err != nil {
			return nil, err
		}
		archive, err := Tar(files, s.Time)
		if err != nil {
			return nil, err
		}
		r.write(b.Name+"_"+version+".oci.tar", archive)
		r.copy(b.Name+"_"+version+".spdx.json", filepath.Join(images.Dir, b.Name+".spdx.json"))
	}
	r.copy(imageset.ListFile, filepath.Join(images.Dir, imageset.ListFile))

	if r.err != nil {
		return nil, r.err
	}
	sums, err := Checksums(r.paths())
	if err != nil {
		return nil, err
	}
	signature, err := attestation.SignFile(ctx, o.Images.Key, sums)
	if err != nil {
		return nil, err
	}
	if err := attestation.VerifyFile(signature, o.Images.Key.GetPublicKey(), sums); err != nil {
		return nil, fmt.Errorf("the signature that was just made does not verify: %w", err)
	}
	r.write(checksumsFile, sums)
	r.write(signatureFile, signature)
	keyFile := imageset.KeyFile
	if o.Images.Development {
		keyFile = imageset.DevelopmentKeyFile
	}
	r.write(keyFile, o.Images.Key.PublicPEM())
	return r.names, r.err
}

// plugins builds the kubectl plugin and returns an archive for each platform: ZIP for Windows, compressed tar for the others.
func plugins(ctx context.Context, s build.Source, platforms []build.Platform) ([]PluginArchive, error) {
	license, err := os.ReadFile(filepath.Join(s.Root, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("read the license: %w", err)
	}
	work, err := os.MkdirTemp("", "acp-release-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	var all []PluginArchive
	for _, p := range platforms {
		a := PluginArchive{
			Platform:   p,
			Executable: build.Plugin.Name,
			Name:       strings.Join([]string{build.Plugin.Name, strings.TrimPrefix(s.Version, "v"), p.OS, p.Arch}, "_") + ".tar.gz",
		}
		pack := TarGz
		if p.OS == "windows" {
			a.Executable += ".exe"
			a.Name = strings.TrimSuffix(a.Name, ".tar.gz") + ".zip"
			pack = Zip
		}
		path := filepath.Join(work, p.OS+"-"+p.Arch)
		if err := build.Compile(ctx, s, build.Plugin, p, path); err != nil {
			return nil, err
		}
		executable, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the plugin: %w", err)
		}
		if a.Content, err = pack([]File{{a.Executable, 0o755, executable}, {"LICENSE", 0o644, license}}, s.Time); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// checkFolder refuses a folder that has something else than a release, so that a wrong name loses nothing.
func checkFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the folder of the release: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, checksumsFile)); len(entries) > 0 && err != nil {
		return fmt.Errorf("the folder %s has files that are not of a release; name another, or remove it", dir)
	}
	return nil
}

// writer writes files to a folder until the first error.
type writer struct {
	dir   string
	names []string
	err   error
}

func (w *writer) write(name string, content []byte) {
	if w.err != nil {
		return
	}
	if err := os.WriteFile(filepath.Join(w.dir, name), content, 0o644); err != nil {
		w.err = fmt.Errorf("write a file of the release: %w", err)
		return
	}
	w.names = append(w.names, name)
}

func (w *writer) copy(name, from string) {
	if w.err != nil {
		return
	}
	content, err := os.ReadFile(from)
	if err != nil {
		w.err = fmt.Errorf("read a file of the release: %w", err)
		return
	}
	w.write(name, content)
}

func (w *writer) paths() []string {
	all := make([]string, len(w.names))
	for i, n := range w.names {
		all[i] = filepath.Join(w.dir, n)
	}
	return all
}
