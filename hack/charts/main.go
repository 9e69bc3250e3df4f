// Command charts writes those files of the charts in deploy/charts that are generated from other files of the repository: CRDs, roles, federated
// types, dashboards, alerts, what members get, and the schemas of the values. `make generate` runs it in the repository's root.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

// folders contain nothing but generated files, so a file that is no longer generated is removed from them.
var folders = []string{
	"deploy/charts/acp-crds/templates/crds", "deploy/charts/acp/files", "deploy/charts/acp/templates/generated", "deploy/charts/acp-member/templates/generated",
	"deploy/charts/acp-kubefed/crds",
}

// run writes the files below the root of the repository.
func run(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := os.RemoveAll(filepath.Join(root, folder)); err != nil {
			return fmt.Errorf("remove the generated files: %w", err)
		}
	}
	var all error
	for name, text := range files {
		path := filepath.Join(root, name)
		all = errors.Join(all, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // everybody may read them
	}
	return all
}

// generate returns the generated files by their paths below the root of the repository, which it reads.
func generate(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, step := range []func(string, map[string]string) error{crds, types, roles, monitoring, members, kubefed, schemas} {
		if err := step(root, files); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// names returns the sorted YAML and JSON files of a folder, without those of folders below it.
func names(root, folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	var out []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".json") {
			out = append(out, filepath.Join(folder, e.Name()))
		}
	}
	slices.Sort(out)
	return out, nil
}

func read(root, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, name)) //nolint:gosec // it is in the repository
	if err != nil {
		return "", fmt.Errorf("read a file of the repository: %w", err)
	}
	return string(text), nil
}
