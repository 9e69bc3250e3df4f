// Package portal composes ACP's HTTP API: routes.go has the route table with the permitted callers of each route, and New registers the
// operations of all features with the HTTP core. A feature is a package below, named after its subject (ticketapi, flowapi, ...);
// features share code through core and views. The portal may import the root packages of approval, audit, catalog, ledger and policy,
// but neither their stores nor a Kubernetes client.
package portal
