//go:build tofu

package provider

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tofu is a folder with a configuration, in which OpenTofu runs.
type tofu struct {
	t                   *testing.T
	dir, program, token string
}

// run runs a command and returns what it printed. The token is only in the environment, and must never be printed.
func (o *tofu) run(arguments ...string) (string, error) {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), o.program, arguments...)
	cmd.Dir = o.dir
	cmd.Env = append(cmd.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(o.dir, "cli.tfrc"), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_LOG=TRACE",
		"TF_LOG_PATH="+filepath.Join(o.dir, "trace.log"), envToken+"="+o.token)
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), o.token) {
		o.t.Errorf("tofu %s prints the token", arguments[0])
	}
	return string(out), err
}

func (o *tofu) must(arguments ...string) string {
	o.t.Helper()
	out, err := o.run(arguments...)
	if err != nil {
		o.t.Fatalf("tofu %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return out
}

func (o *tofu) write(name, text string) {
	o.t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

// outputs returns the outputs of the configuration.
func (o *tofu) outputs() map[string]string {
	o.t.Helper()
	var out map[string]struct{ Value string }
	if err := json.Unmarshal([]byte(o.must("output", "-json")), &out); err != nil {
		o.t.Fatal(err)
	}
	values := map[string]string{}
	for name, v := range out {
		values[name] = v.Value
	}
	return values
}

// TestOpenTofu applies a configuration with the real OpenTofu (the program of ACP_TOFU) and the built provider, against the real portal.
func TestOpenTofu(t *testing.T) {
	program := os.Getenv("ACP_TOFU")
	if program == "" {
		t.Fatal("ACP_TOFU is not set: make test-tofu builds OpenTofu and sets it")
	}
	x := newSite(t)
	o := &tofu{t: t, dir: t.TempDir(), program: program, token: x.token("alice", "read", "tickets:write")}
	mirror := filepath.Join(o.dir, "mirror")
	at := filepath.Join(mirror, "registry.terraform.io", "acp-io", "acp", "0.1.0", runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-acp_v0.1.0")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", at, "../..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the provider: %v\n%s", err, out)
	}
	o.write("cli.tfrc", fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror))
	configuration := func(reason string) string {
		return fmt.Sprintf(`
terraform {
  required_providers {
    acp = { source = "registry.terraform.io/acp-io/acp" }
  }
}
provider "acp" { address = %q }
data "acp_application" "app" { id = "app-888" }
resource "acp_access_request" "carts" {
  application = data.acp_application.app.id
  resource    = "bobs-cluster"
  actions     = ["redis:connect"]
  duration    = "30d"
  reason      = %q
}
data "acp_ticket" "carts" {
  id       = acp_access_request.carts.id
  wait_for = "realized"
  timeout  = "2m"
}
output "id" { value = acp_access_request.carts.id }
output "state" { value = data.acp_ticket.carts.state }
`, x.base, reason)
	}
	o.write("main.tf", configuration("checkout reads carts"))
	o.must("init", "-no-color")
	o.must("validate", "-no-color")
	if out := o.must("plan", "-no-color"); !strings.Contains(out, "1 to add") {
		t.Errorf("plan: %s", out)
	}
	done := x.meanwhile("alice", "approve", "carol", "bob")
	o.must("apply", "-auto-approve", "-no-color")
	done()
	got := o.outputs()
	if got["state"] != "effective" || x.statements() != 1 {
		t.Errorf("after the apply: %v, %d statements", got, x.statements())
	}
	if out, err := o.run("plan", "-no-color", "-detailed-exitcode"); err != nil {
		t.Errorf("a second plan is not empty: %v\n%s", err, out)
	}
	o.must("state", "rm", "acp_access_request.carts")
	o.must("import", "-no-color", "acp_access_request.carts", got["id"])
	// The state that import stores has the portal's texts; those of the configuration replace them without another ticket.
	o.must("apply", "-auto-approve", "-no-color")
	if again := o.outputs(); again["id"] != got["id"] {
		t.Errorf("after the import: %v", again)
	}
	o.must("destroy", "-auto-approve", "-no-color")
	if s := x.ticket("alice", got["id"]).State; s != "revoked" || x.statements() != 0 {
		t.Errorf("after the destruction: %s, %d statements", s, x.statements())
	}
	done = x.meanwhile("alice", "reject", "carol")
	out, err := o.run("apply", "-auto-approve", "-no-color")
	done()
	if err == nil {
		t.Error("a refused request must fail the apply")
	}
	contains(t, "a refused apply", strings.Join(strings.Fields(strings.ReplaceAll(out, "│", " ")), " "), "(carol)", "not for this", x.base+"/tickets/T-")
	if out, err = o.run("plan", "-no-color"); err == nil || !strings.Contains(out, "The access was refused") {
		t.Errorf("a refused request must not be repeated as it is: %v\n%s", err, out)
	}
	trace, err := os.ReadFile(filepath.Join(o.dir, "trace.log"))
	if err != nil {
		t.Fatal(err)
	}
	if len(trace) == 0 || strings.Contains(string(trace), o.token) {
		t.Errorf("the log of %d bytes must not contain the token", len(trace))
	}
}
