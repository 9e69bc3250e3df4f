package charts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/testenv"
)

// pinFile names the commit that is the previous release before there is one.
const pinFile = "release/previous"

const fetchHistory = "fetch the whole history with its tags (git fetch --unshallow --tags)"

// previousRelease is the source tree of the previous release, with its programs.
type previousRelease struct {
	name, tree, programs string
}

func (p previousRelease) program(name string) string { return filepath.Join(p.programs, name) }

func (p previousRelease) chart(name string) string {
	return filepath.Join(p.tree, "deploy", "charts", name)
}

// git runs git in the repository and returns what it prints.
func git(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", testenv.Root()}, args...)...).CombinedOutput() //nolint:gosec // of this test
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, text)
	}
	return text, nil
}

// pinnedCommit returns the last line of pinFile that is not a comment.
func pinnedCommit(text string) (commit string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			commit = line
		}
	}
	return commit
}

// previousCommit returns the newest tag of a release before HEAD, or the pinned commit if there is none.
func previousCommit(t *testing.T) (name, commit string) {
	t.Helper()
	tag, err := git(t, "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*.[0-9]*.[0-9]*", "--exclude", "*-*", "HEAD^")
	if err == nil {
		return tag, tag
	}
	text, err := os.ReadFile(filepath.Join(testenv.Root(), pinFile))
	if err != nil {
		t.Fatalf("this clone has no tag of a release before HEAD, and no %s: %s", pinFile, fetchHistory)
	}
	commit = pinnedCommit(string(text))
	return commit[:min(8, len(commit))], commit
}

// previous extracts the previous release and builds its programs. The tree stays in the cache of slow parts, because the Go build cache
// serves sources only in the folder in which they were compiled.
func previous(t *testing.T) previousRelease {
	t.Helper()
	name, commit := previousCommit(t)
	if _, err := git(t, "merge-base", "--is-ancestor", commit, "HEAD"); err != nil {
		t.Fatalf("the previous release %s is not an ancestor of HEAD in this clone: %s: %v", name, fetchHistory, err)
	}
	hash, err := git(t, "rev-parse", commit+"^{commit}")
	if err != nil {
		t.Fatal(err)
	}
	p := previousRelease{name: name, programs: t.TempDir(), tree: filepath.Join(cacheFolder(t), "previous-"+hash)}
	if _, err := os.Stat(p.tree); err != nil {
		extract(t, hash, p.tree)
	}
	command(t, "go", "build", "-C", p.tree, "-buildvcs=false", "-o", p.programs+"/", "./cmd/portal", "./cmd/acp-adapter")
	return p
}

// cacheFolder returns the folder in which slow parts are kept.
func cacheFolder(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("ACP_CACHE")
	if folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		folder = filepath.Join(user, "acp")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

// extract writes the tree of a commit to a folder that does not exist, completely or not at all.
func extract(t *testing.T, commit, folder string) {
	t.Helper()
	temporary, err := os.MkdirTemp(filepath.Dir(folder), "previous-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	archive := filepath.Join(t.TempDir(), "tree.tar")
	if _, err := git(t, "archive", "--format=tar", "--output="+archive, commit); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(temporary, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "tar", "-xf", archive, "-C", tree)
	if err := os.Rename(tree, folder); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil { //nolint:gosec // of this test
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// TestPinnedCommit checks that the file names a commit in full, because an abbreviation becomes ambiguous with time.
func TestPinnedCommit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testenv.Root(), pinFile))
	if errors.Is(err, fs.ErrNotExist) {
		return // there is a release
	}
	if err != nil {
		t.Fatal(err)
	}
	if c := pinnedCommit(string(text)); !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(c) {
		t.Errorf("%s names the commit %q", pinFile, c)
	}
}
