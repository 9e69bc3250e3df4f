package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Annotations that ACP reads.
const (
	annotationName        = "acp.io/resource-name"
	annotationSensitivity = "acp.io/sensitivity"
	annotationEnvironment = "acp.io/environment"
	annotationLeader      = "acp.io/leader"
	annotationLead        = "acp.io/lead"
)

// ErrEmpty means that a folder holds no entity.
var ErrEmpty = errors.New("no entities found")

// entity is the part of a Backstage entity that ACP understands; the rest is ignored.
type entity struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name        string            `yaml:"name"`
		Title       string            `yaml:"title"`
		Description string            `yaml:"description"`
		Annotations map[string]string `yaml:"annotations"`
	} `yaml:"metadata"`
	Spec struct {
		Owner    string   `yaml:"owner"`
		Parent   string   `yaml:"parent"`
		Members  []string `yaml:"members"`
		MemberOf []string `yaml:"memberOf"`
		Profile  struct {
			DisplayName string `yaml:"displayName"`
			Email       string `yaml:"email"`
			Title       string `yaml:"title"`
		} `yaml:"profile"`
	} `yaml:"spec"`
}

// Read reads every *.yaml and *.yml file of a folder. All problems are reported together, each with its file and the
// number of its document; nothing is returned when there is one.
func Read(dir string) (*Catalog, error) {
	files, err := list(dir)
	if err != nil {
		return nil, err
	}
	b := newBuilder()
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return nil, fmt.Errorf("read catalog file %s: %w", f, err)
		}
		b.file(f, data)
	}
	c, err := b.build()
	if err != nil {
		return nil, err
	}
	if c.Empty() {
		return nil, fmt.Errorf("catalog folder %s: %w: it needs Backstage entities (Component, Resource, Group, User) in *.yaml files", dir, ErrEmpty)
	}
	return c, nil
}

func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("catalog folder %s does not exist: point --catalog at a folder of Backstage entity files: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("list catalog folder: %w", err)
	}
	var out []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// file decodes one file's documents. A document that is not YAML ends its file, because the decoder cannot find the
// next one; a value of a wrong type does not.
func (b *builder) file(name string, data []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for doc := 1; ; doc++ {
		var e entity
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			return
		}
		where := fmt.Sprintf("%s, document %d", name, doc)
		if err != nil {
			b.problem(where, strings.TrimPrefix(err.Error(), "yaml: "))
			var typed *yaml.TypeError
			if errors.As(err, &typed) {
				continue
			}
			return
		}
		b.add(where, e)
	}
}
