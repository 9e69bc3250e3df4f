package policy

import "github.com/acp-io/acp/api/v1alpha1"

// PolicyStatement is a statement as its author wrote it, with its policy. Neither object may be changed.
type PolicyStatement struct {
	Ref       Ref
	Statement *v1alpha1.Statement
	Policy    *v1alpha1.AccessControlPolicy
}

// Statements returns all statements, by policy and sid.
func (s *Snapshot) Statements() []PolicyStatement {
	out := make([]PolicyStatement, 0, len(s.statements))
	for _, st := range s.statements {
		out = append(out, PolicyStatement{Ref: st.ref, Statement: st.written, Policy: st.policy})
	}
	return out
}

// StatementsAbout returns the statements about a resource, by its exact name or by a wildcard, ordered by policy and
// sid.
func (s *Snapshot) StatementsAbout(resource string) []PolicyStatement {
	var out []PolicyStatement
	for _, number := range s.numbersAbout(resource, func(*statement) bool { return true }) {
		st := s.statements[number]
		out = append(out, PolicyStatement{Ref: st.ref, Statement: st.written, Policy: st.policy})
	}
	return out
}
