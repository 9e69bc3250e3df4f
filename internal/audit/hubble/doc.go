// Package hubble owns the way of flows from a member's Hubble (relay or agent) to counted connections: it follows the
// observer's gRPC API over mutual TLS, or the lines of its exporter, resumes without counting twice, records what was lost,
// reads of a flow only what counts, and decides it with the policies of its time; what endpoints mean and what pairs of them
// come to is remembered within bounds. Of Cilium it imports the generated API types only. It may import internal/audit, and knows no store and
// no Kubernetes client.
package hubble
