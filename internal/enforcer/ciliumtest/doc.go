// Package ciliumtest contains random worlds of objects for comparisons of ACP's decisions with what Cilium enforces, their
// translation to the objects of a member, and translations with one mistake each, which a comparison must detect.
//
// It contains no engine, so that a module without Cilium's dependencies can import it: conformance/ compares with Cilium's own policy
// engine. It is for tests only, and no program imports it.
package ciliumtest
