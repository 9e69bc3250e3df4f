// Package portalclient is a client of the portal's HTTP API (api/openapi.yaml). It implements the transport with a bearer token,
// the errors, and the storage of tokens.
package portalclient
