package configuration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// maxFile is the size of the largest configuration file that is read.
const maxFile = 1 << 20

// readFile takes from the file what neither the command line nor the environment says.
func (s *Settings) readFile(path string) error {
	data, err := readBounded(path)
	if err != nil {
		return s.Explain(fmt.Errorf("--%s: %w", configFlag, err))
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil // an empty file sets nothing
	case err != nil:
		return fmt.Errorf("%s is not YAML: %w", path, err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s has more than one document", path)
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s line %d: write NAME: VALUE, with the names of the flags", path, root.Line)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		at := fmt.Sprintf("%s line %d", path, key.Line)
		f := s.all.Lookup(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
			return fmt.Errorf("%s: a key has to be the name of a setting", at)
		case seen[key.Value]:
			return fmt.Errorf("%s: %s is there twice", at, key.Value)
		case f == nil && s.fileFor(key.Value) != "":
			return fmt.Errorf("%s: %s: %s", at, key.Value, s.fileFor(key.Value))
		case f == nil:
			return fmt.Errorf("%s: %s is no setting of %s", at, key.Value, s.program)
		case onlyCommandLine(f.Name):
			return fmt.Errorf("%s: %s can only be given on the command line", at, key.Value)
		}
		seen[key.Value] = true
		if err := s.take(f, value, at); err != nil {
			return fmt.Errorf("%s: %s: %w", at, key.Value, err)
		}
	}
	return nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, nil
}

// take sets the flag unless it was given with precedence. A value of a wrong type is refused in any case.
func (s *Settings) take(f *pflag.Flag, value *yaml.Node, at string) error {
	entries, err := scalars(f, value)
	if err != nil || f.Changed || s.origins[f.Name] != "" {
		return err
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		err = list.Replace(entries)
	} else {
		err = f.Value.Set(entries[0])
	}
	if err == nil {
		s.origins[f.Name] = at
	}
	return err
}

// tags are YAML's types for the types of JSON schema.
var tags = map[string][]string{
	"string": {"!!str"}, "boolean": {"!!bool"}, "integer": {"!!int"}, "number": {"!!int", "!!float"},
}

func scalars(f *pflag.Flag, value *yaml.Node) ([]string, error) {
	want := jsonType(f)
	if want != "array" {
		v, err := scalar(value, want)
		return []string{v}, err
	}
	if value.Kind != yaml.SequenceNode {
		return nil, errors.New("give a list")
	}
	out := []string{}
	for _, item := range value.Content {
		v, err := scalar(item, "string")
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func scalar(n *yaml.Node, want string) (string, error) {
	if n.Kind == yaml.ScalarNode {
		for _, tag := range tags[want] {
			if n.Tag == tag {
				return n.Value, nil
			}
		}
	}
	if want == "string" {
		return "", errors.New("give a text, in quotes where it looks like a number")
	}
	return "", fmt.Errorf("give a value of the type %s", want)
}
