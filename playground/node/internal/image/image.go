// Package image builds container images of single static programs, without a registry or a container engine.
package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Write writes an image that contains one static program to a file that containerd can import. The program runs as the given user, or
// as root if user is empty. The image is the same for the same program.
func Write(file, reference, program, user string) error {
	ref, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("name an image: %w", err)
	}
	base := path.Base(program)
	content, err := layer(program, base)
	if err != nil {
		return fmt.Errorf("make the image %s: %w", reference, err)
	}
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), content)
	if err != nil {
		return fmt.Errorf("make the image %s: %w", reference, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return fmt.Errorf("make the image %s: %w", reference, err)
	}
	config.OS, config.Architecture, config.Created = "linux", runtime.GOARCH, v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{Entrypoint: []string{"/" + base}, User: user, Env: []string{"PATH=/"}}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return fmt.Errorf("make the image %s: %w", reference, err)
	}
	if err := tarball.WriteToFile(file, ref, img); err != nil {
		return fmt.Errorf("write the image %s: %w", reference, err)
	}
	return nil
}

// layer returns a layer with the program at the root, and folders that every program expects.
func layer(program, base string) (v1.Layer, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range []struct {
		name string
		mode int64
	}{{"tmp/", 0o1777}, {"etc/", 0o755}} {
		if err := w.WriteHeader(&tar.Header{Name: dir.name, Typeflag: tar.TypeDir, Mode: dir.mode, ModTime: time.Unix(0, 0)}); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct {
		name string
		mode int64
		data []byte
	}{
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{base, 0o755, data},
	} {
		if err := w.WriteHeader(
			&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(0, 0)},
		); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(1),
	)
}
