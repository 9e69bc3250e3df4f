// Package insight derives results from recorded flows: what a policy of a resource would have to contain (Propose,
// Refine), what a change of policies would have done to the flows (Replay), which grants are unused (Unused), and how
// reliable the evidence is (Score).
//
// Each is a pure function over a Reader: it reads no clock, stores nothing, changes nothing and uses the same evaluator
// as all other decisions. The package may import internal/audit, internal/policy and the API types, and must not depend
// on a store, HTTP or Kubernetes clients. Texts for users are messages of package message.
package insight
