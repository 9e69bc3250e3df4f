// Package ciliumtest contains random worlds of objects for comparisons of ACP's decisions with what Cilium enforces, their
// translation to the objects of a member, and translations with one mistake each, which a comparison must detect.
//
// It contains no engine: conformance/ compares with Cilium's own policy engine, and playground/node with connections through the
// datapath of a real agent. It is for tests only, and no program imports it.
package ciliumtest
