package policy

import "github.com/acp-io/acp/api/v1alpha1"

// Written is a statement as its author wrote it. Neither object may be changed.
type Written struct {
	Ref       Ref
	Statement *v1alpha1.Statement
	Policy    *v1alpha1.AccessControlPolicy
}

// Statements are all of them, by policy and sid.
func (s *Snapshot) Statements() []Written {
	out := make([]Written, 0, len(s.statements))
	for _, st := range s.statements {
		out = append(out, Written{Ref: st.ref, Statement: st.written, Policy: st.policy})
	}
	return out
}

// StatementsAbout are those about a resource, by its exact name or by a wildcard, by policy and sid.
func (s *Snapshot) StatementsAbout(resource string) []Written {
	var out []Written
	for _, number := range s.numbersAbout(resource, func(*statement) bool { return true }) {
		st := s.statements[number]
		out = append(out, Written{Ref: st.ref, Statement: st.written, Policy: st.policy})
	}
	return out
}
