package image

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestImage(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	const reference = "registry.local/test/program:1"
	digests := map[string]bool{}
	for _, file := range []string{"first.tar", "second.tar"} {
		path := filepath.Join(dir, file)
		if err := Write(path, reference, program, "65532:65532"); err != nil {
			t.Fatal(err)
		}
		tag, err := name.NewTag(reference)
		if err != nil {
			t.Fatal(err)
		}
		img, err := tarball.ImageFromPath(path, &tag)
		if err != nil {
			t.Fatal(err)
		}
		id, err := img.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		digests[id.String()] = true
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != "65532:65532" || len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/program" || config.OS != "linux" {
			t.Errorf("the configuration is %+v", config)
		}
		files := tar.NewReader(mutate.Extract(img))
		found := false
		for {
			h, err := files.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			found = found || h.Name == "program" && h.Mode&0o111 != 0
		}
		if !found {
			t.Error("the image has no program that can be run")
		}
	}
	if len(digests) != 1 {
		t.Errorf("the same program made different images: %v", digests)
	}
}
