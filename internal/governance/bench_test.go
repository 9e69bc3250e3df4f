package governance

import (
	"fmt"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// BenchmarkTenThousandEdges is what one question to the access map computes.
func BenchmarkTenThousandEdges(b *testing.B) {
	var policies []*v1alpha1.AccessControlPolicy
	for r := range 500 {
		var statements []v1alpha1.Statement
		for s := range 20 {
			statements = append(statements, say(fmt.Sprint("s", s), policy.Allow, fmt.Sprint(apps, (r*7+s*13)%1500), fmt.Sprint(redis, r)))
		}
		policies = append(policies, acp(fmt.Sprint("p", r), statements...))
	}
	s := policy.NewSnapshot(world(policies...))
	b.ReportAllocs()
	for b.Loop() {
		edges, _ := Edges(s, at, func(*Edge) bool { return true })
		if len(Links(edges)) == 0 {
			b.Fatal("no links")
		}
	}
}
