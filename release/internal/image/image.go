// Package image makes OCI images from static executables on an empty base, keeps them in OCI layouts together with what is attached to them,
// and copies layouts to registries. It needs no container engine and, but for copying, no registry.
package image

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/acp-io/acp/release/internal/build"
)

// Variant is a program's image for one platform.
type Variant struct {
	Platform build.Platform
	Image    v1.Image
}

// Labels returns the OCI annotations that say what an image is and where it comes from.
func Labels(s build.Source, p build.Program) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":         p.Title,
		"org.opencontainers.image.description":   p.Description,
		"org.opencontainers.image.version":       s.Version,
		"org.opencontainers.image.revision":      s.Commit,
		"org.opencontainers.image.created":       s.Time.Format(time.RFC3339),
		"org.opencontainers.image.source":        build.Repository,
		"org.opencontainers.image.documentation": build.Repository + "/tree/main/docs",
		"org.opencontainers.image.licenses":      "Apache-2.0",
	}
}

// New returns the image of a program for one platform.
func New(s build.Source, p build.Program, platform build.Platform, executable string) (v1.Image, error) {
	base, err := baseLayer()
	if err != nil {
		return nil, err
	}
	program, err := programLayer(p.Name, executable)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: s.Time}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: base, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "certificate authorities and the user"}},
		mutate.Addendum{Layer: program, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: p.Name + " " + s.Version}},
	)
	if err != nil {
		return nil, fmt.Errorf("add layers to the image of %s: %w", p.Name, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = platform.OS, platform.Arch, created
	config.Config = v1.Config{
		User:       User,
		Entrypoint: []string{"/" + ProgramFolder + "/" + p.Name},
		WorkingDir: "/",
		Env:        []string{"PATH=/" + ProgramFolder},
		Labels:     Labels(s, p),
	}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, fmt.Errorf("configure the image of %s: %w", p.Name, err)
	}
	return img, nil
}

// NewIndex returns the index over a program's images, one for each platform.
func NewIndex(s build.Source, p build.Program, variants []Variant) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, v := range variants {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        v.Image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: v.Platform.OS, Architecture: v.Platform.Arch}},
		})
	}
	annotated, ok := mutate.Annotations(index, Labels(s, p)).(v1.ImageIndex)
	if !ok {
		panic("annotating an index returned something else")
	}
	return annotated
}
