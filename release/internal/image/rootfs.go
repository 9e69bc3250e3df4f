package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// User is the numeric user and group that programs run as. Kubernetes accepts only a numeric user with runAsNonRoot.
const User = "65532:65532"

// ProgramFolder holds the program in an image, without the leading slash.
const ProgramFolder = "usr/local/bin"

const certificatesFile = "etc/ssl/certs/ca-certificates.crt"

// file is an entry of a layer. Entries whose names end in a slash are folders.
type file struct {
	name    string
	mode    int64
	content []byte
}

// baseLayer returns the layer that every image begins with: the names of the user, the certificate authorities that Mozilla trusts, and /tmp.
// It depends on nothing of the machine, so it is the same in all images, and from release to release until the authorities change.
func baseLayer() (v1.Layer, error) {
	return layer([]file{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{certificatesFile, 0o644, certificates()},
		{"tmp/", 0o1777, nil},
	})
}

// programLayer returns the layer with the executable.
func programLayer(name, executable string) (v1.Layer, error) {
	content, err := os.ReadFile(executable)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	return layer([]file{
		{"usr/", 0o755, nil},
		{"usr/local/", 0o755, nil},
		{ProgramFolder + "/", 0o755, nil},
		{ProgramFolder + "/" + name, 0o755, content},
	})
}

// certificates returns the authorities as PEM. Authorities that Mozilla trusts only for certificates issued before some day are left out, because a file cannot
// say so.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// Writing to a buffer does not fail.
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}

// layer returns a compressed layer with the files, which belong to root. All have the same time, so that the layer depends on their contents alone.
func layer(files []file) (v1.Layer, error) {
	var compressed bytes.Buffer
	z, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress a layer: %w", err)
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if f.name[len(f.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write %s to a layer: %w", f.name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("write %s to a layer: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end a layer: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress a layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(compressed.Bytes())), nil }
	l, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("read a layer: %w", err)
	}
	return l, nil
}
