package policy

import (
	"fmt"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
)

// fleet is a world of the size of the reference system: resources with a policy each, and grants to applications.
func fleet(resources, grants int) Input {
	in := world()
	for r := range resources {
		name := fmt.Sprintf("%sr%d", redisHead, r)
		in.Resources = append(in.Resources, protect(name, v1alpha1.ModeEnforce))
		p := acp(PolicyNameFor(name))
		for g := range grants {
			p.Spec.Statements = append(
				p.Spec.Statements,
				statementOf(fmt.Sprintf("t-%d-1", g), Allow, fmt.Sprintf("%sapp/%d", appHead, (r+g)%5000), "redis:connect", name),
			)
		}
		in.Policies = append(in.Policies, p)
	}
	for i := range 20 {
		in.Policies = append(
			in.Policies,
			acp(fmt.Sprint("admin-", i), statementOf("all", Allow, fmt.Sprintf("%sapp/admin-%d", appHead, i), "redis:*", allRedis)),
		)
	}
	return in
}

func BenchmarkDecide(b *testing.B) {
	s := NewSnapshot(fleet(4000, 10))
	for name, q := range map[string]Query{
		"Allowed":       ask(on(redisHead+"r7"), by(appHead+"app/9")),
		"Wildcard":      ask(on(redisHead+"r7"), by(appHead+"app/admin-3")),
		"DefaultDenied": ask(on(redisHead+"r7"), by(appHead+"app/4999")),
		"Unmanaged":     ask(on(orders)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Decide(q)
			}
		})
	}
}

func BenchmarkNewSnapshot(b *testing.B) {
	in := fleet(4000, 10)
	b.ReportAllocs()
	for b.Loop() {
		NewSnapshot(in)
	}
}

// One policy of thousands changes.
func BenchmarkNext(b *testing.B) {
	in := fleet(4000, 10)
	s := NewSnapshot(in)
	b.ReportAllocs()
	for b.Loop() {
		in.Policies[7] = in.Policies[7].DeepCopy()
		s = s.Next(in)
	}
}

func BenchmarkCompileResource(b *testing.B) {
	s := NewSnapshot(fleet(4000, 10))
	b.ReportAllocs()
	for b.Loop() {
		s.CompileResource(redisHead+"r7", noon)
	}
}
