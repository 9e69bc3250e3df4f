package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/rbactest"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// TestLeastPrivilege: the portal grants and revokes, follows the host cluster and anchors its ledger with the role of deploy/rbac/host alone, in a
// namespace of another name.
func TestLeastPrivilege(t *testing.T) {
	c := rbactest.Start(t, []string{"deploy/crds"}, nil)
	f := newFleet(t, c.Config)
	provider := portaltest.NewProvider(t)
	var as *rest.Config
	file := c.Kubeconfig(t, rbactest.Names.Portal)
	as, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions(t, as, provider)
	o.namespace = rbactest.Names.Namespace
	log := &lockedLog{}
	p := startLogged(t, o, slog.New(slog.NewTextHandler(log, nil)))
	people := map[string]*portaltest.Browser{}
	for _, who := range []string{"alice", "carol", "bob"} {
		people[who] = portaltest.NewBrowser(t, p.base)
		people[who].Login(provider, "/", who)
	}
	people["alice"].Post(
		"/api/v1/tickets",
		map[string]any{"reason": "r", "items": []map[string]any{{"application": "app-888", "resource": "bobs-cluster", "actions": []string{"redis:connect"}}}},
	)
	for i, who := range []string{"carol", "bob"} {
		if a := people[who].Post("/api/v1/tickets/T-1/decision", map[string]any{"decision": "approve", "version": i + 1}); a.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", who, a.Status, a.Body)
		}
	}
	eventually.True(t, "the statement is written", func() bool { acp, err := f.policy(); return err == nil && len(acp.Spec.Statements) == 1 })
	if a := people["bob"].Post("/api/v1/tickets/T-1/revoke", map[string]any{"reason": "enough"}); a.Status != http.StatusOK {
		t.Fatalf("revoke: %d %s", a.Status, a.Body)
	}
	eventually.True(t, "the statement is gone", func() bool { acp, err := f.policy(); return err == nil && len(acp.Spec.Statements) == 0 })
	asked := func(verb, resource string) func() bool {
		return func() bool {
			requests, err := c.Requests()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range requests {
				if strings.HasSuffix(r.User, ":"+rbactest.Names.Portal) && r.Verb == verb && r.Resource == resource {
					return true
				}
			}
			return false
		}
	}
	eventually.True(t, "the ledger is anchored", asked("create", "configmaps"))
	eventually.True(t, "Events are followed", asked("watch", "events"))
	p.stop()
	if strings.Contains(strings.ToLower(log.b.String()), "forbidden") {
		t.Errorf("the log has Forbidden: %s", log.b.String())
	}
	unused := rbactest.Lists(
		"accesscontrolpolicies",
		"approvalpolicies",
		"externalworkloads",
		"memberclusters",
		"organizations",
		"protectedresources",
		"resourceclasses",
		"subjectclasses",
	)
	for _, kind := range []string{"approvalpolicies", "externalworkloads", "organizations", "protectedresources", "resourceclasses", "subjectclasses"} {
		for _, verb := range []string{"get", "create", "update", "delete"} {
			unused[verb+" acp.io/"+kind] = "tickets about objects, owners and platforms: the tests of internal/portal/host write each kind"
		}
	}
	unused["list events.k8s.io/events in default"] = "an API server older than 1.34 sends the first Events of a watch only to those who list them"
	unused["list events.k8s.io/events in "+rbactest.Names.Namespace] = "who changed an object beside the portal: the tests of internal/portal/host"
	c.Check(t, rbactest.Names.Portal, unused, nil)
}
