// Package portal implements ACP's HTTP API: the route table, which says who may call which route, and the operations of
// api/openapi.yaml, which it registers with the HTTP core. It may import the root packages of approval, audit, catalog, ledger and
// policy, but neither their stores nor a Kubernetes client.
package portal
