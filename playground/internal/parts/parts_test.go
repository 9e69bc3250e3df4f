package parts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type silent struct{}

func (silent) Begin(int, int, Part, string)      {}
func (silent) Elapsed(Part, time.Duration, bool) {}
func (silent) End(Part, time.Duration, error)    {}

// repo creates a repository with one local part.
func repo(t *testing.T) (string, Part) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "part/go.mod"), "module example\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "part/go.sum"), "")
	write(t, filepath.Join(dir, "part/cmd/tool/main.go"), "package main\n\nfunc main() {}\n")
	return dir, Part{Name: "p", Dir: "part", Programs: map[string]string{"tool": "./cmd/tool"}, Local: true}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRealBuild(t *testing.T) {
	root, part := repo(t)
	c := &Cache{Repo: root, Dir: t.TempDir(), Progress: silent{}}
	built, err := c.Ensure(t.Context(), []Part{part})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(built.Path("p", "tool")); err != nil || st.Mode()&0o111 == 0 {
		t.Errorf("the program is not there: %v", err)
	}
}

func TestFailedBuildShowsTheLogAndLeavesNothing(t *testing.T) {
	root, part := repo(t)
	write(t, filepath.Join(root, "part/cmd/tool/main.go"), "package main\n\nfunc main() { undefinedThing() }\n")
	c := &Cache{Repo: root, Dir: t.TempDir(), Progress: silent{}}
	_, err := c.Ensure(t.Context(), []Part{part})
	if err == nil || !strings.Contains(err.Error(), "undefinedThing") || !strings.Contains(err.Error(), ".log") {
		t.Errorf("the error must show the compiler's words and name the log: %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(c.Dir, "parts"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			t.Errorf("a failed build left %s", e.Name())
		}
	}
}

func TestConcurrentCallersBuildOnce(t *testing.T) {
	root, part := repo(t)
	dir := t.TempDir()
	var builds atomic.Int32
	fake := func(_ context.Context, _ Part, _, out, _ string) error {
		builds.Add(1)
		return os.WriteFile(filepath.Join(out, "tool"), []byte("x"), 0o755)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c := &Cache{Repo: root, Dir: dir, Progress: silent{}, build: fake}
			built, err := c.Ensure(t.Context(), []Part{part})
			if err != nil || !exists(built.Path("p", "tool")) {
				t.Errorf("%v, %v", built, err)
			}
		})
	}
	wg.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

func TestKey(t *testing.T) {
	root, part := repo(t)
	moduleDir := filepath.Join(root, "part")
	keyOf := func(version string) string {
		t.Helper()
		k, err := key(part, moduleDir, version)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := keyOf("go1.26")
	write(t, filepath.Join(moduleDir, "cmd/tool/main_test.go"), "package main\n")
	if keyOf("go1.26") != first {
		t.Error("a test does not change the programs")
	}
	if keyOf("go1.27") == first {
		t.Error("another Go makes other programs")
	}
	for file, content := range map[string]string{
		"go.sum": "x v1 h1:x\n", "go.mod": "module example\n\ngo 1.25\n", "internal/new.go": "package internal\n",
	} {
		before := keyOf("go1.26")
		write(t, filepath.Join(moduleDir, file), content)
		if keyOf("go1.26") == before {
			t.Errorf("%s must change the key", file)
		}
	}
}

func TestAssetsReplaceABuild(t *testing.T) {
	root, part := repo(t)
	part.Assets = []string{"tool"}
	assets := t.TempDir()
	fails := func(context.Context, Part, string, string, string) error { return errors.New("was built") }
	c := &Cache{Repo: root, Dir: t.TempDir(), Assets: assets, Progress: silent{}, build: fails}
	if _, err := c.Ensure(t.Context(), []Part{part}); err == nil {
		t.Error("a folder that lacks a program must not be used")
	}
	write(t, filepath.Join(assets, "tool"), "x")
	built, err := c.Ensure(t.Context(), []Part{part})
	if err != nil || built["p"] != assets {
		t.Errorf("a complete folder must be used: %v, %v", built, err)
	}
}

func TestSelect(t *testing.T) {
	if all, err := Select(); err != nil || len(all) != len(All()) {
		t.Errorf("no name means all: %v, %v", all, err)
	}
	if some, err := Select(KubeFed); err != nil || len(some) != 1 || some[0].Name != KubeFed {
		t.Errorf("by name: %v, %v", some, err)
	}
	if _, err := Select("kubfed"); err == nil || !strings.Contains(err.Error(), KubeFed) {
		t.Errorf("a misspelt name must be answered with the right ones: %v", err)
	}
}
