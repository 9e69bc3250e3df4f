package portaltest

import (
	"os"
	"path/filepath"
	"testing"
)

// The names of the demo.
const (
	App888      = "trnv1:rsc:trip-com:iam:sa:app/888"
	App889      = "trnv1:rsc:trip-com:iam:sa:app/889"
	BobsCluster = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster"
	LedgerCache = "trnv1:rsc:trip-com:redis:clusters:ledger-db-cache"
)

const demo = `
{kind: Group, metadata: {name: company, annotations: {acp.io/lead: zoe}}, spec: {members: [zoe]}}
---
{kind: Group, metadata: {name: payments, annotations: {acp.io/lead: carol}}, spec: {parent: company, members: [alice, carol]}}
---
{kind: Group, metadata: {name: storage, annotations: {acp.io/lead: frank}}, spec: {parent: company, members: [bob, frank]}}
---
{kind: Group, metadata: {name: search, annotations: {acp.io/lead: zoe}}, spec: {parent: company, members: [erin]}}
---
{kind: Group, metadata: {name: security}, spec: {members: [dave, dora]}}
---
{kind: Group, metadata: {name: auditors}, spec: {members: [grace]}}
---
{kind: User, metadata: {name: zoe}}
---
{kind: User, metadata: {name: alice}, spec: {profile: {displayName: Alice}}}
---
{kind: User, metadata: {name: bob}, spec: {profile: {displayName: Bob}}}
---
{kind: User, metadata: {name: carol}}
---
{kind: User, metadata: {name: dave}}
---
{kind: User, metadata: {name: dora}}
---
{kind: User, metadata: {name: erin}}
---
{kind: User, metadata: {name: frank}}
---
{kind: User, metadata: {name: grace}}
---
{kind: Component, metadata: {name: app-888, title: App 888, annotations: {acp.io/resource-name: "` + App888 + `"}}, spec: {owner: "user:alice"}}
---
{kind: Component, metadata: {name: app-889, title: App 889, annotations: {acp.io/resource-name: "` + App889 + `"}}, spec: {owner: "user:erin"}}
---
{kind: Resource, metadata: {name: bobs-cluster, title: Bob's cluster, annotations: {acp.io/resource-name: "` + BobsCluster +
	`", acp.io/sensitivity: medium}}, spec: {owner: "user:bob"}}
---
{kind: Resource, metadata: {name: ledger-db-cache, annotations: {acp.io/resource-name: "` + LedgerCache +
	`", acp.io/sensitivity: high}}, spec: {owner: storage}}
---
{kind: Resource, metadata: {name: unclassed, annotations: {acp.io/resource-name: "trnv1:rsc:trip-com:mq:topics:x"}}, spec: {owner: storage}}
`

// Catalog writes the demo people, applications and resources to a folder and returns its path.
func Catalog(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "demo.yaml"), []byte(demo), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
