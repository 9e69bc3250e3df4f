package cli

import (
	"time"

	"github.com/acp-io/acp/internal/policy"
)

const (
	// anyoneElse is a source that no statement names; otherPorts are the ports of no action.
	anyoneElse = "(anyone else)"
	otherPorts = "(other ports)"
)

// connection is a connection whose decision changes. A wildcard or an address range stands for what it covers and
// nothing else names.
type connection struct {
	Subject  string `json:"subject"`
	Resource string `json:"resource"`
	Action   string `json:"action"`
	// Cluster is set if the change is different in a member.
	Cluster string `json:"cluster,omitempty"`
	// Change is possible, impossible or judged-otherwise.
	Change string         `json:"change"`
	Before policy.Verdict `json:"before"`
	After  policy.Verdict `json:"after"`
	// Statements determine the decision after the change, or before it if none does after.
	Statements []policy.Ref `json:"statements,omitempty"`
	// Example is the connection that was decided.
	Example query `json:"example"`
}

const (
	changePossible   = "possible"
	changeImpossible = "impossible"
	changeJudged     = "judged-otherwise"
)

// compareConnections returns the connections that the two inputs decide differently.
func compareConnections(before, after policy.Input, at time.Time) []connection {
	out := []connection{}
	for _, ch := range policy.Compare(policy.NewSnapshot(before), policy.NewSnapshot(after), at) {
		c := connection{
			Subject:    ch.Subject,
			Resource:   ch.Resource,
			Action:     ch.Action,
			Cluster:    ch.Cluster,
			Change:     changeOf(ch.Before.Verdict, ch.After.Verdict),
			Before:     ch.Before.Verdict,
			After:      ch.After.Verdict,
			Statements: ch.After.Statements,
			Example: query{
				Subjects:  ch.Example.Subjects,
				Resources: ch.Example.Resources,
				Cluster:   ch.Cluster,
				Port:      ch.Example.Port,
				Protocol:  ch.Example.Protocol,
			},
		}
		if ch.Example.Source.IsValid() {
			c.Example.SourceIP = ch.Example.Source.String()
		}
		if c.Subject == "*" {
			c.Subject = anyoneElse
		}
		if c.Action == "" {
			c.Action = otherPorts
		}
		if len(c.Statements) == 0 {
			c.Statements = ch.Before.Statements
		}
		out = append(out, c)
	}
	return out
}

func changeOf(before, after policy.Verdict) string {
	switch {
	case !before.LetsThrough() && after.LetsThrough():
		return changePossible
	case before.LetsThrough() && !after.LetsThrough():
		return changeImpossible
	}
	return changeJudged
}
