// Package conformance verifies that decisions of internal/policy and renderings of internal/enforcer/cilium agree
// according to Cilium's own policy engine.
//
// It contains the engine that evaluates the rendering of random worlds (internal/enforcer/ciliumtest), the comparison, and
// the shrinking of a disagreement to a small case. It is a separate module so that the product does not depend on Cilium, and nothing
// imports it. It changes neither side: a disagreement is a bug in one of them, or a limit that docs/conformance.md
// states.
package conformance
