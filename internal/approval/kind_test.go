package approval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog"
)

// TestEveryKindIsComplete checks the places that a new kind of ticket must not be missing in.
func TestEveryKindIsComplete(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "people.yaml"), []byte("{kind: User, metadata: {name: alice}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	people, err := catalog.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds() {
		if !k.Valid() {
			t.Errorf("%s is not valid", k)
		}
		if !rules.HasKind(string(k)) {
			t.Errorf("approval policies cannot be evaluated for %s", k)
		}
		if _, err := builtin(
			about{c: people, requester: "alice", reached: &Reached{}}, k, Item{Change: &Change{}},
		); err != nil && strings.Contains(err.Error(), "built-in chain") {
			t.Errorf("%s: %v", k, err)
		}
	}
	if other := Kind("other"); other.Valid() || slices.Contains(Kinds(), other) || rules.HasKind("other") {
		t.Error("a kind that does not exist is valid")
	}
}

// TestUnknownKindsAreRefused checks that a kind without a case of its own is not treated as another kind.
func TestUnknownKindsAreRefused(t *testing.T) {
	if steps, err := builtin(about{}, "other", Item{}); err == nil {
		t.Errorf("the built-in chain has steps: %v", steps)
	}
	x := planner{Service: &Service{}, request: Request{Kind: "other"}}
	if it, err := x.change(RequestItem{}, ""); err == nil {
		t.Errorf("a change is planned: %+v", it)
	}
}
