// Package insight owns what follows from the flows that were seen: what a policy of a resource would have to say (Propose,
// Refine), what a change of policies would have done to them (Replay), which grants nobody uses (Unused), and how much
// all of that can be relied upon (Score).
//
// Each is a pure function over a Reader: it asks no clock, keeps nothing, changes nothing and decides with the same
// evaluator as everything else. It may import internal/audit, internal/policy and the API types; it may not know a store,
// HTTP or Kubernetes clients. Its sentences are for people: the web has each in Chinese, too.
package insight
