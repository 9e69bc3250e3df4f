// Package hubble turns the flows of a member's Hubble, and the entries of the access log of its Istio, into counted connections.
// It follows the observer's gRPC API (relay or agent) over mutual TLS, the lines of Hubble's exporter, or those of the log. It
// resumes without counting twice, records lost flows, decodes only the needed fields of a flow, and decides it by the policies of
// its time. Decoded endpoints and the decisions of endpoint pairs are cached within bounds. The package imports only the
// generated API types of Cilium. It may import internal/audit, and neither stores nor Kubernetes clients.
package hubble
