package portal

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

func TestImpactOfAGrant(t *testing.T) {
	x := newSite(t)
	x.host.mu.Lock()
	p := x.host.input.Policies[0].DeepCopy()
	p.Spec.Statements = p.Spec.Statements[1:] // nothing allows app-888 any more
	x.host.input.Policies = []*v1alpha1.AccessControlPolicy{p}
	x.host.mu.Unlock()
	var impact struct {
		Available    bool
		NewlyAllowed []struct{ Subject struct{ ID string } }
		Allowed      struct{ Connections int }
		Unchanged    int
	}
	a := x.as("alice").Post("/api/v1/tickets/impact", newTicket("app-888", "bobs-cluster"))
	if a.Into(
		t, &impact,
	); a.Status != http.StatusOK || !impact.Available || impact.Allowed.Connections != 3 || len(impact.NewlyAllowed) != 1 ||
		impact.NewlyAllowed[0].Subject.ID != "app-888" {
		t.Errorf("the impact lacks the newly allowed connections: %d %s", a.Status, a.Body)
	}
	if impact.Unchanged != 0 {
		t.Errorf("the impact contains connections of others: %s", a.Body)
	}
	if a := x.as("alice").Post("/api/v1/tickets/impact", newTicket("app-888", "bobs-cluster")); a.Status != http.StatusOK {
		t.Errorf("the repeated preview: %d %s", a.Status, a.Body)
	}
	x.flows.err = errUnavailable
	x.advance(time.Minute)
	a = x.as("alice").Post("/api/v1/tickets/impact", newTicket("app-888", "bobs-cluster"))
	if a.Into(t, &impact); a.Status != http.StatusOK || impact.Available {
		t.Errorf("without the flow store: %d %s", a.Status, a.Body)
	}
	for _, path := range []string{"/resources/bobs-cluster/proposal", "/resources/bobs-cluster/evidence", "/resources/bobs-cluster/unused", "/unused"} {
		var p problemBody
		a := x.as("bob").Get("/api/v1" + path)
		if a.Into(t, &p); a.Status != http.StatusServiceUnavailable || p.Code != "unavailable" {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}

func TestImpactOfADraft(t *testing.T) {
	x := newSite(t)
	x.host.mu.Lock()
	p := x.host.input.Policies[0].DeepCopy()
	p.Spec.Statements = p.Spec.Statements[1:] // nothing allows app-888 any more
	x.host.input.Policies = []*v1alpha1.AccessControlPolicy{p}
	x.host.mu.Unlock()
	type impact struct {
		Available    bool
		NewlyAllowed []struct{ Subject struct{ ID string } }
		NewlyDenied  []struct{ Subject struct{ ID string } }
		Allowed      struct{ Connections int }
		Denied       struct{ Clients int }
		Unchanged    int
		Since        time.Time
	}
	allow := `{kind: AccessControlPolicy, metadata: {name: draft}, spec: {statements: [{sid: a, effect: Allow, subjects: ["` + portaltest.App888 +
		`"], actions: ["redis:connect"], resources: ["` + portaltest.BobsCluster + `"]}]}}`
	post := func(who string, body map[string]any) (impact, portaltest.Answer) {
		var out impact
		a := x.as(who).Post("/api/v1/flows/impact", body)
		if a.Status == http.StatusOK {
			a.Into(t, &out)
		}
		return out, a
	}
	for _, who := range []string{"alice", "bob", "dave", "grace"} { // the owner of the client, that of the resource, security, an auditor
		got, a := post(who, map[string]any{"policy": allow})
		if !got.Available || got.Allowed.Connections != 3 || len(got.NewlyAllowed) != 1 || got.NewlyAllowed[0].Subject.ID != "app-888" {
			t.Errorf("%s: %d %s", who, a.Status, a.Body)
		}
		if all := who == "dave" || who == "grace"; all != (got.Unchanged > 0) {
			t.Errorf("%s sees that %d connections of others do not change", who, got.Unchanged)
		}
	}
	if got, a := post("erin", map[string]any{"policy": allow, "enforce": []string{"bobs-cluster"}}); a.Status != http.StatusOK || len(got.NewlyAllowed)+
		len(got.NewlyDenied) > 0 || got.Allowed.Connections > 0 || got.Denied.Clients > 0 {
		t.Errorf("somebody who owns neither: %d %s", a.Status, a.Body)
	}
	since := time.Now().Add(-time.Minute).UTC()
	if got, a := post(
		"bob",
		map[string]any{"policy": allow, "since": since},
	); a.Status != http.StatusOK || !got.Since.Equal(since) ||
		got.Allowed.Connections != 0 {
		t.Errorf("the window is not the one that was asked for: %d %s", a.Status, a.Body)
	}
	for reason, body := range map[string]map[string]any{
		"nothing":               {},
		"no YAML":               {"policy": "{"},
		"an alias":              {"policy": "statements: &a [*a]"},
		"an unknown field":      {"policy": "{statements: [], mode: x}"},
		"another kind":          {"policy": "{kind: ResourceClass, spec: {}}"},
		"no valid name":         {"policy": `{statements: [{sid: a, effect: Allow, subjects: ["x"], actions: ["redis:connect"], resources: ["y"]}]}`},
		"too long":              {"policy": strings.Repeat(" ", 65<<10)},
		"too many resources":    {"enforce": make([]string, 51)},
		"a window of two years": {"policy": allow, "since": time.Now().Add(-2 * 365 * 24 * time.Hour).UTC()},
	} {
		refused := []int{http.StatusUnprocessableEntity, http.StatusBadRequest, http.StatusRequestEntityTooLarge}
		if _, a := post("bob", body); !slices.Contains(refused, a.Status) {
			t.Errorf("%s: %d %s", reason, a.Status, a.Body)
		}
	}
	if _, a := post("bob", map[string]any{"enforce": []string{"none"}}); a.Status != http.StatusNotFound {
		t.Errorf("a resource that does not exist: %d %s", a.Status, a.Body)
	}
	audited := newSite(t)
	audited.audited()
	draft := func(body map[string]any) (out impact, a portaltest.Answer) {
		a = audited.as("bob").Post("/api/v1/flows/impact", body)
		a.Into(t, &out)
		return out, a
	}
	enforce := map[string]any{"enforce": []string{"bobs-cluster"}}
	if got, a := draft(enforce); a.Status != http.StatusOK || got.Denied.Clients != 1 {
		t.Errorf("the enforcement of a resource in Audit: %d %s", a.Status, a.Body)
	}
	enforce["policy"] = strings.ReplaceAll(allow, portaltest.App888, portaltest.App889)
	if got, a := draft(enforce); a.Status != http.StatusOK || got.Denied.Clients != 0 {
		t.Errorf("the enforcement with a policy that allows the client: %d %s", a.Status, a.Body)
	}
	x.flows.err = errUnavailable
	if got, a := post("bob", map[string]any{"policy": allow}); a.Status != http.StatusOK || got.Available {
		t.Errorf("without the flow store: %d %s", a.Status, a.Body)
	}
}
