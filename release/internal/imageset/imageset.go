// Package imageset builds the images of all programs, with what is attached to them, into one folder.
package imageset

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
	"github.com/acp-io/acp/release/internal/image"
	"github.com/acp-io/acp/release/internal/sbom"
)

// The files beside the layouts.
const (
	// ListFile names the images and their digests.
	ListFile = "images.json"
	// KeyFile contains the public key.
	KeyFile = "cosign.pub"
	// DevelopmentKeyFile contains the public key, instead of KeyFile, if the key was made for one run.
	DevelopmentKeyFile = "cosign-development.pub"
)

// developmentAnnotation marks attachments that are signed with a key that was made for one run.
const developmentAnnotation = "io.acp.signed-for"

// Options say what to build.
type Options struct {
	Source    build.Source
	Programs  []build.Program
	Platforms []build.Platform
	// Dir is the folder to write to; each image gets a folder of its name.
	Dir string
	// Repository is where the images will be, without their names.
	Repository string
	// Builder identifies the builder in the provenance.
	Builder string
	// Key signs. Development says that it was made for this run.
	Key         *attestation.Key
	Development bool
}

// Built is an image that was built.
type Built struct {
	Name   string `json:"name"`
	Tag    string `json:"tag"`
	Digest string `json:"digest"`
	// Platforms has the digest of each platform's image.
	Platforms map[string]string `json:"platforms"`
}

// Build builds the images, signs them, checks the signatures and writes the layouts. For the same source, tools and key, Build always writes the same bytes.
func Build(ctx context.Context, o Options) ([]Built, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for images: %w", err)
	}
	// Images of an earlier run would be pushed, too.
	if err := clean(o.Dir); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "acp-images-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	goVersion, err := build.GoVersion(ctx, o.Source.Root)
	if err != nil {
		return nil, err
	}
	var all []Built
	for _, p := range o.Programs {
		b, err := buildImage(ctx, o, p, attestation.Tools{Go: goVersion}, work)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	keyFile := KeyFile
	if o.Development {
		keyFile = DevelopmentKeyFile
	}
	if err := os.WriteFile(filepath.Join(o.Dir, keyFile), o.Key.PublicPEM(), 0o644); err != nil {
		return nil, fmt.Errorf("write the public key: %w", err)
	}
	list, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the list of images: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, ListFile), append(list, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("write the list of images: %w", err)
	}
	return all, nil
}

// clean removes what an earlier Build wrote, and nothing else.
func clean(dir string) error {
	layouts, err := Layouts(dir)
	if err != nil {
		return err
	}
	boms, err := filepath.Glob(filepath.Join(dir, "*.spdx.json"))
	if err != nil {
		return fmt.Errorf("look for bills of materials: %w", err)
	}
	for _, path := range append(append(layouts, boms...), filepath.Join(dir, KeyFile), filepath.Join(dir, DevelopmentKeyFile), filepath.Join(dir, ListFile)) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove what an earlier run wrote: %w", err)
		}
	}
	return nil
}

// Layouts returns the folders of images in dir.
func Layouts(dir string) ([]string, error) {
	markers, err := filepath.Glob(filepath.Join(dir, "*", "oci-layout"))
	if err != nil {
		return nil, fmt.Errorf("look for images in %s: %w", dir, err)
	}
	for i, m := range markers {
		markers[i] = filepath.Dir(m)
	}
	return markers, nil
}

// subject is an image or an index with what is said about it.
type subject struct {
	descriptor v1.Descriptor
	qualifier  string
	platforms  []build.Platform
	programs   []*buildinfo.BuildInfo
}

func buildImage(ctx context.Context, o Options, p build.Program, tools attestation.Tools, work string) (Built, error) {
	contents := sbom.Contents{Root: o.Source.Root}
	if p.UI {
		ui, err := sbom.ReadBundled(o.Source.Root)
		if err != nil {
			return Built{}, err
		}
		contents.UI, tools.Node = &ui, ui.Node
	}
	built := Built{Name: p.Name, Tag: build.Tag(o.Source.Version), Platforms: map[string]string{}}
	var variants []image.Variant
	var subjects []subject
	whole := subject{qualifier: "all platforms", platforms: o.Platforms}
	for _, platform := range o.Platforms {
		executable := filepath.Join(work, p.Name+"-"+platform.OS+"-"+platform.Arch)
		if err := build.Compile(ctx, o.Source, p, platform, executable); err != nil {
			return Built{}, err
		}
		info, err := build.Info(executable)
		if err != nil {
			return Built{}, err
		}
		img, err := image.New(o.Source, p, platform, executable)
		if err != nil {
			return Built{}, err
		}
		descriptor, err := partial.Descriptor(img)
		if err != nil {
			return Built{}, fmt.Errorf("describe the image of %s: %w", p.Name, err)
		}
		built.Platforms[platform.String()] = descriptor.Digest.String()
		variants = append(variants, image.Variant{Platform: platform, Image: img})
		subjects = append(subjects, subject{*descriptor, platform.String(), []build.Platform{platform}, []*buildinfo.BuildInfo{info}})
		whole.programs = append(whole.programs, info)
	}
	index := image.NewIndex(o.Source, p, variants)
	descriptor, err := partial.Descriptor(index)
	if err != nil {
		return Built{}, fmt.Errorf("describe the image of %s: %w", p.Name, err)
	}
	whole.descriptor, built.Digest = *descriptor, descriptor.Digest.String()

	var attachments []image.Attachment
	for _, s := range append([]subject{whole}, subjects...) {
		contents.Executables = s.programs
		attached, err := attach(ctx, o, p, s, contents, tools)
		if err != nil {
			return Built{}, err
		}
		attachments = append(attachments, attached...)
	}
	document, err := sbom.Document(o.Source, p, whole.qualifier, whole.descriptor.Digest, contentsOf(contents, whole.programs))
	if err != nil {
		return Built{}, err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, p.Name+".spdx.json"), append(document, '\n'), 0o644); err != nil {
		return Built{}, fmt.Errorf("write the bill of materials of %s: %w", p.Name, err)
	}
	if err := image.WriteLayout(filepath.Join(o.Dir, p.Name), o.Repository+"/"+p.Name, built.Tag, index, attachments); err != nil {
		return Built{}, err
	}
	return built, nil
}

func contentsOf(c sbom.Contents, programs []*buildinfo.BuildInfo) sbom.Contents {
	c.Executables = programs
	return c
}

// attach returns the signature, the bill of materials and the provenance of a subject, each signed and checked.
func attach(ctx context.Context, o Options, p build.Program, s subject, contents sbom.Contents, tools attestation.Tools) ([]image.Attachment, error) {
	document, err := sbom.Document(o.Source, p, s.qualifier, s.descriptor.Digest, contents)
	if err != nil {
		return nil, err
	}
	provenance, err := attestation.Provenance(o.Source, p, s.platforms, tools, o.Builder)
	if err != nil {
		return nil, err
	}
	var annotations map[string]string
	if o.Development {
		annotations = map[string]string{developmentAnnotation: "development"}
	}
	var all []image.Attachment
	for _, about := range []struct {
		kind      string
		predicate json.RawMessage
	}{{attestation.SignatureType, json.RawMessage("{}")}, {attestation.SBOMType, document}, {attestation.ProvenanceType, provenance}} {
		a, err := attestation.Attach(ctx, o.Key, p.Name, s.descriptor, about.kind, about.predicate, o.Source.Time, annotations)
		if err != nil {
			return nil, err
		}
		if _, _, err := attestation.Verify(a.Content, o.Key.GetPublicKey(), s.descriptor.Digest); err != nil {
			return nil, fmt.Errorf("the statement of %s that was just signed does not verify: %w", p.Name, err)
		}
		all = append(all, a)
	}
	return all, nil
}
