// Package portalclient talks to the portal's HTTP API (api/openapi.yaml) with a bearer token. It owns the transport,
// the form of its errors, and where a token is kept; it knows nothing about what people do with the answers.
package portalclient
