package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twoContexts writes a kubeconfig with the contexts one and two, of which one is the current one. Nobody answers at either address.
func twoContexts(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `apiVersion: v1
kind: Config
current-context: one
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1"}}, {name: two, cluster: {server: "https://127.0.0.1:2"}}]
users: [{name: me, user: {token: x}}]
contexts: [{name: one, context: {cluster: one, user: me}}, {name: two, context: {cluster: two, user: me}}]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestEnvironmentNamesTheHost checks that flags count before the environment, and that the environment of the host counts for no member.
func TestEnvironmentNamesTheHost(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	t.Setenv(envKubeconfig, twoContexts(t))
	for _, c := range []struct {
		reason, env string
		args        []string
		want        string
	}{
		{"the current context of the file", "", []string{"render"}, "127.0.0.1:1"},
		{"the context that the environment names", "two", []string{"render"}, "127.0.0.1:2"},
		{"the flag counts first", "two", []string{"render", "--context", "one"}, "127.0.0.1:1"},
		{"commands about members read the host", "two", []string{"cluster", "check", "m1"}, "127.0.0.1:2"},
		{"a downgrade reads neither", "two", []string{"downgrade", "--context", "one", "--reason", "test"}, "one"},
		{"a file that is absent", "", []string{"render", "--kubeconfig", "/absent"}, "/absent"},
	} {
		t.Setenv(envContext, c.env)
		code, _, errs := run(t, "", c.args...)
		if code != ExitInvalid || !strings.Contains(errs, c.want) || strings.Contains(c.reason, "neither") && strings.Contains(errs, "127.0.0.1:2") {
			t.Errorf("%s: code %d, %s", c.reason, code, errs)
		}
	}
}
