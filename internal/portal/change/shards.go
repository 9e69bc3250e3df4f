package change

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
)

// shards returns the names of the policies with the portal's grants on a resource: as many as the annotation of the first one says, and
// one more, which an unfinished change may have created.
func shards(all []*v1alpha1.AccessControlPolicy, base string) []string {
	out := []string{base}
	p := find(all, base)
	n := policy.ShardCount(p)
	for i := 2; i <= n; i++ {
		out = append(out, policy.PolicyShard(base, i))
	}
	if next := policy.PolicyShard(base, n+1); p != nil && len(p.Spec.Statements) >= v1alpha1.MaxStatements && find(all, next) != nil {
		out = append(out, next)
	}
	return out
}

// baseOf returns the name of the first policy that may have the statement of an item.
func baseOf(it approval.Item) string {
	if it.Scope != nil {
		return policy.StatementsPolicy
	}
	return policy.PolicyNameFor(it.ResourceName)
}

// shardOf returns the name of the policy that has a statement, or else of the one to which the portal would write it. base is the name of
// the first of these policies.
func shardOf(all []*v1alpha1.AccessControlPolicy, base, sid string) string {
	names := shards(all, base)
	room := ""
	for _, name := range names {
		p := find(all, name)
		if p != nil && slices.ContainsFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.SID == sid }) {
			return name
		}
		if room == "" && (p == nil || len(p.Spec.Statements) < v1alpha1.MaxStatements) {
			room = name
		}
	}
	if room == "" {
		return policy.PolicyShard(base, len(names)+1)
	}
	return room
}

// WithoutTarget returns the policies without the statement whose end an item requests, or which it extends.
func WithoutTarget(all []*v1alpha1.AccessControlPolicy, it approval.Item) []*v1alpha1.AccessControlPolicy {
	sid := approval.SID(it.Target.Ticket, it.Target.Item)
	return without(all, shardOf(all, baseOf(it), sid), sid)
}
