// Package deploy embeds the manifests that install ACP's programs into a host cluster, and renders them with other names.
package deploy

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

//go:embed access-requests/*.yaml rbac/host/*.yaml webhook/*.yaml workloads/*.yaml
var files embed.FS

// Names are the names in the manifests that can be chosen; those that are empty stay as they are in the files.
type Names struct {
	// Namespace holds ACP's programs, KubeFedNamespace the KubeFedClusters.
	Namespace, KubeFedNamespace string
	// Adapter, Portal and Collector are the programs' service accounts, and begin the names of what belongs to them.
	Adapter, Portal, Collector string
	// Registry is the registry of the images, with the path before their names, and Tag is their tag.
	Registry, Tag string
}

// The names in the files, which the markers of the adapter's roles have, too.
var defaults = Names{
	Namespace:        "acp-system",
	KubeFedNamespace: "kube-federation-system",
	Adapter:          "acp-adapter",
	Portal:           "acp-portal",
	Collector:        "acp-flow-collector",
	Registry:         "registry.example/acp",
	Tag:              "latest",
}

// Folders returns the folders with manifests.
func Folders() []string { return []string{"rbac/host", "webhook", "workloads"} }

// Render returns the manifests of a folder with the names, as one YAML text.
func Render(folder string, n Names) (string, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return "", fmt.Errorf("read the manifests: %w", err)
	}
	var b strings.Builder
	for _, e := range entries {
		text, err := fs.ReadFile(files, folder+"/"+e.Name())
		if err != nil {
			return "", fmt.Errorf("read the manifests: %w", err)
		}
		if !strings.HasPrefix(string(text), "---") {
			b.WriteString("---\n")
		}
		b.WriteString(n.replace(string(text)))
	}
	return b.String(), nil
}

// replace puts the names into a text in one pass, so that no name is replaced that was just put in.
func (n Names) replace(text string) string {
	to := map[string]string{
		defaults.Namespace: n.Namespace, defaults.KubeFedNamespace: n.KubeFedNamespace, defaults.Adapter: n.Adapter, defaults.Portal: n.Portal,
		defaults.Collector: n.Collector, defaults.Registry: n.Registry, ":" + defaults.Tag: "",
	}
	if n.Tag != "" {
		to[":"+defaults.Tag] = ":" + n.Tag
	}
	return known.ReplaceAllStringFunc(text, func(name string) string {
		if image, ok := strings.CutPrefix(name, defaults.Registry+"/"); ok { // named after the program, not after its account
			return cmp.Or(n.Registry, defaults.Registry) + "/" + image
		}
		return cmp.Or(to[name], name)
	})
}

var known = regexp.MustCompile(
	`\bacp-system\b|\bkube-federation-system\b|\bacp-adapter\b|\bacp-portal\b|\bacp-flow-collector\b|registry\.example/acp(/[a-z-]+)?|:latest\b`,
)
