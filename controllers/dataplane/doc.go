// Package dataplane prepares the enforcers for the units to render, with what the adapter knows of the members: for Cilium, which members cannot
// enforce HTTP rules; for Istio, what the members declare, and the denies of other units. Every other enforcer is used as package registry
// registers it. The package renders nothing and writes nothing.
package dataplane
