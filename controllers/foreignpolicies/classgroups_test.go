package foreignpolicies

import (
	"testing"

	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/federation/foreignpolicy"
)

// TestGroupsInClasses checks that a group of others with the label of a subject class is found, and one of ACP is not.
func TestGroupsInClasses(t *testing.T) {
	own, changes := map[string]bool{"acp-888": true}, 0
	c := &classGroups{own: func(name string) bool { return own[name] }, changed: func() { changes++ }, foreign: map[string]map[string]string{}}
	label, other := cilium.LabelClass("app"), cilium.LabelClass("team")
	group := func(name, label string) foreignpolicy.Group {
		return foreignpolicy.Group{Name: name, Labels: map[string]string{label: "true"}}
	}
	c.record("m1", []foreignpolicy.Group{group("acp-888", label), group("office", "site")})
	if by := c.in("m1", label); by != "" || changes != 0 {
		t.Errorf("ACP's own: %q, %d changes", by, changes)
	}
	c.record("m1", []foreignpolicy.Group{group("acp-888", label), group("theirs", label), group("everybody", label), group("acp-999", other)})
	if by := c.in("m1", label); by != "everybody" || changes != 1 {
		t.Errorf("of others: %q, %d changes", by, changes)
	}
	if by := c.in("m1", other); by != "acp-999" {
		t.Errorf("a name of ACP without an object on the host: %q", by)
	}
	if by := c.in("m2", label); by != "" {
		t.Errorf("another member: %q", by)
	}
	own["acp-999"] = true // the host's object became known
	if by := c.in("m1", other); by != "" {
		t.Errorf("it is ACP's now: %q", by)
	}
	c.record("m1", nil)
	if by := c.in("m1", label); by != "" || changes != 2 {
		t.Errorf("after its removal: %q, %d changes", by, changes)
	}
}
