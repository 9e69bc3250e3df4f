package parts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
)

// recipe is a version number of the build procedure. It is incremented for changes that no other part of the key covers.
const recipe = 2

// key returns the cache key of a part, a hash of everything that its build depends on.
func key(p Part, moduleDir, goVersion string) (string, error) {
	if len(p.Packages) > 0 {
		return packagesKey(p)
	}
	files := []string{"go.mod", "go.sum"}
	if p.Local {
		err := filepath.WalkDir(moduleDir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := d.Name()
			if d.IsDir() {
				if name == "testdata" {
					return filepath.SkipDir
				}
				return nil
			}
			isTest := strings.HasSuffix(name, "_test.go")
			if isTest || name == "go.mod" || name == "go.sum" {
				return nil
			}
			rel, err := filepath.Rel(moduleDir, path)
			files = append(files, rel)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("list the sources of %s: %w", p.Name, err)
		}
	}
	sort.Strings(files)
	h := sha256.New()
	fmt.Fprintf(h, "%d %s %s/%s %q %v\n", recipe, goVersion, runtime.GOOS, runtime.GOARCH, buildArgs(linkFlags), p.Programs)
	for _, file := range files {
		f, err := os.Open(filepath.Join(moduleDir, file))
		if err != nil {
			return "", fmt.Errorf("read the sources of %s: %w", p.Name, err)
		}
		fmt.Fprintf(h, "%s\n", file)
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return "", fmt.Errorf("read the sources of %s: %w", p.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
