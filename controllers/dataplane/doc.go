// Package dataplane provides the enforcers in use with the input that they need in addition to one unit: for Istio,
// what the members declare and the denies of other units. It renders nothing and writes nothing.
package dataplane
