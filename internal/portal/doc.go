// Package portal owns the HTTP face of ACP: login and sessions, the JSON API of api/openapi.yaml, live events and the
// embedded web application. One route table says who may call what, one mapper turns errors into problems. It may use
// the roots of approval, audit, catalog, ledger and policy; never their stores, and no Kubernetes client.
package portal
