// Package conformance proves that what internal/policy decides and what internal/enforcer/cilium renders are one thing
// to Cilium's own policy engine.
//
// It owns random worlds of objects, the engine that is fed with their rendering, the comparison, and the shrinking of a
// disagreement to a small case. It is a module of its own so that Cilium's weight stays out of the product, and nothing
// imports it. It changes neither side: a disagreement is a bug in one of them, or a limit that docs/conformance.md states.
package conformance
