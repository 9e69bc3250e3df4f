package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/approval/gormstore/gormstoretest"
)

// writeCompany writes the catalog, and returns its folder.
func writeCompany(b *testing.B) string {
	b.Helper()
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n---\n", args...) }
	line(`{kind: Group, metadata: {name: company, annotations: {acp.io/lead: ceo}}, spec: {members: [ceo]}}`)
	line(`{kind: User, metadata: {name: ceo}}`)
	line(`{kind: Group, metadata: {name: security}, spec: {members: [s0, s1]}}`)
	line(`{kind: User, metadata: {name: s0}}`)
	line(`{kind: User, metadata: {name: s1}}`)
	for g := range gormstoretest.Groups {
		line(`{kind: Group, metadata: {name: g%d, annotations: {acp.io/lead: u%d}}, spec: {parent: company, members: [u%d, u%d, u%d, u%d, u%d]}}`,
			g, 5*g, 5*g, 5*g+1, 5*g+2, 5*g+3, 5*g+4)
		for u := range 5 {
			line(`{kind: User, metadata: {name: u%d}, spec: {profile: {displayName: Person %d}}}`, 5*g+u, 5*g+u)
		}
	}
	for i := range gormstoretest.Entities {
		line(
			`{kind: Component, metadata: {name: app-%d, title: Shop checkout %d, `+
				`annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:iam:sa:app/%d"}}, spec: {owner: g%d}}`,
			i,
			i,
			i,
			i%gormstoretest.Groups,
		)
		line(
			`{kind: Resource, metadata: {name: cache-%d, title: Orders cache %d, `+
				`annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:redis:clusters:cache-%d", acp.io/sensitivity: low}}, spec: {owner: g%d}}`,
			i,
			i,
			i,
			i*7%gormstoretest.Groups,
		)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "company.yaml"), []byte(strings.TrimSuffix(out.String(), "---\n")), 0o600); err != nil {
		b.Fatal(err)
	}
	return dir
}
