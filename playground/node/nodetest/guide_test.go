package nodetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// guide runs the commands of the documentation as a reader does, in a folder that has the repository's charts and in the network of the
// clusters, where API servers have the same addresses for the reader as for pods.
type guide struct {
	document // docs/install.md
	// members is docs/operations/members.md.
	members document
	dir     string
	// process is one of the network; env is that of commands there, and outside the same for commands in the machine's own network.
	process      int
	env, outside []string
}

// document is a page of the documentation: its name, and its blocks of commands and files.
type document struct {
	name   string
	blocks []string
}

var fenced = regexp.MustCompile("(?s)\n *```[a-z]*\n(.*?)\n *```")

// readDocument reads a page below docs.
func readDocument(t *testing.T, repo, name string) document {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repo, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	d := document{name: name}
	for _, block := range fenced.FindAllStringSubmatch(string(text), -1) {
		d.blocks = append(d.blocks, block[1])
	}
	return d
}

// newGuide reads the guide of the repository. The kubeconfigs are for the network of the process and for the machine's own; tools are folders
// with helm, kubectl and kubectl-acp.
func newGuide(t *testing.T, repo string, process int, inside, outside string, tools ...string) *guide {
	t.Helper()
	g := &guide{document: readDocument(t, repo, "install.md"), members: readDocument(t, repo, filepath.Join("operations", "members.md")),
		dir: t.TempDir(), process: process}
	if err := os.Symlink(filepath.Join(repo, "deploy"), filepath.Join(g.dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	path := strings.Join(append(tools, os.Getenv("PATH")), string(os.PathListSeparator))
	common := append(os.Environ(), "PATH="+path, "HOME="+t.TempDir())
	g.env, g.outside = append(slices.Clone(common), "KUBECONFIG="+inside), append(common, "KUBECONFIG="+outside)
	return g
}

// block returns the only block with this text, in which each old text was replaced by the new one after it.
func (d document) block(t *testing.T, text string, replacements ...string) string {
	t.Helper()
	var found []string
	for _, b := range d.blocks {
		if strings.Contains(b, text) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		t.Fatalf("docs/%s has %d blocks with %q, want one", d.name, len(found), text)
	}
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(found[0], replacements[i]) {
			t.Fatalf("docs/%s has no %q beside %q", d.name, replacements[i], text)
		}
	}
	return strings.NewReplacer(replacements...).Replace(found[0])
}

func (g *guide) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a script, which must succeed, and returns what it wrote.
func (g *guide) run(t *testing.T, script string) string {
	t.Helper()
	out, err := g.try(script)
	if err != nil {
		t.Fatalf("%s\n%v: %s", script, err, out)
	}
	return out
}

func (g *guide) try(script string) (string, error) {
	cmd := exec.Command("nsenter", "--target", strconv.Itoa(g.process), "--net", "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = g.dir, g.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:[0-9]+) ->`)

// forward starts `kubectl port-forward` with these arguments in the machine's own network until the test or the returned function ends it, and returns its
// address.
func (g *guide) forward(t *testing.T, args ...string) (address string, stop func()) {
	t.Helper()
	var out output
	cmd := exec.Command("/usr/bin/env", append([]string{"kubectl"}, append(args, "--address=127.0.0.1")...)...) // env looks in the PATH of the guide
	cmd.Env = g.outside
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its output says more
		close(ended)
	}()
	stop = func() {
		_ = cmd.Process.Kill() // it may have ended with the pod
		<-ended
	}
	t.Cleanup(stop)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if found := forwarding.FindStringSubmatch(out.String()); found != nil {
			return found[1], stop
		}
		select {
		case <-ended:
			t.Fatalf("kubectl %s ended: %s", strings.Join(args, " "), &out)
		default:
		}
	}
	t.Fatalf("kubectl %s forwards nothing: %s", strings.Join(args, " "), &out)
	return "", nil
}
