package portal

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// expanding returns a YAML spec of some kilobytes that expands to hundreds of megabytes.
func expanding() string {
	return "s: &s " + strings.Repeat("x", 8<<10) + "\na: &a [" + strings.Repeat("*s,", 2000) + "]\nb: [" + strings.Repeat("*a,", 18) + "]\n"
}

// allocated returns the number of bytes that f allocates, including those that it frees again.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestAliasesAreRefusedBeforeTheyExpand checks that YAML with aliases is refused without allocating its expansion.
func TestAliasesAreRefusedBeforeTheyExpand(t *testing.T) {
	x := newSite(t)
	for who, want := range map[string]int{"alice": http.StatusForbidden, "dave": http.StatusUnprocessableEntity} {
		for _, path := range []string{"/api/v1/tickets", "/api/v1/tickets/preview", "/api/v1/tickets/impact"} {
			b := x.as(who)
			body := map[string]any{
				"kind":   "class",
				"reason": "r",
				"items":  []map[string]any{{"object": map[string]any{"kind": "ResourceClass", "name": "x", "verb": "create", "spec": expanding()}}},
			}
			var status int
			if got := allocated(func() { status = b.Post(path, body).Status }); got > 16<<20 || status != want {
				t.Errorf("%s to %s: %d, want %d; %d MiB allocated", who, path, status, want, got>>20)
			}
		}
	}
}

// TestSpecsAreParsedOnlyForTheSecurityTeam checks that the role of the caller is checked before the text of a spec is parsed.
func TestSpecsAreParsedOnlyForTheSecurityTeam(t *testing.T) {
	x := newSite(t)
	item := []map[string]any{{"object": map[string]any{"kind": "ResourceClass", "name": "x", "verb": "create", "spec": "no: [yaml"}}}
	body := map[string]any{"kind": "class", "reason": "r", "items": item}
	for who, want := range map[string]int{
		"alice": http.StatusForbidden, "bob": http.StatusForbidden,
		"grace": http.StatusUnprocessableEntity, "dave": http.StatusUnprocessableEntity,
	} {
		if a := x.as(who).Post("/api/v1/tickets/what-if", map[string]any{"as": "dave", "request": body}); a.Status != want {
			t.Errorf("%s: %d, want %d: %s", who, a.Status, want, a.Body)
		}
	}
}
