package configurationtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/deploy"
)

// FromManifest writes the settings that a ConfigMap of deploy/workloads holds to a file, and returns that. Paths below /etc are led to the
// folder, so that a program finds what it looks for at the start.
func FromManifest(t testing.TB, name, folder string) string {
	t.Helper()
	text, err := deploy.Render("workloads", deploy.Names{})
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(text, "---\n") {
		var c corev1.ConfigMap
		if err := yaml.Unmarshal([]byte(doc), &c); err != nil {
			t.Fatal(err)
		}
		if c.Kind != "ConfigMap" || c.Name != name {
			continue
		}
		for key, settings := range c.Data {
			path := filepath.Join(folder, key)
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(settings, ": /etc/", ": "+folder+"/")), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatalf("deploy/workloads has no ConfigMap %s", name)
	return ""
}
