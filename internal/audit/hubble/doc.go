// Package hubble owns the way of flows from a member's Hubble (relay or agent) to counted connections: it follows the
// observer's gRPC API over mutual TLS, resumes without counting twice, records what was lost, and turns flows into
// observations. Of Cilium it imports the generated API types only. It may import internal/audit, and knows no store and
// no Kubernetes client.
package hubble
