package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
	"github.com/acp-io/acp/release/internal/image"
	"github.com/acp-io/acp/release/internal/imageset"
)

func imagesCommand() *cobra.Command {
	var root, version, key string
	var platforms, programs []string
	o := imageset.Options{}
	c := &cobra.Command{
		Use:   "images",
		Short: "Build the images into OCI layouts, with bills of materials, provenance and signatures",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if o.Source, err = build.ReadSource(c.Context(), root, version); err != nil {
				return err
			}
			if o.Key, o.Development, err = signingKey(key); err != nil {
				return err
			}
			if o.Platforms, err = parsePlatforms(platforms); err != nil {
				return err
			}
			if o.Programs, err = selectPrograms(programs); err != nil {
				return err
			}
			built, err := imageset.Build(c.Context(), o)
			if err != nil {
				return err
			}
			report(c.OutOrStdout(), o, built)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&root, "root", ".", "folder with ACP's go.mod")
	f.StringVar(&version, "version", "", "version of the programs and tag of the images")
	f.StringVar(
		&key,
		"key",
		os.Getenv("COSIGN_KEY"),
		"file with the private key of `cosign generate-key-pair`; its password is in COSIGN_PASSWORD. Without one, a key is made for this run and labelled so",
	)
	f.StringVar(&o.Dir, "dir", "dist/images", "folder to write to")
	f.StringVar(&o.Repository, "repository", "registry.example/acp", "where the images will be, for tools that import layouts")
	f.StringVar(&o.Builder, "builder", cmp.Or(os.Getenv("BUILDER_ID"), attestation.DefaultBuilder), "identity of the builder in the provenance, a URI")
	f.StringSliceVar(&platforms, "platforms", []string{"linux/amd64", "linux/arm64"}, "platforms to build for")
	f.StringSliceVar(&programs, "programs", nil, "programs to build (default: all that run in clusters)")
	return c
}

// signingKey reads the key in a file, or generates one for this run alone.
func signingKey(file string) (key *attestation.Key, development bool, err error) {
	if file == "" {
		key, err = attestation.GenerateKey()
		return key, true, err
	}
	key, err = attestation.LoadKey(file, os.Getenv("COSIGN_PASSWORD"))
	return key, false, err
}

func parsePlatforms(names []string) ([]build.Platform, error) {
	var all []build.Platform
	for _, n := range names {
		p, err := build.ParsePlatform(n)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func selectPrograms(names []string) ([]build.Program, error) {
	if len(names) == 0 {
		return build.ImagePrograms, nil
	}
	var all []build.Program
	for _, n := range names {
		i := slices.IndexFunc(build.ImagePrograms, func(p build.Program) bool { return p.Name == n })
		if i < 0 {
			return nil, fmt.Errorf("there is no image of %q", n)
		}
		all = append(all, build.ImagePrograms[i])
	}
	return all, nil
}

func report(w io.Writer, o imageset.Options, built []imageset.Built) {
	for _, b := range built {
		fmt.Fprintf(w, "%s/%s:%s@%s\n", o.Repository, b.Name, b.Tag, b.Digest)
	}
	if o.Development {
		fmt.Fprintf(
			w,
			"These images are for development: they are signed with a key that was made for this run (%s) and is kept nowhere. "+
				"Set COSIGN_KEY to sign with your own.\n",
			filepath.Join(o.Dir, imageset.DevelopmentKeyFile),
		)
	}
}

func pushCommand() *cobra.Command {
	var dir, registry string
	c := &cobra.Command{
		Use:   "push",
		Short: "Copy the images with everything that is attached to them to a registry",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if registry == "" {
				return fmt.Errorf("a registry is required, for example REGISTRY=registry.example.com/acp")
			}
			layouts, err := imageset.Layouts(dir)
			if err != nil {
				return err
			}
			for _, l := range layouts {
				pushed, err := image.Push(c.Context(), l, strings.TrimSuffix(registry, "/"))
				if err != nil {
					return err
				}
				fmt.Fprintln(c.OutOrStdout(), pushed)
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "dist/images", "folder that `images` wrote")
	c.Flags().StringVar(&registry, "registry", "", "registry and path, without the images' names")
	return c
}

func sizesCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "sizes",
		Short: `Print what a linux/amd64 node downloads for each image, as lines "bench NAME VALUE MB"`,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			layouts, err := imageset.Layouts(dir)
			if err != nil {
				return err
			}
			for _, path := range layouts {
				l, err := image.ReadLayout(path)
				if err != nil {
					return err
				}
				size, err := image.PullSize(l, v1.Platform{OS: "linux", Architecture: "amd64"})
				if err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "bench image_%s %.1f MB\n", strings.ReplaceAll(filepath.Base(path), "-", "_"), float64(size)/1e6)
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "dist/images", "folder that `images` wrote")
	return c
}
