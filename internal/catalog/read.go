package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// ErrEmpty means that a folder contains no entity.
var ErrEmpty = errors.New("no entities found")

const (
	maxFile   = 64 << 20
	maxFolder = 256 << 20
)

// Read reads a folder like ReadFolder and builds a Catalog. If there is any problem, it returns only an error.
func Read(dir string) (*Catalog, error) {
	files, err := readFiles(dir)
	if err != nil {
		return nil, err
	}
	return files.catalog(dir)
}

// ReadFolder reads every *.yaml and *.yml file of a folder and its subfolders as Backstage entities, and the CSV files
// applications.csv, resources.csv, groups.csv and people.csv. Files and folders whose names begin with a dot are
// skipped, and links that lead out of the folder are refused. All problems are in the reading, each with its place.
func ReadFolder(dir string) (SourceContent, error) {
	files, err := readFiles(dir)
	if err != nil {
		return SourceContent{}, err
	}
	return files.read(dir)
}

// file is a file of a folder, with its path below the folder.
type file struct {
	name string
	data []byte
}

type folder []file

func readFiles(dir string) (folder, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("catalog folder %s does not exist: point --catalog at a folder of Backstage entity files: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open catalog folder: %w", err)
	}
	defer func() { _ = root.Close() }() // The folder was only read.
	var out folder
	total := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !isCatalogFile(name):
			return nil
		}
		st, err := root.Stat(name) // Stat follows links, which the volumes of Kubernetes ConfigMaps consist of.
		if err != nil {
			return err
		}
		if total += int(st.Size()); st.Size() > maxFile || total > maxFolder {
			return fmt.Errorf("catalog file %s: a file may have %d MiB and a folder %d MiB: split it into several sources", name, maxFile>>20, maxFolder>>20)
		}
		data, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		out = append(out, file{name, data})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read catalog folder %s: %w", dir, err)
	}
	return out, nil
}

func isCatalogFile(name string) bool {
	ext := path.Ext(name)
	_, isCSV := csvKind(name)
	return ext == ".yaml" || ext == ".yml" || isCSV
}

// catalog builds the catalog of a folder that has no problem.
func (f folder) catalog(dir string) (*Catalog, error) {
	r, err := f.read(dir)
	if err != nil {
		return nil, err
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return Build(r.Records), nil
}

// read reads the files in the order of their names, in which WalkDir returns them.
func (f folder) read(dir string) (SourceContent, error) {
	var r SourceContent
	for _, x := range f {
		if kind, ok := csvKind(x.name); ok {
			r.AddCSV(kind, x.name, x.data)
		} else {
			r.AddYAML(x.name, x.data)
		}
		if len(r.Records) > MaxRecords {
			return SourceContent{}, fmt.Errorf("catalog folder %s has more than %d entities: split it into several sources", dir, MaxRecords)
		}
	}
	r.Unique()
	if len(r.Records)+len(r.Problems) == 0 {
		return SourceContent{}, fmt.Errorf(
			"catalog folder %s: %w: it needs Backstage entities (Component, Resource, Group, User) in *.yaml files, or CSV files",
			dir,
			ErrEmpty,
		)
	}
	return r, nil
}
