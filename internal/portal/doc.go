// Package portal implements ACP's HTTP server: login and sessions, the JSON API of api/openapi.yaml, live events and the
// embedded web application. One route table defines who may call which route, and one function maps errors to problems. It may
// import the root packages of approval, audit, catalog, ledger and policy, but neither their stores nor a Kubernetes client.
package portal
