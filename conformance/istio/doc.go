// Package istio compares ACP's decisions with what Istio enforces: random worlds are rendered and written to a real API server, a real
// istiod translates them into the configuration of proxies, and this configuration decides connections and requests.
//
// Istiod runs as a plain process, without a cluster. Envoy and ztunnel are not run: evaluator.go decides by Envoy's RBAC filters as Envoy's
// reference defines them, and gRPC servers, which enforce what istiod sends them, check it with real requests (see docs/conformance.md).
package istio
