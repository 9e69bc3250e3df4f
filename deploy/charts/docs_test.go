package charts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/testenv"
)

// TestInstallationGuide takes the values and objects out of docs/install.md: the chart renders the values, the catalog in them is whole, and an
// API server accepts the objects. The charts' folders that commands name are there.
func TestInstallationGuide(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "docs/install.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	block := func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("docs/install.md has no %s", pattern)
		}
		return found[1]
	}
	var v map[string]any
	if err := yaml.Unmarshal([]byte(block("(?s)```yaml\n(.*?)```")), &v); err != nil {
		t.Fatal(err)
	}
	// make push tags images with the version, without the v of Git's tags.
	if tag, _, _ := unstructured.NestedString(v, "image", "tag"); tag != load(t, "acp").Metadata.AppVersion {
		t.Errorf("the guide installs images with the tag %q, want that of a release, %q", tag, load(t, "acp").Metadata.AppVersion)
	}
	kubeFed := map[string]any{}
	if err := yaml.Unmarshal([]byte(block("(?s)```yaml\n(image: .*?)```")), &kubeFed); err != nil {
		t.Fatal(err)
	}
	rendered(t, "acp-kubefed", kubeFed)
	folder := t.TempDir()
	for _, o := range rendered(t, "acp", v) {
		if o.GetName() != "acp-portal-catalog" {
			continue
		}
		for name, content := range o.Object["data"].(map[string]any) {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content.(string)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	reading, err := catalog.ReadFolder(folder)
	if err != nil {
		t.Fatalf("the catalog of the guide: %v", err)
	}
	if len(reading.Problems) > 0 {
		t.Errorf("the catalog of the guide: %v", reading.Problems)
	}
	c := start(t, "deploy/crds")
	all := objects(t, block("(?s)kubectl apply -f - <<'END'\n(.*?)\nEND"))
	if len(all) != 3 {
		t.Errorf("%d objects, want 3", len(all))
	}
	for _, o := range all {
		body, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		force := true
		if _, err := c.resource(t, o.GetAPIVersion(), o.GetKind(), "").Patch(t.Context(), o.GetName(), types.ApplyPatchType, body,
			metav1.PatchOptions{FieldManager: "guide", Force: &force, FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Errorf("%s is refused: %v", id(o), err)
		}
	}
	for _, path := range regexp.MustCompile(`deploy/charts/[a-z./-]+`).FindAllString(text, -1) {
		if _, err := os.Stat(filepath.Join(testenv.Root(), strings.TrimRight(path, "./"))); err != nil {
			t.Errorf("docs/install.md names %s: %v", path, err)
		}
	}
}

// TestDocumentedCommands renders what the commands of the documentation install: each names the namespace of its chart, and those that do not
// follow the creation of the namespaces create it.
func TestDocumentedCommands(t *testing.T) {
	for page, want := range map[string]struct {
		commands         int
		createsNamespace bool
	}{
		"README.md":                  {1, true},
		"docs/install.md":            {3, false},
		"docs/operations/members.md": {1, false},
	} {
		data, err := os.ReadFile(filepath.Join(testenv.Root(), page))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "\\\n", " ")
		commands := regexp.MustCompile(`(?m)^ *(helm .*\binstall .*)$`).FindAllStringSubmatch(text, -1)
		if len(commands) != want.commands {
			t.Errorf("%s has %d commands that install a chart, want %d", page, len(commands), want.commands)
		}
		for _, c := range commands {
			command := c[1]
			chart := regexp.MustCompile(`deploy/charts/([a-z-]+)`).FindStringSubmatch(command)
			if chart == nil {
				t.Errorf("%s: no chart in %s", page, command)
				continue
			}
			if !strings.Contains(command+" ", "--namespace "+namespaces[chart[1]]+" ") {
				t.Errorf("%s: %s does not install into %s", page, command, namespaces[chart[1]])
			}
			if want.createsNamespace && !strings.Contains(command, "--create-namespace") {
				t.Errorf("%s: %s fails in an empty cluster", page, command)
			}
			v := map[string]any{}
			for _, set := range regexp.MustCompile(`--set (\S+)`).FindAllStringSubmatch(command, -1) {
				if err := strvals.ParseInto(set[1], v); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			}
			for _, o := range rendered(t, chart[1], v) {
				text, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(command, "--values") && strings.Contains(string(text), "image: registry.example/acp") {
					t.Errorf("%s: %s: %s has an image of a registry that does not exist", page, command, id(o))
				}
				if strings.Contains(command, "member.enabled=false") && o.GetKind() == "ServiceAccount" && o.GetName() != "acp-node" {
					t.Errorf("%s: %s contains %s, which the member has", page, command, id(o))
				}
			}
		}
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestValuesOfOperatorPages renders the chart acp with the values that the pages for operators show.
func TestValuesOfOperatorPages(t *testing.T) {
	for page, want := range map[string]int{"sizing.md": 1, "logs.md": 3, "network.md": 1} {
		data, err := os.ReadFile(filepath.Join(testenv.Root(), "docs/operations", page))
		if err != nil {
			t.Fatal(err)
		}
		blocks := yamlBlock.FindAllStringSubmatch(string(data), -1)
		if len(blocks) != want {
			t.Errorf("%s has %d sets of values, want %d", page, len(blocks), want)
		}
		for _, b := range blocks {
			var v map[string]any
			if err := yaml.Unmarshal([]byte(b[1]), &v); err != nil {
				t.Fatalf("%s: %v", page, err)
			}
			if len(v) == 0 {
				t.Errorf("%s: a set of values is empty", page)
			}
			if _, err := render(t, "acp", v); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// TestBackupJob takes the CronJob out of docs/backup.md: an API server accepts it, its pods conform to the restricted Pod Security Standard, and it uses
// the account, the settings and the paths of the chart's portal.
func TestBackupJob(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "docs/backup.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := yamlBlock.FindStringSubmatch(string(data))
	if block == nil {
		t.Fatal("docs/backup.md has no CronJob")
	}
	job := objects(t, block[1])[0]
	c := start(t)
	c.namespace(t, job.GetNamespace(), map[string]any{"pod-security.kubernetes.io/enforce": "restricted"})
	if _, err := c.resource(t, job.GetAPIVersion(), job.GetKind(), job.GetNamespace()).Create(t.Context(), job,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatal(err)
	}
	core, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	template, _, err := unstructured.NestedMap(job.Object, "spec", "jobTemplate", "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	of := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": template}}}
	of.SetNamespace(job.GetNamespace())
	if err := dryRunPod(t.Context(), core, of); err != nil {
		t.Errorf("a pod of the CronJob is refused: %v", err)
	}
	v := map[string]any{"portal": map[string]any{"database": map[string]any{"existingSecret": "acp-database"}},
		"image": map[string]any{"registry": "registry.example.com/acp"}}
	for _, o := range rendered(t, "acp", v) {
		if o.GetKind() != "Deployment" || o.GetName() != "acp-portal" {
			continue
		}
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		for _, shared := range []string{"serviceAccountName: acp-portal", "--config=/etc/acp/portal.yaml", "/etc/acp-database", "acp-database",
			"registry.example.com/acp/portal:0.1.0"} {
			if !strings.Contains(string(text), shared) || !strings.Contains(block[1], shared) {
				t.Errorf("%s is not in both, the portal's Deployment and the CronJob", shared)
			}
		}
		return
	}
	t.Error("the chart has no portal")
}
