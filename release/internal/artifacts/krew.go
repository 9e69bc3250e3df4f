package artifacts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/release/internal/build"
)

// PluginArchive is an archive of the kubectl plugin for one platform.
type PluginArchive struct {
	Platform build.Platform
	// Name is the file's name in the release.
	Name string
	// Executable is the name of the program in the archive.
	Executable string
	Content    []byte
}

// The parts of krew's kind Plugin (krew.googlecontainertools.github.com/v1alpha2) that the manifest has.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Files    []krewFile   `json:"files"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// KrewManifest returns the manifest with which krew installs the plugin, as `kubectl acp`. version has its "v".
func KrewManifest(version string, archives []PluginArchive) ([]byte, error) {
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2",
		Kind:       "Plugin",
		Metadata:   map[string]string{"name": "acp"},
		Spec: krewSpec{
			Version:          version,
			Homepage:         build.Repository,
			ShortDescription: "Work with ACP's access control policies",
			Description: "Renders, decides, lints and compares the access control policies of ACP, from files\n" +
				"or a host cluster, and lets member clusters join and leave the fleet.\n",
		},
	}
	for _, a := range archives {
		sum := sha256.Sum256(a.Content)
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": a.Platform.OS, "arch": a.Platform.Arch}},
			URI:      build.Repository + "/releases/download/" + version + "/" + a.Name,
			SHA256:   hex.EncodeToString(sum[:]),
			Files:    []krewFile{{a.Executable, "."}, {"LICENSE", "."}},
			Bin:      a.Executable,
		})
	}
	encoded, err := yaml.Marshal(plugin)
	if err != nil {
		return nil, fmt.Errorf("encode the krew manifest: %w", err)
	}
	return encoded, nil
}
