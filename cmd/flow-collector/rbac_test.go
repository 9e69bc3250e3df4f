package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/rbactest"
)

// TestLeastPrivilege: the collector works with the role of deploy/rbac/host, and uses all of it.
func TestLeastPrivilege(t *testing.T) {
	c := rbactest.Start(t, []string{"deploy/crds", "deploy/kubefed/control-plane"}, nil)
	dir := t.TempDir()
	some := file(t, "") // no member has a relay, so the certificates are not used
	var out, errs log
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- newProgram().Run(ctx, []string{"--kubeconfig=" + c.Kubeconfig(t, rbactest.Names.Collector), "--data-dir=" + dir, "--store=sqlite:flows.db",
			"--exporter=m1=" + filepath.Join(dir, "events.log"), "--health-address=127.0.0.1:0", "--registrations",
			"--kubefed-namespace=" + rbactest.Names.KubeFedNamespace, "--hubble-tls-ca=" + some, "--hubble-tls-cert=" + some,
			"--hubble-tls-key=" + some}, &out, &errs)
	}()
	watched := func() int {
		requests, err := c.Requests()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, r := range requests {
			if strings.HasSuffix(r.User, ":"+rbactest.Names.Collector) && r.Verb == "watch" {
				seen[r.Resource] = true
			}
		}
		return len(seen)
	}
	for deadline := time.Now().Add(time.Minute); watched() < 7; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the collector does not watch its kinds: %s", errs.String())
		}
	}
	cancel()
	if c := <-code; c != configuration.ExitOK {
		t.Errorf("ended with %d", c)
	}
	if strings.Contains(errs.String(), "orbidden") {
		t.Errorf("forbidden: %s", errs.String())
	}
	c.Check(
		t,
		rbactest.Names.Collector,
		rbactest.Lists("accesscontrolpolicies", "externalworkloads", "memberclusters", "protectedresources", "resourceclasses", "subjectclasses"),
		nil,
	)
}
