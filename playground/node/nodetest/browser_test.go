package nodetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// testBrowser goes through a request in Chromium, which reaches the portal through its Service. The resource is in Enforce.
func (in *installation) testBrowser(t *testing.T) {
	ticket := filepath.Join(t.TempDir(), "ticket")
	in.reaches(t, "before the request", map[string]bool{"shop": false, "other": false})
	in.browse(t, "a request is approved", ticket)
	in.reaches(t, "a request that was approved in the browser", map[string]bool{"shop": true, "other": false})
	in.browse(t, "the owner revokes it", ticket)
	in.reaches(t, "a grant that was revoked in the browser", map[string]bool{"shop": false, "other": false})
}

// browse runs one test of e2e/story.installed.ts in Chromium.
func (in *installation) browse(t *testing.T, title, ticket string) {
	t.Helper()
	ready, err := json.Marshal(map[string]string{"portalURL": in.browsers.portal})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("npx", "playwright", "test", "--config=installed.config.ts", "--grep="+title)
	cmd.Dir = filepath.Join(in.repo, "e2e")
	cmd.Env = append(os.Environ(), "ACP_E2E_READY="+string(ready), "ACP_E2E_TICKET="+ticket, "ACP_E2E_HOSTS="+in.browsers.hosts())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "1 passed, 0 failed") {
		t.Fatalf("%s: %v: %s", title, err, out)
	}
}

// hosts returns the ways of the browsers as Chromium's rules for host names.
func (b *browsers) hosts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rules []string
	for host, address := range b.ways {
		rules = append(rules, fmt.Sprintf("MAP %s %s", host, address))
	}
	return strings.Join(rules, ",")
}
