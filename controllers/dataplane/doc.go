// Package dataplane owns which enforcers the adapter drives now, and what they have to know beside one unit: for Istio, what
// the members declare and the denies of other units. It renders nothing and writes nothing.
package dataplane
