package deploy

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestNamesAreParameters: with other names, none of the files' own is left, and nothing else changes.
func TestNamesAreParameters(t *testing.T) {
	other := Names{
		Namespace:        "access",
		KubeFedNamespace: "federation",
		Adapter:          "fence",
		Portal:           "desk",
		Collector:        "meter",
		Registry:         "images.example/x",
		Tag:              "v1",
	}
	for _, folder := range Folders() {
		plain, err := Render(folder, Names{})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Render(folder, defaults); err != nil || again != plain {
			t.Errorf("%s: the names of the files change something: %v", folder, err)
		}
		text, err := Render(folder, other)
		if err != nil {
			t.Fatal(err)
		}
		for _, left := range []string{
			defaults.Namespace, defaults.KubeFedNamespace, "name: " + defaults.Adapter + "\n",
			"name: " + defaults.Portal + "\n", "name: " + defaults.Collector + "\n", defaults.Registry, ":latest",
		} {
			if strings.Contains(text, left) {
				t.Errorf("%s still has %q", folder, left)
			}
		}
		if strings.Count(text, "\n") != strings.Count(plain, "\n") {
			t.Errorf("%s has other lines", folder)
		}
	}
	// Names may change places: nothing is replaced twice.
	swapped, err := Render("rbac/host", Names{Adapter: "acp-portal", Portal: "acp-adapter"})
	if err != nil || !strings.Contains(swapped, "name: acp-portal") || !strings.Contains(swapped, "name: acp-adapter") {
		t.Errorf("swapped names: %v", err)
	}
}

// TestPodsAreConfined: every container runs as the restricted Pod Security Standard wants it, with a read-only root file system, and
// answers all three probes.
func TestPodsAreConfined(t *testing.T) {
	text, err := Render("workloads", Names{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for doc := range strings.SplitSeq(text, "---\n") {
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(doc), &d); err != nil {
			t.Fatal(err)
		}
		if d.Kind != "Deployment" {
			continue
		}
		found++
		pod := d.Spec.Template.Spec
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 ||
			s.SeccompProfile == nil ||
			s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: %+v", d.Name, s)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.Capabilities == nil ||
				len(s.Capabilities.Drop) != 1 ||
				s.Capabilities.Drop[0] != "ALL" ||
				len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: %+v", d.Name, s)
			}
			for path, p := range map[string]*corev1.Probe{"/startupz": c.StartupProbe, "/readyz": c.ReadinessProbe, "/livez": c.LivenessProbe} {
				if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != path {
					t.Errorf("%s: no probe of %s", d.Name, path)
				}
			}
			mounted := map[string]string{}
			for _, m := range c.VolumeMounts {
				mounted[m.MountPath] = m.Name
			}
			if mounted["/tmp"] == "" {
				t.Errorf("%s has no folder for temporary files", d.Name)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d programs, want 3", found)
	}
}
