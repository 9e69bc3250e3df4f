package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The annotations by which tools find the image in a layout: the tag, the full name for containerd, and the kind, by which `cosign verify --local-image` tells
// the image from what is attached to it.
const (
	tagAnnotation  = "org.opencontainers.image.ref.name"
	nameAnnotation = "io.containerd.image.name"
	kindAnnotation = "kind"
	kindImage      = "dev.cosignproject.cosign/image"
)

// Attachment is a document about an image, which becomes a manifest that refers to it (an OCI 1.1 referrer).
type Attachment struct {
	// Subject is the image or the index that the document is about.
	Subject v1.Descriptor
	// ArtifactType says what the document is; it is also its media type.
	ArtifactType string
	Annotations  map[string]string
	Content      []byte
}

// emptyConfig is the content of the OCI empty descriptor.
var emptyConfig = []byte("{}")

const emptyConfigType types.MediaType = "application/vnd.oci.empty.v1+json"

// artifact is an Attachment as an image, so that the library stores and copies it.
type artifact struct {
	manifest []byte
	layer    v1.Layer
}

func (a artifact) RawConfigFile() ([]byte, error)      { return emptyConfig, nil }
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a artifact) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	if d, err := a.layer.Digest(); err != nil || d != h {
		return nil, fmt.Errorf("the attachment has no layer %s", h)
	}
	return a.layer, nil
}

func (a Attachment) image() (v1.Image, error) {
	l := static.NewLayer(a.Content, types.MediaType(a.ArtifactType))
	digest, err := l.Digest()
	if err != nil {
		return nil, fmt.Errorf("hash an attachment: %w", err)
	}
	configDigest, configSize, err := v1.SHA256(bytes.NewReader(emptyConfig))
	if err != nil {
		return nil, fmt.Errorf("hash the empty configuration: %w", err)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  a.ArtifactType,
		Config:        v1.Descriptor{MediaType: emptyConfigType, Digest: configDigest, Size: configSize},
		Layers:        []v1.Descriptor{{MediaType: types.MediaType(a.ArtifactType), Digest: digest, Size: int64(len(a.Content))}},
		Subject:       &v1.Descriptor{MediaType: a.Subject.MediaType, Digest: a.Subject.Digest, Size: a.Subject.Size},
		Annotations:   a.Annotations,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the manifest of an attachment: %w", err)
	}
	img, err := partial.CompressedToImage(artifact{manifest, l})
	if err != nil {
		return nil, fmt.Errorf("make an attachment: %w", err)
	}
	return img, nil
}

// WriteLayout writes an index with its attachments to a folder as an OCI layout, in place of what is there. repository and tag name the image, for tools that
// import layouts.
func WriteLayout(dir, repository, tag string, index v1.ImageIndex, attachments []Attachment) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the former layout: %w", err)
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write the layout %s: %w", dir, err)
	}
	names := map[string]string{tagAnnotation: tag, nameAnnotation: repository + ":" + tag, kindAnnotation: kindImage}
	if err := path.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return fmt.Errorf("write the image to the layout %s: %w", dir, err)
	}
	for _, a := range attachments {
		img, err := a.image()
		if err != nil {
			return err
		}
		if err := path.AppendImage(img, layout.WithAnnotations(a.Annotations)); err != nil {
			return fmt.Errorf("write an attachment to the layout %s: %w", dir, err)
		}
	}
	return nil
}

// Layout is an image with its attachments, read from a folder.
type Layout struct {
	// Tag is the name of the image, and Descriptor describes its index.
	Tag        string
	Descriptor v1.Descriptor
	Index      v1.ImageIndex
	// Referrers are the manifests of the attachments.
	Referrers []v1.Image
}

// ReadLayout reads what WriteLayout wrote.
func ReadLayout(dir string) (Layout, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return Layout{}, fmt.Errorf("read the layout %s: %w; `make images` writes it", dir, err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		return Layout{}, fmt.Errorf("read the layout %s: %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return Layout{}, fmt.Errorf("read the layout %s: %w", dir, err)
	}
	var l Layout
	for _, d := range manifest.Manifests {
		switch {
		case d.MediaType.IsIndex() && l.Index == nil:
			if l.Index, err = index.ImageIndex(d.Digest); err != nil {
				return Layout{}, fmt.Errorf("read the index of the layout %s: %w", dir, err)
			}
			l.Descriptor, l.Tag = d, d.Annotations[tagAnnotation]
		case d.MediaType.IsImage():
			img, err := index.Image(d.Digest)
			if err != nil {
				return Layout{}, fmt.Errorf("read an attachment of the layout %s: %w", dir, err)
			}
			l.Referrers = append(l.Referrers, img)
		default:
			return Layout{}, fmt.Errorf("the layout %s has a %s, which `make images` does not write", dir, d.MediaType)
		}
	}
	if l.Index == nil || l.Tag == "" {
		return Layout{}, fmt.Errorf("the layout %s has no image with a tag", dir)
	}
	return l, nil
}

// Content returns the document of an attachment.
func Content(referrer v1.Image) ([]byte, error) {
	layers, err := referrer.Layers()
	if err != nil {
		return nil, fmt.Errorf("read an attachment: %w", err)
	}
	if len(layers) != 1 {
		return nil, fmt.Errorf("an attachment has %d layers and not one", len(layers))
	}
	r, err := layers[0].Compressed()
	if err != nil {
		return nil, fmt.Errorf("read an attachment: %w", err)
	}
	defer func() { _ = r.Close() }()
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read an attachment: %w", err)
	}
	return content, nil
}

// Push copies the layout in dir to registry/NAME:TAG and returns the reference by digest. NAME is the folder's name. The tag is set last, so that nobody
// who pulls it finds an image without its signature.
// It uses the credentials of Docker's configuration, and plain HTTP for registries on this machine alone.
func Push(ctx context.Context, dir, registry string) (string, error) {
	l, err := ReadLayout(dir)
	if err != nil {
		return "", err
	}
	repository, err := name.NewRepository(registry + "/" + filepath.Base(dir))
	if err != nil {
		return "", fmt.Errorf("registry %q: %w", registry, err)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	image := repository.Digest(l.Descriptor.Digest.String())
	if err := remote.WriteIndex(image, l.Index, options...); err != nil {
		return "", fmt.Errorf("push %s: %w", image, err)
	}
	// One after the other: registries without the referrers API keep a list that each push reads and replaces.
	for _, r := range l.Referrers {
		d, err := r.Digest()
		if err != nil {
			return "", fmt.Errorf("hash an attachment: %w", err)
		}
		if err := remote.Write(repository.Digest(d.String()), r, options...); err != nil {
			return "", fmt.Errorf("push an attachment of %s: %w", repository, err)
		}
	}
	if err := remote.Tag(repository.Tag(l.Tag), l.Index, options...); err != nil {
		return "", fmt.Errorf("tag %s: %w", repository.Tag(l.Tag), err)
	}
	return image.String(), nil
}

// PullSize returns how many bytes a node downloads for the image of a platform: manifest, configuration and compressed layers.
func PullSize(l Layout, platform v1.Platform) (int64, error) {
	manifest, err := l.Index.IndexManifest()
	if err != nil {
		return 0, fmt.Errorf("read the index: %w", err)
	}
	for _, d := range manifest.Manifests {
		if d.Platform == nil || !d.Platform.Satisfies(platform) {
			continue
		}
		img, err := l.Index.Image(d.Digest)
		if err != nil {
			return 0, fmt.Errorf("read the image for %s: %w", platform, err)
		}
		m, err := img.Manifest()
		if err != nil {
			return 0, fmt.Errorf("read the manifest for %s: %w", platform, err)
		}
		size := d.Size + m.Config.Size
		for _, layer := range m.Layers {
			size += layer.Size
		}
		return size, nil
	}
	return 0, fmt.Errorf("there is no image for %s", platform)
}
