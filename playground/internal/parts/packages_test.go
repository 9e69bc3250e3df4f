package parts

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestKeyOfPackages(t *testing.T) {
	part := Part{Name: "p", Packages: []string{"a", "b"}, Links: map[string]string{"usr/local/bin/a": "/usr/bin/a"}}
	first, err := key(part, "", "go1.26")
	if err != nil {
		t.Fatal(err)
	}
	if same, err := key(part, "", "go1.27"); err != nil || same != first {
		t.Errorf("another Go fetches the same packages: %v", err)
	}
	for reason, changed := range map[string]Part{
		"another package": {Name: "p", Packages: []string{"a", "c"}, Links: part.Links},
		"another link":    {Name: "p", Packages: part.Packages, Links: map[string]string{"usr/local/bin/a": "/usr/bin/b"}},
	} {
		if k, err := key(changed, "", "go1.26"); err != nil || k == first {
			t.Errorf("%s must change the key (%v)", reason, err)
		}
	}
}

func TestPackagesAreMergedBelowUsr(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "bin/kmod"), "of a package that is not merged")
	write(t, filepath.Join(root, "lib/x86/lib.so"), "library")
	if err := os.Symlink("kmod", filepath.Join(root, "bin/modprobe")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "usr/bin/clang"), "clang")
	if err := mergeUsr(t.Context(), root, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"usr/bin/kmod", "usr/bin/modprobe", "usr/bin/clang", "usr/lib/x86/lib.so"} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Error(err)
		}
	}
	for _, dir := range []string{"bin", "lib"} {
		if exists(filepath.Join(root, dir)) {
			t.Errorf("%s would hide that of the machine", dir)
		}
	}
}

func TestPartsOfNodesAreFound(t *testing.T) {
	for _, p := range ForNodes() {
		if some, err := Select(p.Name); err != nil || len(some) != 1 || some[0].Name != p.Name {
			t.Errorf("%s by name: %v, %v", p.Name, some, err)
		}
	}
}
