package governance

import (
	"fmt"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/governance/governancetest"
	"github.com/acp-io/acp/internal/policy"
)

// BenchmarkTenThousandEdges is what one question to the access map computes.
func BenchmarkTenThousandEdges(b *testing.B) {
	var policies []*v1alpha1.AccessControlPolicy
	for r := range 500 {
		var statements []v1alpha1.Statement
		for s := range 20 {
			statements = append(statements, statementOf(fmt.Sprint("s", s), policy.Allow, fmt.Sprint(apps, (r*7+s*13)%1500), fmt.Sprint(redis, r)))
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

// BenchmarkFleet is what the pages of the fleet, of a member and of the findings compute, with 500 members and 10,000 resources.
func BenchmarkFleet(b *testing.B) {
	for name, state := range map[string]func(resource, member int) v1alpha1.MemberState{
		"Realized": func(int, int) v1alpha1.MemberState { return "" },
		"MemberUnreachable": func(_, m int) v1alpha1.MemberState {
			if m == 7 {
				return v1alpha1.MemberUnreachable
			}
			return ""
		},
		"MemberDrifted": func(_, m int) v1alpha1.MemberState {
			if m == 7 {
				return v1alpha1.MemberDrifted
			}
			return ""
		},
		"EveryPending":     func(int, int) v1alpha1.MemberState { return v1alpha1.MemberPending },
		"EveryOverridden":  func(int, int) v1alpha1.MemberState { return v1alpha1.MemberOverridden },
		"EveryUnreachable": func(int, int) v1alpha1.MemberState { return v1alpha1.MemberUnreachable },
	} {
		in, members := governancetest.Fleet(10_000, 500, state)
		b.Run("Units/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				UnitsBehind(in)
			}
		})
		b.Run("OfMember/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				UnfinishedUnits(in, "member-007")
			}
		})
		b.Run("Findings/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				SortFindings(Findings(in, members, nil, ""))
			}
		})
	}
}
