package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/release/internal/artifacts"
	"github.com/acp-io/acp/release/internal/attestation"
	"github.com/acp-io/acp/release/internal/build"
)

func releaseCommand() *cobra.Command {
	var root, version, key string
	var imagePlatforms, pluginPlatforms []string
	o := artifacts.Options{}
	c := &cobra.Command{
		Use:   "release",
		Short: "Make every file of a release: images, charts, the kubectl plugin, checksums, signatures and notes",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := build.CheckRelease(version); err != nil {
				return err
			}
			var err error
			if o.Images.Source, err = build.ReadSource(c.Context(), root, version); err != nil {
				return err
			}
			if o.Images.Key, o.Images.Development, err = signingKey(key); err != nil {
				return err
			}
			if o.Images.Platforms, err = parsePlatforms(imagePlatforms); err != nil {
				return err
			}
			if o.Platforms, err = parsePlatforms(pluginPlatforms); err != nil {
				return err
			}
			o.Images.Programs = build.ImagePrograms
			names, err := artifacts.Release(c.Context(), o)
			if err != nil {
				return err
			}
			for _, name := range names {
				fmt.Fprintln(c.OutOrStdout(), name)
			}
			if o.Snapshot {
				fmt.Fprintln(c.OutOrStdout(), "This is a snapshot: do not publish it.")
			}
			return nil
		},
	}
	var plugins []string
	for _, p := range artifacts.PluginPlatforms {
		plugins = append(plugins, p.String())
	}
	f := c.Flags()
	f.StringVar(&root, "root", ".", "folder with ACP's go.mod")
	f.StringVar(&version, "version", "", "version to release, for example 0.1.0")
	f.StringVar(&key, "key", os.Getenv("COSIGN_KEY"), "file with the private key of `cosign generate-key-pair`; its password is in COSIGN_PASSWORD")
	f.StringVar(&o.Dir, "dir", "dist/release", "folder to write to; an earlier release there is removed")
	f.BoolVar(
		&o.Snapshot,
		"snapshot",
		false,
		"make files that are not published: of a work tree with changes, without a changelog of the version, or signed with a key of this run",
	)
	f.StringVar(&o.Images.Repository, "repository", "registry.example/acp", "where the images will be, for tools that import layouts")
	f.StringVar(&o.Images.Builder, "builder", cmp.Or(os.Getenv("BUILDER_ID"), attestation.DefaultBuilder), "identity of the builder in the provenance, a URI")
	f.StringSliceVar(&imagePlatforms, "platforms", []string{"linux/amd64", "linux/arm64"}, "platforms of the images")
	f.StringSliceVar(&pluginPlatforms, "plugin-platforms", plugins, "platforms of the kubectl plugin")
	return c
}
