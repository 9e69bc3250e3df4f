// Package istiotest contains random worlds of objects for comparisons of ACP's decisions with what Istio enforces, connections in these
// worlds, and renderings with one mistake each, which a comparison must detect.
//
// It contains no engine, and does not depend on the translation, so that the tests of the translation can use it: an oracle of its own
// decides there, and Istio itself in conformance/istio. It is for tests only, and no program imports it.
package istiotest
