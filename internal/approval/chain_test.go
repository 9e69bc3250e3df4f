package approval_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

func readCatalog(t *testing.T, text string) *catalog.Catalog {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// org builds people with their leaders, a security team and one resource.
func org(people map[string]string, security, auditors []string, owner, sensitivity string) string {
	var b strings.Builder
	for who, leader := range people {
		b.WriteString("{kind: User, metadata: {name: " + who)
		if leader != "" {
			b.WriteString(", annotations: {acp.io/leader: " + leader + "}")
		}
		b.WriteString("}}\n---\n")
	}
	b.WriteString("{kind: Group, metadata: {name: security}, spec: {members: [" + strings.Join(security, ",") + "]}}\n---\n")
	b.WriteString("{kind: Group, metadata: {name: auditors}, spec: {members: [" + strings.Join(auditors, ",") + "]}}\n---\n")
	b.WriteString("{kind: Group, metadata: {name: team}, spec: {members: [bob, dan]}}\n---\n")
	b.WriteString(
		"{kind: Resource, metadata: {name: r, annotations: {acp.io/resource-name: 'trnv1:rsc:a:b:c:r', acp.io/sensitivity: " + sensitivity +
			"}}, spec: {owner: '" + owner + "'}}\n",
	)
	return b.String()
}

func TestResolveChain(t *testing.T) {
	usual := map[string]string{"alice": "carol", "carol": "zoe", "zoe": "", "bob": "zoe", "dan": "zoe", "dave": "", "dora": "", "grace": ""}
	type steps = map[string][]string
	for name, tc := range map[string]struct {
		reason             string
		people             map[string]string
		security, auditors []string
		owner, sensitivity string
		requester          string
		want               steps
		note               string // in one of the notes
		refused            string // in the error instead
	}{
		"default": {reason: "leader, then owner", owner: "user:bob", requester: "alice", want: steps{"leader": {"carol"}, "owner": {"bob"}}},
		"high": {
			reason: "security when it matters", owner: "user:bob", sensitivity: "high",
			security: []string{"dave", "dora"}, requester: "alice",
			want: steps{"leader": {"carol"}, "owner": {"bob"}, "security": {"dave", "dora"}},
		},
		"leader asks": {reason: "one up", owner: "user:bob", requester: "carol", want: steps{"leader": {"zoe"}, "owner": {"bob"}}},
		"owner asks":  {reason: "another owner", owner: "team", requester: "bob", want: steps{"leader": {"zoe"}, "owner": {"dan"}}, note: "another owner"},
		"only owner asks": {
			reason: "the security team", owner: "user:bob", security: []string{"dave"}, requester: "bob",
			want: steps{"leader": {"zoe"}, "owner": {"dave"}}, note: "security team",
		},
		"no other owner": {reason: "nobody is left", owner: "user:bob", requester: "bob", refused: "owner of r"},
		"leader owns": {
			reason: "one person one step: the leader's step goes up", owner: "user:carol", requester: "alice",
			want: steps{"leader": {"zoe"}, "owner": {"carol"}}, note: "one up",
		},
		"leader owns, no up": {
			reason: "else the owner's step goes to security", owner: "user:zoe", security: []string{"dave"}, requester: "carol",
			want: steps{"leader": {"zoe"}, "owner": {"dave"}}, note: "needed for another step",
		},
		"top":         {reason: "says what to do", owner: "user:bob", requester: "zoe", refused: "acp.io/leader"},
		"no security": {reason: "high without a security team", owner: "user:bob", sensitivity: "high", requester: "alice", refused: `"security"`},
		"requester is sec": {
			reason: "not in their own request", owner: "user:bob", sensitivity: "high", security: []string{"dave"},
			people: map[string]string{"dave": "zoe", "zoe": "", "bob": ""}, requester: "dave", refused: `"security"`,
		},
		"one security, twice": {
			reason: "one person cannot be owner's stand-in and security", owner: "user:bob",
			sensitivity: "high", security: []string{"dave"}, requester: "bob", refused: "two steps",
		},
		"auditor leads": {
			reason: "auditors decide nothing", owner: "user:bob", auditors: []string{"carol"}, requester: "alice",
			want: steps{"leader": {"zoe"}, "owner": {"bob"}}, note: "cannot decide",
		},
		"owner left": {
			reason: "an owner the catalog does not know", owner: "user:gone",
			security: []string{"dave"}, requester: "alice", refused: "correct its owner",
		},
		"circle of leaders": {
			reason: "two who lead each other", people: map[string]string{"alice": "carol", "carol": "alice", "bob": ""},
			owner: "user:carol", requester: "alice", refused: "two steps",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.people == nil {
				tc.people = usual
			}
			if tc.sensitivity == "" {
				tc.sensitivity = "medium"
			}
			c := readCatalog(t, org(tc.people, tc.security, tc.auditors, tc.owner, tc.sensitivity))
			r, _ := c.Resource("r")
			got, err := approval.ResolveChain(c, tc.requester, r)
			if tc.refused != "" {
				if approval.CodeOf(err) != approval.CodeNoApprover || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("%s: want no-approver with %q, got %v", tc.reason, tc.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			have, notes := steps{}, ""
			for _, s := range got {
				have[s.Name], notes = s.Approvers, notes+s.Note.Text
			}
			if d := cmp.Diff(tc.want, have); d != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, d)
			}
			if !strings.Contains(notes, tc.note) {
				t.Errorf("%s: the notes should say %q: %s", tc.reason, tc.note, notes)
			}
		})
	}
}
