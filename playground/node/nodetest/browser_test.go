package nodetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// testBrowser goes through a request in Chromium, which reaches the portal through its Service, and tries the connection that it is about.
func (in *installation) testBrowser(t *testing.T) {
	in.reaches(t, "before the request", map[string]bool{"shop": false, "other": false})
	in.browse(t, "grant")
	in.reaches(t, "a request that was approved in the browser", map[string]bool{"shop": true, "other": false})
	in.browse(t, "revoke")
	in.reaches(t, "a grant that was revoked in the browser", map[string]bool{"shop": false, "other": false})
}

// browse runs a test of e2e/story.installed.ts.
func (in *installation) browse(t *testing.T, name string) {
	t.Helper()
	chromium := os.Getenv("CHROMIUM")
	if chromium == "" {
		t.Fatal("CHROMIUM is not set: run `make test-cluster`, which installs what this test needs")
	}
	ready, err := json.Marshal([]map[string]string{{"portalURL": portalURL}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("npx", "playwright", "test", "-c", "installed.config.ts", "--grep", " "+name+"$")
	cmd.Dir = "../../../e2e"
	cmd.Env = append(os.Environ(), "ACP_E2E_READY="+string(ready), "ACP_HOST_RULES="+in.browsers.hostRules())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s in the browser: %v: %s", name, err, out)
	}
	if !strings.Contains(string(out), "1 passed, 0 failed") {
		t.Fatalf("%s in the browser: not one test was run: %s", name, out)
	}
}

// hostRules returns the forwarded addresses in the syntax of Chromium's --host-resolver-rules.
func (b *browsers) hostRules() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rules []string
	for host, address := range b.ways {
		rules = append(rules, fmt.Sprintf("MAP %s %s", host, address))
	}
	slices.Sort(rules)
	return strings.Join(rules, ",")
}
