package cluster

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func TestManifests(t *testing.T) {
	c := Config{Name: "m1", Number: 2}
	text, err := manifests(c)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{}
	volumesFound := 0
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if o.GetKind() == "" || o.GetName() == "" {
			t.Errorf("an object without a kind or a name: %v", o.Object)
		}
		if o.GetKind() == "PersistentVolume" {
			volumesFound++
		}
		objects[o.GetKind()+" "+o.GetName()] = o
	}
	if volumesFound != volumes {
		t.Errorf("%d volumes, want %d", volumesFound, volumes)
	}
	class := objects["StorageClass standard"]
	if class == nil || class.GetAnnotations()["storageclass.kubernetes.io/is-default-class"] != "true" {
		t.Error("claims without a class must get a volume")
	}
	config := objects["ConfigMap cilium-config"]
	if config == nil {
		t.Fatal("the settings of Cilium's agents are not shown")
	}
	settings, _, _ := unstructured.NestedStringMap(config.Object, "data")
	for name, want := range map[string]string{"cluster-name": "m1", "cluster-id": "2", "enable-l7-proxy": "false", "enable-hubble": "true"} {
		if settings[name] != want {
			t.Errorf("the setting %s is %q, want %q, as the agent is started", name, settings[name], want)
		}
	}
}

// The versions are read by those who ask a member what enforces there.
func TestCiliumVersionsAreThoseOfTheParts(t *testing.T) {
	for part, version := range ciliumVersions {
		module, err := os.ReadFile(filepath.Join("../../../parts", part, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(module), "github.com/cilium/cilium "+version) {
			t.Errorf("playground/parts/%s/go.mod does not require %s", part, version)
		}
	}
}
